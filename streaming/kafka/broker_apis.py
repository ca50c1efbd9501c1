"""What every broker can do and has finalized, by the ApiVersions that it answers: in a roll brokers differ.

kafka-python asks one broker, and takes the others to be no newer. ApiVersions needs no permission.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from coordinator_model.gates.broker_abilities import Broker

Features = Mapping[str, Mapping[str, tuple[int, int]]]
"""Feature → `supported` and, beyond level 0, `finalized`: lowest and highest level."""

_CLIENT: Final = "group-monitor"
_REQUEST: Final = "ApiVersions"


@dataclass(frozen=True, slots=True)
class BrokerAnswer:
    """What a broker says of itself: `features` are none before 2.4, whose brokers have no such thing."""

    broker: Broker
    features: Features


def asked_each(admin: Any) -> list[BrokerAnswer]:  # noqa: ANN401 - kafka-python has no types
    """The answer of every broker that is up, by id; raises KafkaError where one does not answer."""
    from kafka.errors import for_code  # see admin_client
    from kafka.protocol.broker_version_data import infer_broker_version_from_api_versions
    from kafka.protocol.metadata import ApiVersionsRequest

    from streaming.kafka.any_release import asking
    from streaming.kafka.client_errors import Asked

    manager = admin._manager  # noqa: SLF001 - the client's own method asks any one broker
    asked_of = getattr(admin, "asked_of", Asked)

    async def answers() -> dict[int, Any]:
        under_way = {}
        for broker in manager.cluster.brokers():
            request = ApiVersionsRequest(client_software_name=_CLIENT, client_software_version="1")
            with asking(partial(asked_of, _REQUEST, broker.node_id)):
                under_way[broker.node_id] = manager.send(request, node_id=broker.node_id)
        answered = {}
        for broker_id, sent in sorted(under_way.items()):
            with asking(partial(asked_of, _REQUEST, broker_id)):
                answered[broker_id] = await sent
                if answered[broker_id].error_code:
                    raise for_code(answered[broker_id].error_code)
        return answered

    found = []
    with asking(lambda: Asked(_REQUEST)):
        for id_, answer in manager.run(answers).items():
            versions = {of.api_key: (of.min_version, of.max_version) for of in answer.api_keys}
            release = ".".join(map(str, infer_broker_version_from_api_versions(versions)))
            found.append(BrokerAnswer(Broker.of(id_, release, versions), _features(answer)))
    return found


def _features(answer: Any) -> Features:  # noqa: ANN401 - as above
    features: dict[str, dict[str, tuple[int, int]]] = {}
    for of in answer.supported_features or ():
        features.setdefault(of.name, {})["supported"] = (of.min_version, of.max_version)
    for of in answer.finalized_features or ():
        features.setdefault(of.name, {})["finalized"] = (of.min_version_level, of.max_version_level)
    return features
