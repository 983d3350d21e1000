"""What models say, while they say it: told, held, and read."""
