"""What only time shows: what should have happened by now.

Reading order: moment (what a rule is asked), table (all rules), then the rules; silences says when no time passes,
not_loaded when a coordinator did not load.
May import: kinds, state, groups, migration, rules.
"""
