"""The steps of a profile: what their time went to, which are slow, and why."""
