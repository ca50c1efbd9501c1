"""May groups be upgraded and brokers be downgraded: the verdict, its reasons, what releases read, the plan of waves.

Reading order: verdict, upgrade, downgrade, broker_releases; plan.
May import: state, groups, migration, rules.
"""
