"""The one story that several modules ask, each about its part."""

import pytest

from tests.integration.east_and_west import Reported, reported_in


@pytest.fixture(scope="session", name="reported")
def reported_of_east_and_west(tmp_path_factory: pytest.TempPathFactory) -> Reported:
    """What was seen in the story of `east_and_west`; modules with a story of their own have another `reported`."""
    return reported_in(tmp_path_factory.mktemp("east-and-west"))
