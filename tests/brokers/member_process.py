"""A member of librdkafka in a process of its own: `python -m tests.brokers.member_process SETTINGS TOPIC`.

SETTINGS is a JSON object. It prints what happens to it as JSON lines: `assigned` and `revoked` with partitions, and
`error` with librdkafka's name of it, and whether it is fatal, which ends it. SIGTERM lets it leave.
"""

import json
import signal
import sys
import threading
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

_POLL_SECONDS = 0.2


def main() -> int:
    ending = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ending.set())
    settings, topic = json.loads(sys.argv[1]), sys.argv[2]
    say: dict[str, Any] = {"error_cb": tell_error}
    consumer = Consumer({**settings, **say})

    def tell(event: str, partitions: list[TopicPartition]) -> None:
        tell_all(event=event, partitions=sorted(of.partition for of in partitions))

    consumer.subscribe(
        [topic],
        on_assign=lambda _, partitions: tell("assigned", partitions),
        on_revoke=lambda _, partitions: tell("revoked", partitions),
    )
    fatal = False
    while not (ending.is_set() or fatal):
        try:
            for message in consumer.consume(500, _POLL_SECONDS):
                error = message.error()
                if error is not None:
                    tell_error(error)
                    fatal |= error.fatal()
        except KafkaException as failure:
            tell_error(failure.args[0])
            fatal |= failure.args[0].fatal()
    consumer.close()
    return 1 if fatal else 0


def tell_error(error: KafkaError) -> None:
    tell_all(event="error", name=error.name(), fatal=error.fatal(), text=error.str())


def tell_all(**what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
