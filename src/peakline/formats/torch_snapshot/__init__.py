"""Snapshots of PyTorch's caching allocator (``torch.cuda.memory._dump_snapshot``)."""
