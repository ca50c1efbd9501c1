"""Boards made for kafka-lag-exporter are answered by this monitor: names and labels are those they ask for.

What its published board (grafana/Kafka_Lag_Exporter_Dashboard.json in its repository, 2022) asks is written down here
panel by panel. Its variables are a namespace, which in Kubernetes is a label of the scrape, a cluster and groups. Its
panels on the exporter's own JVM have no counterpart: memory and garbage collection of the monitor are not its metrics.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import pytest

from streaming.metrics.catalogue import CATALOGUE
from tests.dashboards.prometheus_tools import answer, needs_prometheus
from tests.dashboards.recorded import CLUSTER, scraped_recording

NAMESPACE: Final = "kafka"
GROUP: Final = "rec-full"
SCOPE: Final = f'namespace="{NAMESPACE}", cluster_name="{CLUSTER}"'
ONE: Final = f'{SCOPE}, group=~"{GROUP}"'

# What a variable offers → the metric and the label it is read from.
VARIABLES: Final[Mapping[str, tuple[str, str]]] = {
    "namespace": ("kafka_consumergroup_group_lag", "namespace"),
    "cluster": ("kafka_consumergroup_group_lag", "cluster_name"),
    "group": ("kafka_consumergroup_group_lag", "group"),
}

# Panel → its queries, and the labels its legend names.
PANELS: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "largest lag in time, by group": ((f"kafka_consumergroup_group_max_lag_seconds{{{ONE}}}",), ("group",)),
    "lag in time, by partition": (
        (f"kafka_consumergroup_group_lag_seconds{{{ONE}}}",),
        ("group", "topic", "partition"),
    ),
    "largest lag in records, by group": ((f"kafka_consumergroup_group_max_lag{{{ONE}}}",), ("group",)),
    "lag in records, by partition": ((f"kafka_consumergroup_group_lag{{{ONE}}}",), ("group", "topic", "partition")),
    "one group: time": ((f"max(kafka_consumergroup_group_lag_seconds{{{ONE}}}) by (group)",), ("group",)),
    "one group: committed and latest offsets": (
        (
            f"sum(kafka_consumergroup_group_offset{{{ONE}}})",
            (
                f"sum((kafka_consumergroup_group_offset{{{ONE}}} * 0) + on(namespace, cluster_name, topic, partition) "
                f"kafka_partition_latest_offset{{{SCOPE}}})"
            ),
        ),
        (),
    ),
}


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with scraped_recording(tmp_path_factory.mktemp("prometheus"), {"namespace": NAMESPACE}) as address:
        yield address


@needs_prometheus
@pytest.mark.parametrize("name", VARIABLES)
def test_variable_has_values(name: str, prometheus: str) -> None:
    """What can be chosen above the board is read from labels that are there."""
    metric, label = VARIABLES[name]
    values = {series["metric"].get(label) for series in answer(prometheus, f"count by ({label}) ({metric})")}

    assert values
    assert None not in values
    assert name != "cluster" or {CLUSTER} == values
    assert name != "group" or GROUP in values


@needs_prometheus
@pytest.mark.parametrize("name", PANELS)
def test_panel_has_an_answer(name: str, prometheus: str) -> None:
    """Every query has data, and every series the labels that the legend names."""
    queries, legend = PANELS[name]
    for query in queries:
        found = answer(prometheus, query)

        assert found, query
        assert all(set(legend) <= series["metric"].keys() for series in found)


def test_the_names_are_all_there() -> None:
    """Each metric of kafka-lag-exporter about groups and partitions is in the catalogue, with its labels."""
    of_partition = {"cluster_name", "group", "topic", "partition"}
    expected = {
        "kafka_partition_latest_offset": {"cluster_name", "topic", "partition"},
        "kafka_partition_earliest_offset": {"cluster_name", "topic", "partition"},
        "kafka_consumergroup_group_offset": of_partition,
        "kafka_consumergroup_group_lag": of_partition,
        "kafka_consumergroup_group_lag_seconds": of_partition,
        "kafka_consumergroup_group_max_lag": {"cluster_name", "group"},
        "kafka_consumergroup_group_max_lag_seconds": {"cluster_name", "group"},
        "kafka_consumergroup_group_sum_lag": {"cluster_name", "group"},
        "kafka_consumergroup_group_topic_sum_lag": {"cluster_name", "group", "topic"},
    }

    assert expected == {name: set(CATALOGUE[name].labels) for name in expected}
