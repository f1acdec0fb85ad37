"""What the kernel of the best-fit allocator with coalescing shares with its callers."""

# The fields of a chunk. Number 0 is no chunk; its LEFT is the root of the tree of free chunks. The
# first six are those of `peakline.kernels.block_tree`.
SIZE = 0
ORDER = 1
"""Always 0: of equal sizes the address decides."""
ADDRESS = 2
LEFT = 3
RIGHT = 4
PRIORITY = 5
PREVIOUS = 6
NEXT = 7
OWNER = 8
"""Twice the region's number, and one more while the chunk is in use."""
CHUNK_FIELDS = 9

# The fields of a region; one that was returned has a size of 0.
REGION_ADDRESS = 0
REGION_SIZE = 1
REGION_FIRST = 2
REGION_LAST = 3
REGION_FIELDS = 4

# The state between two events.
LIMIT = 0
POOL = 1
GROWTH = 2
"""What the next region shall have at least; 0 where the first one takes the whole limit."""
IN_USE = 3
PEAK = 4
TAKEN = 5
"""Regions that were taken so far."""
SLACK = 6
"""So many bytes less of the limit would have led to the same decisions so far."""
TAIL = 7
"""The last chunk of the region whose size depends on the limit, 0 where there is none."""
REGIONS = 8
FREE_SLOT = 9
"""The first of the numbers of chunks that are free again, a list by NEXT."""
NEXT_SLOT = 10
RANDOM = 11
LAST_BASE = 12
"""Where the last region of unknown address lies; the next one lies 2^`APART_BITS` from it."""
DESCENDING = 13
COMPARING = 14
"""Addresses are recorded: regions lie where they say, and another choice is a stop."""
COALESCING = 15
"""A region that begins where another ends becomes a part of it."""
COLLECTING = 16
"""Garbage collection: before a request fails, regions that are free are returned."""
STATUS = 17
LEARNED = 18
"""Addresses that were taken from the recording, as the base of a region."""
UNMATCHED = 19
"""Frees of what is not live."""
POOL_PEAK = 20
STATE_FIELDS = 21

APART_BITS = 44
"""Two regions of unknown address lie 2^44 bytes apart: more than any has."""

RUNNING = 0
FAILED = 1
DIFFERENT = 2
NO_ROOM = 3

MOST_REGIONS = 192
MIN_GROWTH = 2097152
"""The size of the first region."""
