"""The critical path of every step."""
