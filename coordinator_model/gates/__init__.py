"""May groups be upgraded and brokers be downgraded: the verdict, its reasons, what releases read, the plan of waves.

Reading order: broker_abilities, verdict, upgrade, downgrade, broker_releases; plan.
May import: kinds, state, groups, migration, rules.
"""
