"""The numbers that the scan of pickles shares with its callers."""

from __future__ import annotations

# How an opcode's argument is written; a number of 0 or more is its length in bytes.
A_LINE, A_TWO_LINES, A_LENGTH_1, A_LENGTH_4, A_LENGTH_8, A_NO_OPCODE = range(-1, -7, -1)

# What an opcode does to the stack.
(
    E_NOTHING, E_PUSH_SCALAR, E_PUSH_CONTAINER, E_MARK, E_POP, E_POP_MARK, E_DUP, E_APPEND,
    E_APPENDS, E_SETITEM, E_SETITEMS, E_COLLECT, E_COLLECT_DICT, E_COLLECT_SET, E_ADDITEMS,
    E_TUPLE1, E_TUPLE2, E_TUPLE3, E_PUT, E_MEMOIZE, E_GET, E_STOP, E_NAME, E_EXTENSION,
    E_OUT_OF_BAND, E_BUILD,
) = range(26)  # fmt: skip

# How a scan ended; S_NAME and below want more than plain containers, S_FULL more room.
S_WHOLE, S_CUT, S_DAMAGED, S_NAME, S_EXTENSION, S_OUT_OF_BAND, S_BUILD, S_FULL = range(8)

# What lies on the stack, and may be a key or not; in the memo one more, and 0 where nothing is
# stored.
V_SCALAR, V_NO_KEY = range(2)
SLACK = 1024
"""An index of the memo may be so much larger than twice what is stored."""
