"""From launches to the work that they cause, and what waits in between."""
