"""After how many deliveries share groups give a record up, as brokers say it, if they do."""

from contextlib import nullcontext
from typing import Any

import pytest
from kafka.errors import ClusterAuthorizationFailedError

from streaming.config.kafka_sections import KafkaSection
from streaming.kafka import broker_queries
from streaming.kafka.broker_queries import delivery_count_limits

BROKER = {"broker": {"1": {"group.share.delivery.count.limit": {"value": "6"}}}}
GROUPS = {"group": {"queue": {"share.delivery.count.limit": {"value": "9"}}, "classic": {}}}


class Admin:
    """A broker that answers with these, one after the other."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    def describe_cluster(self) -> dict[str, Any]:
        return {"brokers": [{"broker_id": 1}]}

    def describe_configs(self, *_: Any, **__: Any) -> dict[str, Any]:
        answer: dict[str, Any] | Exception = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize(
    ("names", "answers", "expected"),
    [
        (["queue", "classic"], [BROKER, GROUPS], {"": 6, "queue": 9}),
        ([], [BROKER], {"": 6}),
        (None, [BROKER], {"": 6}),
        (["queue"], [{"broker": {"1": {}}}, GROUPS], {"queue": 9}),
        ([], [{}], {}),
        ([], [ClusterAuthorizationFailedError("refused")], {}),
    ],
)
def test_what_is_not_said_is_not_known(
    monkeypatch: pytest.MonkeyPatch, names: list[str] | None, answers: list[Any], expected: dict[str, int]
) -> None:
    """A group's own limit (4.3), the brokers', and nothing in the place of one that is not said or refused."""
    monkeypatch.setattr(broker_queries, "group_configs", lambda _: names)
    monkeypatch.setattr(broker_queries, "admin_client", lambda *_: nullcontext(Admin(*answers)))

    assert expected == delivery_count_limits(KafkaSection())
