"""Heaps in pprof's format, such as JAX's device memory profile."""
