"""What stands out in a profile, and in which order it deserves attention."""
