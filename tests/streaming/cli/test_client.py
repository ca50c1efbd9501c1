"""Asking a running monitor: what goes where."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from streaming.base.errors import CannotTellError
from streaming.cli.client import MonitorClient
from tests.http_server import Answer, Asked, HttpServer, in_json

TOKEN = "t0ken-of-the-test"  # noqa: S105 - of servers that live as long as the test


class Sending:
    """A server that sends on what it is asked for to `to`, and answers everything else; the credentials that came."""

    def __init__(self) -> None:
        self.to = ""
        self.came: list[str | None] = []
        self.server = HttpServer(self._answer)

    def _answer(self, asked: Asked) -> Answer:
        self.came.append(asked.headers.get("authorization"))
        if self.to and not asked.path.startswith("/there"):
            return Answer(307, headers={"location": f"{self.to}/there"})
        return in_json({"groups": []})


@pytest.fixture
def two() -> Iterator[tuple[Sending, Sending]]:
    with ExitStack() as stack:
        found = Sending(), Sending()
        for each in found:
            stack.enter_context(each.server)
        yield found


def test_credentials_go_to_no_other_origin(two: tuple[Sending, Sending]) -> None:
    """Who answers at the address may send on to another port or host: that is said, and nothing is sent there."""
    sending, receiving = two
    first, other = sending.server.url, receiving.server.url
    sending.to = other

    with pytest.raises(CannotTellError) as error:
        MonitorClient(first, environment={"GROUP_MONITOR_TOKEN": TOKEN}).groups()

    assert f"--url: found {first} sending on to {other}, accepted: the address of the monitor itself" == str(
        error.value
    )
    assert ([f"Bearer {TOKEN}"], []) == (sending.came, receiving.came)


def test_the_same_origin_may_send_on(two: tuple[Sending, Sending]) -> None:
    """As a proxy does for another path."""
    sending, _ = two
    sending.to = sending.server.url

    assert [] == MonitorClient(sending.to, environment={"GROUP_MONITOR_TOKEN": TOKEN}).groups()
    assert [f"Bearer {TOKEN}"] * 2 == sending.came


def test_what_is_on_this_machine_is_not_asked_through_a_proxy(
    two: tuple[Sending, Sending], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the question nor its credentials go there, also where `no_proxy` is not set; elsewhere they do."""
    monitor, proxy = two
    for name in ("no_proxy", "NO_PROXY", "HTTP_PROXY", "REQUEST_METHOD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", proxy.server.url)

    assert [] == MonitorClient(monitor.server.url, environment={"GROUP_MONITOR_TOKEN": TOKEN}).groups()
    assert ([f"Bearer {TOKEN}"], []) == (monitor.came, proxy.came)
    assert [] == MonitorClient("http://monitor.example:9464", environment={}).groups()
    assert [None] == proxy.came
