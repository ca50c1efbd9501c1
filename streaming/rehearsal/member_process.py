"""One member of a rehearsal as a program: librdkafka on this Python, a fifth of what a JVM takes.

It reads its settings as one line of JSON from standard input, says in lines of JSON what it was assigned and what ended
it, and closes as an application does when it is terminated. It imports nothing of ours, so that fifty start quickly.
"""

import json
import signal
import sys
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException


def main() -> int:
    """Be a member until SIGTERM; returns 1 if the coordinator ended it."""
    stopping: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: stopping.append(number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    given = json.loads(sys.stdin.readline())
    try:
        consumer = Consumer(given["settings"])
    except KafkaException as error:
        print(json.dumps({"failed": error.args[0].str()}), flush=True)  # noqa: T201 - how it speaks
        return 1
    consumer.subscribe(
        given["topics"],
        on_assign=lambda _consumer, parts: _say("assigned", parts),
        on_revoke=lambda _consumer, parts: _say("revoked", parts),
    )
    failure = None
    while not stopping and failure is None:
        failure = next(filter(None, map(_fatal, consumer.consume(500, 0.2))), None)
    if failure is not None:
        print(json.dumps({"refused": failure}), flush=True)  # noqa: T201 - how it speaks
    try:
        consumer.close()
    except (KafkaException, RuntimeError):
        return 1
    return 0 if failure is None else 1


def _fatal(message: Any) -> str | None:  # noqa: ANN401 - a Message, of which there is no public type to name here
    error = message.error()
    if error is None:
        return None
    is_fatal = error.fatal() or error.code() in (KafkaError._FATAL, KafkaError.INCONSISTENT_GROUP_PROTOCOL)  # noqa: SLF001 - its public name
    return str(error.str()) if is_fatal else None


def _say(what: str, parts: Any) -> None:  # noqa: ANN401 - TopicPartitions
    print(json.dumps({what: len(parts)}), flush=True)  # noqa: T201 - as above


if __name__ == "__main__":
    sys.exit(main())
