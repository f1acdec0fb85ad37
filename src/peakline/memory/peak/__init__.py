"""What makes an allocator's peak: its buffers, what made them, and when it comes near again."""
