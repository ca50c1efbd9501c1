"""May groups be upgraded and brokers be downgraded: the verdict, its reasons, what releases read, the plan of waves.

Reading order: verdict, upgrade, downgrade, broker_releases; open_alarms, plan.
May import: state, groups, migration, rules.
"""
