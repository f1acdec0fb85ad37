"""What the kernels of a compiled program's heap share with their callers."""

ALLOCATE = 0
FREE = 1
SHARE = 2

PENDING = 512
"""So many placed lifetimes wait for their place in the list by address of `best_fit`."""
FEW_PENDING = 32
"""More of them are put into the list before it is swept."""
