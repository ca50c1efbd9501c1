"""Bytes to structs and back, by schema.

Reading order: primitives, schema (the language of layouts), codec (reads and writes by it).
May import: no other room.
"""
