"""Answers in Markdown, fit for a pull request or a job's page."""
