"""Answers as pure functions from tables to results, and the findings they support."""
