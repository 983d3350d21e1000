"""The runtime on Ray: actors placed, called and found again."""
