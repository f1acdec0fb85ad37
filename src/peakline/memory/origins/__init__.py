"""Whose code made a buffer: call stacks, executions of ops, programs, categories."""
