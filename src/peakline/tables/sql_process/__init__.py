"""Queries in processes of their own, which have limits and are ended whatever they do."""
