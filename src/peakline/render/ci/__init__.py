"""The outcome of a check for programs of continuous integration."""
