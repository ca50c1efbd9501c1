"""What the image's final stage holds is read off the Dockerfile, and nothing of it is left out of the sum."""

import pytest

from supply.image_size import BUILT, DOCKERFILE, Stage, final_stage, sizes, table

EXAMPLE = """\
# FROM nowhere
FROM python:3 AS base
RUN apt-get update \\
    && apt-get install -y --no-install-recommends a-jre b \\
    && rm -rf /var/lib/apt/lists/*
FROM base AS build
RUN apt-get install -y make
COPY . .
FROM base
COPY --from=build /opt/it /opt/it
COPY conf/one.yaml conf/two.yaml /etc/
"""


def test_the_last_stage_is_read_with_those_it_is_made_from() -> None:
    """Not what the stage installs or copies that only builds."""
    expected = Stage("python:3", ("a-jre", "b"), ("conf/one.yaml", "conf/two.yaml"), ("/opt/it",))

    assert expected == final_stage(EXAMPLE)


def test_a_file_without_a_stage_is_refused() -> None:
    """It is no Dockerfile."""
    with pytest.raises(ValueError, match="found no FROM"):
        final_stage("RUN true\n")


def test_our_own_dockerfile_is_weighed() -> None:
    """Java, what was built, a configuration; what runs the job is the largest package, and no file weighs nothing."""
    stage = final_stage(DOCKERFILE.read_text("utf-8"))
    weighed = list(sizes(stage))
    found = dict(weighed)

    assert len(found) == len(weighed)
    assert ((BUILT,), ("conf/local.yaml",)) == (stage.built, stage.files)
    assert [each for each in stage.debian if each.endswith("-jre-headless")] == list(stage.debian)
    assert not [name for name, size in found.items() if size == 0]
    python = {name: size or 0 for name, size in found.items() if name.endswith("(Python)")}
    assert "pyspark (Python)" == max(python, key=lambda name: python[name])


def test_what_is_not_known_is_a_dash_and_the_sum_a_lower_bound() -> None:
    """Never a zero."""
    shown = table([("one", 2_000_000), ("two", None)]).splitlines()

    assert ["2.0 MB  one", "\u2013     two", "2.0 MB  at least in all, beside the base image"] == [
        line.strip() for line in shown
    ]
    assert "3.0 MB  in all, beside the base image" == table([("one", 3_000_000)]).splitlines()[-1].strip()
