"""Who works on which run next: the coordinator as a synchronous state machine."""
