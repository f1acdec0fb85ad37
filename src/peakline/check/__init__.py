"""Limits that a profile is held to, and the verdict."""
