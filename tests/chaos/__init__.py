"""A batch under fire: real processes killed and stopped at random moments, and what must hold."""
