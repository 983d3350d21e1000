"""Worker processes: for calls that must be killed to be ended, and that would slow others down."""
