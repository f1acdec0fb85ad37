"""How a recorded program fits into memory: its allocations, replayed."""
