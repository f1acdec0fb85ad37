"""The events of a profile as trace viewers show them, and the writers of that JSON."""
