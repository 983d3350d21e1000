"""What runs in the process of a command or a program of a user."""
