"""Answers as text on a terminal."""
