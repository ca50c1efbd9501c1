"""The one door to Grafana's SDK: builders under their own names, models under theirs with `_model`.

The SDK says while it is imported that it would rather have boards of the second schema. Grafana reads that from 12 on;
these boards load in 10 and later, so the warning is no news, and it is no error here where warnings are errors.
"""

import warnings

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "Prefer using dashboardv2", DeprecationWarning)
    from grafana_foundation_sdk.builders import (
        common,
        dashboard,
        prometheus,
        stat,
        statetimeline,
        table,
        text,
        timeseries,
    )
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.models import common as common_model
    from grafana_foundation_sdk.models import dashboard as dashboard_model
    from grafana_foundation_sdk.models import prometheus as prometheus_model
    from grafana_foundation_sdk.models import text as text_model

__all__ = [
    "JSONEncoder",
    "common",
    "common_model",
    "dashboard",
    "dashboard_model",
    "prometheus",
    "prometheus_model",
    "stat",
    "statetimeline",
    "table",
    "text",
    "text_model",
    "timeseries",
]
