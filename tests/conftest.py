"""What every test module shares: how hard Hypothesis looks, and that signals are heard.

Deterministic and quick unless ``HYPOTHESIS_PROFILE=exhaustive`` asks for many, random examples.
"""

import os
import signal

# pytest looks up in it where an ignored exception comes from. Imported by that, it failed a test in which a second one
# came meanwhile.
import tracemalloc  # noqa: F401 - as above

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
    """Let what tests start hear Ctrl-C and a hang-up: tests in a shell's background, or under nohup, hear neither."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
