"""Where time goes: nesting, self time, steps, ops, waits, the critical path."""
