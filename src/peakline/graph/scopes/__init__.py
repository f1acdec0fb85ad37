"""Graphs as trees of scopes: what is visible with some of them open, however large the graph is."""
