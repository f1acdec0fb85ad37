"""Models of allocators: sizes and lifetimes in, addresses out."""
