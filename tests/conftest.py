"""What every test module shares: how hard Hypothesis looks, and that Ctrl-C is heard.

Deterministic and quick unless ``HYPOTHESIS_PROFILE=exhaustive`` asks for many, random examples.
"""

import os
import signal

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


def pytest_configure() -> None:
    """Let what tests start hear Ctrl-C: a shell that starts the tests in its background has them not hear it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
