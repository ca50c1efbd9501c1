"""Attacks that need neither Spark nor a broker, on a page in this process, with fewer connections and less waiting."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest
from pydantic import SecretStr

from streaming.board.board import Board
from streaming.config.sections import HttpSection
from streaming.end_offsets.store import EndOffsets
from streaming.metrics.exporter import Exporter
from streaming.web.server import Server
from tests.attack import attacks
from tests.attack.attacks import ATTACKS, Attack
from tests.attack.scene import GUARDED, TOKEN, Scene
from tests.certificates import Authority

LIGHT: Final = (
    attacks.silent_connections,
    attacks.probe_port,
    attacks.patterns,
    attacks.another_site_s_page,
    attacks.another_name,
    attacks.huge_heads,
    attacks.repeated_parameters,
    attacks.silent_handshakes,
    attacks.half_handshakes,
    attacks.guessing,
)


class LightScene(Scene):
    """A page in this process, of a board of some groups; on a machine that does much else an answer takes long."""

    answer_seconds = 120.0

    def __init__(self, server: Server, *, tls: bool, log: pytest.LogCaptureFixture) -> None:
        self._serve_over(tls=tls)
        self.port = urlsplit(server.url).port or 0
        self.probe_port = server.probe_port or 0
        self.servers = "broker.example:9092"
        self._log = log

    @property
    def pid(self) -> int:
        return os.getpid()

    def logged(self) -> str:
        return self._log.text


@pytest.fixture
def scene(
    request: pytest.FixtureRequest, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Scene]:
    """Of the kind that the attack is for."""
    attack: Attack = request.param
    for name, value in (("HOLD_SECONDS", 1.2), ("HANDSHAKES", 450), ("GUESSES", 200), ("OF_EACH", 30)):
        monkeypatch.setattr(attacks, name, value)
    options = HttpSection(port=0, probe_port=0)
    if attack.kind == GUARDED:
        certificate, key = Authority(tmp_path).issue("server", "localhost", "127.0.0.1")
        options = HttpSection(
            port=0, probe_port=0, token=SecretStr(TOKEN), tls_certificate_file=certificate, tls_key_file=key
        )
    board = Board(EndOffsets())
    server = Server.of(options, board, Exporter(board, "attacked"))
    server.start()
    yield LightScene(server, tls=attack.kind == GUARDED, log=caplog)
    server.stop()


@pytest.mark.parametrize(
    ("scene", "attack"),
    [pytest.param(attack, attack, id=attack.does.__name__) for attack in ATTACKS if attack.does in LIGHT],
    indirect=["scene"],
)
def test_the_page_goes_on_answering(scene: Scene, attack: Attack) -> None:
    """During the attack and after it `/healthz` answers, and descriptors come back."""
    before = len(scene.descriptors())
    with scene.watched() as probes:
        attack.does(scene)

    assert (0, 0) == (probes.unanswered["/healthz"], probes.refused["/healthz"])
    assert 200 == scene.status("/healthz", source="127.0.0.97")
    assert len(scene.descriptors()) < before + 100
