"""What a step of the log shows: one function a rule.

Reading order: steps (when rules run), then the rules.
May import: records, kinds, state, groups, migration.
"""
