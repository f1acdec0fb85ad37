"""One self-contained HTML page about the memory of a profile, section by section."""
