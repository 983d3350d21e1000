"""Which Ray is used, and whether it lets us in."""
