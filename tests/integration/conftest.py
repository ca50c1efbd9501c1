"""The one story that several modules ask, each about its part."""

import pytest

from tests.integration.east_and_west import Told, told_in


@pytest.fixture(scope="session", name="told")
def told_of_east_and_west(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """What was seen in the story of `east_and_west`; modules with a story of their own have another `told`."""
    return told_in(tmp_path_factory.mktemp("east-and-west"))
