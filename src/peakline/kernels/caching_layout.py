"""What the kernels of PyTorch's caching allocator share with their callers.

The blocks are rows of one array, with the fields ``B_``; so are the segments, ``S_``. Row 0 is no
block and no segment. The first rows of the blocks are the roots of the ordered sets, four of each
lane (a pool and a stream): small blocks that are free, small ones that are unmapped, large free
ones, large unmapped ones.
"""

ALLOCATE = 0
FREE = 1
FREE_REQUESTED = 2
FREE_COMPLETED = 3
EMPTY_CACHE = 4
RELEASE = 5
"""A segment was given back, and the recording says which."""
UNMAP = 6
"""A part of an expandable segment was given back, and the recording says which."""
CAPTURE_BEGINS = 7
"""A CUDA graph is captured from here on: nothing is released meanwhile."""
CAPTURE_ENDS = 8
POOL_IS_LEFT = 9
"""The last user of a private pool went: it is released as the common pool is."""

B_KEY = 0
B_ORDER = 1
B_ADDRESS = 2
B_LEFT = 3
B_RIGHT = 4
B_PRIORITY = 5
B_SIZE = 6
B_STATE = 7
B_PREVIOUS = 8
B_NEXT = 9
B_BUFFER = 10
B_SEGMENT = 11
B_BORN = 12
BLOCK_FIELDS = 16
"""Two lines of a cache: a search needs the first."""

IS_FREE = 0
IS_LIVE = 1
IS_AWAITING = 2
IS_UNMAPPED = 3
IS_SPARE = 4
"""The row is no block."""

S_BASE = 0
S_SIZE = 1
S_HEAD = 2
S_ROOT = 3
S_HOME = 4
S_EXPANDABLE = 5
S_MAPPED = 6
S_PREVIOUS = 7
S_NEXT = 8
S_COMMON = 9
S_ORDER = 10
SEGMENT_FIELDS = 11

ROOTS = 4
"""Rows of blocks per lane, ..."""
LARGE = 2
"""... those of large blocks are so many behind those of small ones, ..."""
UNMAPPED = 1
"""... and those of unmapped ones so many behind those of free ones."""

T_USED = 0
T_SPARE = 1
T_BLOCKS = 2
T_SEGMENTS_USED = 3
T_SEGMENT_SPARE = 4
T_SEGMENTS = 5
T_FIRST = 6
T_RESERVED = 7
T_IN_USE = 8
T_AWAITING = 9
T_WAITING = 10
T_PEAK_RESERVED = 11
T_PEAK_IN_USE = 12
T_LIMIT = 13
T_ALLOWED = 14
T_THRESHOLD = 15
T_SLACK = 16
T_SLACK_ALLOWED = 17
T_SLACK_THRESHOLD = 18
T_CURSOR = 19
T_STEP = 20
T_FAILED = 21
T_STRANGE = 22
T_WORK = 23
T_MISSES = 24
T_UNPLACED = 25
T_EXPANDABLE = 26
T_HINT = 27
T_TAKEN = 28
T_RETURNED = 29
T_GROWN = 30
T_EARLY = 31
T_CAPTURES = 32
T_ORDER = 33
T_THROWN = 34
STATE_FIELDS = 35

R_MAX_SPLIT = 0
R_ROUNDING = 1
R_LARGE = 2
R_EXPANDABLE = 3
R_SMALL_RANGE = 4
R_LARGE_RANGE = 5
R_LARGEST = 6
R_HIGHEST = 7
R_UNLIMITED = 8
R_DIVIDES = 9
"""Whether any of the divisions is above 1."""
R_THROWS = 10
"""Whether a request fails at once where the device, not the fraction, has no room."""
R_CAPTURED = 11
"""Whether requests of private pools are taken as made in captures."""
R_REGISTERED = 12
"""Whether of equal blocks that of the older segment is taken, not that at the lower address."""
R_DIVISIONS = 13
INTERVALS = 16
RULES = 29

GRANULE = 512
SMALL = 1048576
SMALL_SEGMENT = 2097152
LEAST_LARGE = 10485760

SPARE_BLOCKS = 16
"""Rows that an event may need where no segment is expandable."""
SPARE_SEGMENTS = 4
MOST_WORK = 4000000
"""Blocks and segments that are looked at, and events, before `advance` returns."""
