"""Which names patterns choose."""

import pytest

from streaming.base.name_filter import NameFilter, Scope, pattern
from streaming.base.text import cut


@pytest.mark.parametrize(
    ("include", "exclude", "name", "expected"),
    [
        (["*"], [], "orders", True),
        (["*"], [], "", True),
        (["orders-*"], [], "orders-eu", True),
        (["orders-*"], [], "orders", False),
        (["orders-*"], [], "Orders-eu", False),
        (["orders-*", "billing"], [], "billing", True),
        (["*"], ["console-consumer-*"], "console-consumer-17", False),
        (["*"], ["console-consumer-*"], "my-console-consumer-17", True),
        (["orders-*"], ["orders-test"], "orders-test", False),
        (["a.b"], [], "a-b", False),
        (["a*"], [], "a\nb", True),
        ([], [], "orders", False),
    ],
)
def test_a_name_is_chosen_that_is_included_and_not_excluded(
    include: list[str], exclude: list[str], name: str, expected: bool
) -> None:
    """Exclude wins; a pattern is of the whole name, case counts, and a dot is a dot."""
    assert expected is NameFilter(include, exclude)(name)


def test_a_filter_within_another_takes_what_both_take() -> None:
    """And says that it takes all only if both do."""
    both = Scope(groups=NameFilter(["*"], ["b*"])).within(Scope(groups=NameFilter(["a", "b"])))

    assert [True, False, False] == [both.groups(name) for name in ("a", "b", "c")]
    assert (False, True) == (both.groups.takes_all, both.topics.takes_all)


def test_a_pattern_is_of_the_whole_name_though_labels_have_its_beginning() -> None:
    """Two names with the same 32,000 characters at first are two; what a label shows of one is none."""
    long = "g" * 32_000
    chosen, matches = NameFilter(["g*-eu"], ["*-test-eu"]), pattern("g*-eu")

    assert [True, False, False] == [chosen(f"{long}{ends}") for ends in ("-eu", "-us", "-test-eu")]
    assert [True, False] == [matches(name) for name in (f"{long}-eu", cut(f"{long}-eu"))]
