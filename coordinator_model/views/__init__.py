"""The JSON object of a group, as the command line and the API show it.

Reading order: group_view, words, event_sentences.
"""
