"""Programs that XLA compiled: modules, instructions, what they cost."""
