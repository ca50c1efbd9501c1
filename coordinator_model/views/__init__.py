"""A group as JSON, as the command line and the API show it.

Reading order: group_view, then what it is made of.
May import: state, groups, migration, rules.
"""
