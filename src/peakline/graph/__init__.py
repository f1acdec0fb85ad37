"""Graphs: their rules, a summary, neighbourhoods, and the critical path of a step."""
