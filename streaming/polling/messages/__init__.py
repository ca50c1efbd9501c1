"""Layouts of requests that kafka-python lacks, in the form in which it reads its own (KIP-848, KIP-932)."""
