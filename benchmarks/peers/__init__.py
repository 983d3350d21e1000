"""The conversations of the benchmarks, held by other frameworks, each in its own environment."""
