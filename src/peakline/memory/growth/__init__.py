"""What steps leave in memory: series by signature, their patterns, and what deserves attention."""
