"""Dashboards and alert rules as code, from one catalogue of signals."""
