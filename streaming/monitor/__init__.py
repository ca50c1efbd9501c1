"""Puts the rooms together: one monitor, several, or serving only.

Reading order: monitor first; several, topic_follower.
"""
