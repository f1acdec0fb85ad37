"""What changed between two profiles, in memory and in time."""
