"""The same conversations held by other frameworks, each in an environment of its own."""
