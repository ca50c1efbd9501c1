"""What every test module shares: how hard Hypothesis looks.

Deterministic and quick unless ``HYPOTHESIS_PROFILE=exhaustive`` asks for many, random examples.
"""

import os

from hypothesis import HealthCheck, settings

settings.register_profile("quick", max_examples=25, derandomize=True, deadline=None, database=None)
settings.register_profile(
    "exhaustive",
    max_examples=2000,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],  # large structs of the streams topology take their time
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
