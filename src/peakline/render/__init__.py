"""Answers drawn: terminal, HTML, notebook."""
