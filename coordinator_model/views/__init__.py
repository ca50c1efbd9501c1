"""A group as JSON, and its events in words, as the command line and the API show them.

Reading order: group_view, words, event_sentences.
May import: state, groups, migration, rules.
"""
