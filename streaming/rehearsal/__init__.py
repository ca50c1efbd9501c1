"""A group's shape, rolled on an embedded real broker with real members."""
