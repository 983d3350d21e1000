"""What runs in the process of an executor."""
