"""What runs in the process of a cell's coordinator."""
