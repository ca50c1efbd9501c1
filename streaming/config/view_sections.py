"""Sections about what is shown: which groups and topics, and which have series."""

from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field

from streaming.base.name_filter import NameFilter, Scope
from streaming.config.section import Section, Text, Whole, option


def _patterns(value: object) -> object:
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


Patterns = Annotated[tuple[Text, ...], BeforeValidator(_patterns, json_schema_input_type=str | list[Text])]

_PATTERNS: Final = "a list of shell patterns (* ? […]), or PATTERN[,PATTERN…]"


class ViewSection(Section):
    """Which groups and topics are shown.

    All groups are followed, and cluster totals, gates, history and Kafka topics have all of them: a gate that passed
    over a group would be wrong. What is left out is counted.
    """

    groups_include: Patterns = option(
        ("*",), "Groups that page, API lists, events and metrics show.", accepted=_PATTERNS
    )
    groups_exclude: Patterns = option(
        (), "Of these, groups that are left out. One that is asked for by name is answered.", accepted=_PATTERNS
    )
    topics_include: Patterns = option(
        ("*",),
        "Topics that the list of topics and series by topic show; a group's own answer and sums have all of its "
        "topics.",
        accepted=_PATTERNS,
    )
    topics_exclude: Patterns = option((), "Of these, topics that are left out.", accepted=_PATTERNS)

    @property
    def scope(self) -> Scope:
        """What is shown."""
        return _scope(self)


class MetricsSection(Section):
    """How many series there are."""

    rebalance_histogram: bool = option(
        False, "Whether rebalance durations are a histogram per group: thirteen series for each."
    )
    partition_series: Literal["auto"] | bool = option(
        "auto",
        "Whether lag, offsets and commit age have a series per partition: four for each committed offset, two for each "
        "partition of a topic. Sums by group and topic, and maxima by group, are there either way. auto has them while "
        "they are no more than `partition_series_limit`, and again below 80 % of it; it changes at most once in 15 "
        "minutes, and with polled groups (`source.kind`) not after the start.",
        accepted="auto, true or false",
    )
    partition_series_limit: Annotated[Whole, Field(ge=1)] = option(
        50_000, "How many series per partition there are at most with auto."
    )
    groups_include: Patterns = option(
        ("*",), "Of the groups that are shown (view), those with series of their own.", accepted=_PATTERNS
    )
    groups_exclude: Patterns = option((), "Of these, groups without series.", accepted=_PATTERNS)
    topics_include: Patterns = option(
        ("*",), "Of the topics that are shown (view), those with series of their own.", accepted=_PATTERNS
    )
    topics_exclude: Patterns = option(
        (), "Of these, topics without series. Sums and maxima by group still count them.", accepted=_PATTERNS
    )

    @property
    def scope(self) -> Scope:
        """What of that which is shown has series."""
        return _scope(self)


def _scope(section: ViewSection | MetricsSection) -> Scope:
    return Scope(
        groups=NameFilter(section.groups_include, section.groups_exclude),
        topics=NameFilter(section.topics_include, section.topics_exclude),
    )
