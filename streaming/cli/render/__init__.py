"""How commands show groups and events: plain text, rich tables, JSON."""
