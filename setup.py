"""Where the packages of the checkout stand in a wheel: inside `group_monitor`, which claims no other import name.

All else is in pyproject.toml, which has no way to say it.
"""

from setuptools import find_namespace_packages, find_packages, setup

INSIDE = "group_monitor.packages"
CODE = ("coordinator_model", "streaming", "dashboards")
DATA = ("conf", "dashboards.generated", "streaming.web.page")

packages = find_packages(include=[f"{name}*" for name in CODE])
data = [name for name in find_namespace_packages(include=[f"{name}*" for name in DATA]) if name not in packages]

setup(
    packages=["group_monitor", *(f"{INSIDE}.{name}" for name in (*packages, *data))],
    package_dir={"group_monitor": "release/group_monitor"}
    | {f"{INSIDE}.{name}": name.replace(".", "/") for name in (*CODE, "conf")},
    package_data={"": ["*"]},
)
