"""What is live at any moment, and what memory is made of over a stretch of time."""
