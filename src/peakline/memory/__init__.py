"""What a memory answer stands on: lifetimes, usage, peaks, growth, fragmentation, savings."""
