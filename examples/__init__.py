"""Programs that show harness_actors at work."""
