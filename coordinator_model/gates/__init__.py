"""May consumers be upgraded, may brokers be downgraded: the verdict, with every reason.

Reading order: verdict, upgrade, downgrade, broker_releases.
"""
