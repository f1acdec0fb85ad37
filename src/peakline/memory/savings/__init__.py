"""What would lower the peak, and by how much."""
