"""The numbers that the scanners of text and logs share with their callers."""

from __future__ import annotations

# What a byte can be.
BLANK = 1
IDENTIFIER_START = 2
IDENTIFIER = 4
DIGIT = 8
NUMBER = 16  # what may stand in a number, and therefore not right behind one
COMMENT = 32

# How a field's value is written and encoded.
(
    MESSAGE,
    STRING,
    BOOL,
    ENUM,
    FLOAT,
    DOUBLE,
    INT32,
    INT64,
    UINT32,
    UINT64,
    SINT32,
    SINT64,
    FIXED32,
    FIXED64,
    SFIXED32,
    SFIXED64,
) = range(16)

# Columns of the field table.
(
    F_TAG,  # the bytes of the tag, the first one lowest
    F_TAG_BYTES,
    F_KIND,
    F_CHILD,  # owner number of the message or the enum, -1 for other kinds
    F_REPEATED,
    F_SLOT,  # bit that says that the field, or its oneof, was given; -1 for repeated fields
    F_IMPLICIT,  # 1: zero is the same as absent, and so it is left out
    F_CLOSED,  # 1: an enum that takes known numbers only
    F_WIDTH,
) = range(9)

# Columns of the hash table: a free slot has owner -1.
H_OWNER, H_START, H_LENGTH, H_VALUE, H_WIDTH = range(5)

# Entries of the state vector.
(
    S_POSITION,  # in the text
    S_OUT,  # bytes written
    S_DEPTH,
    S_LIST,  # field of the list that is open, NO_LIST, or SKIPPED_LIST
    S_UNKNOWN,  # unknown fields and values
    S_UNKNOWN_AT,  # where the first one's name lies
    S_UNKNOWN_LENGTH,
    S_REDACTED,
    S_FIXES,  # entries in the list of numbers to be fixed
    S_ERROR_AT,
    S_WIDTH,
) = range(11)

# Columns of the stack, one row per open message.
K_OWNER, K_CLOSE, K_AT, K_LIST, K_WIDTH = range(5)

NO_LIST = -1
SKIPPED_LIST = -2
SKIPPED = -1  # the owner inside an unknown field
NO_CLOSE = 256  # of the root, when it ends with the text

# Columns of a number that Python has to convert: where it goes, its text, its bytes and sign.
X_OUT, X_START, X_LENGTH, X_SIZE, X_NEGATIVE, X_WIDTH = range(6)

# How a scan ends.
(
    DONE,
    NEED_ROOM,
    NEED_FIXES,
    NO_NAME,
    NO_COLON,
    NO_OPENING,
    WRONG_END,
    NOT_ENDED,
    TOO_DEEP,
    TWICE,
    NO_STRING,
    OPEN_STRING,
    BAD_ESCAPE,
    NO_INTEGER,
    OUT_OF_RANGE,
    NO_NUMBER,
    NO_BOOL,
    NO_ENUM,
    NO_VALUE,
    NO_SEPARATOR,
    NOT_REPEATED,
) = range(21)

MAX_DEPTH = 101
"""Open messages, the root included: what parsers of the wire format accept."""

ROOM = 64
"""Bytes that one field needs at most, the content of strings aside."""

# Entries of the log scanner's vector of positions and counts.
(
    C_POSITION,
    C_FLOOR,  # before this, nothing belongs to the next record's prefix
    C_OUT,
    C_RECORDS,
    C_CUT,
    C_MALFORMED,
    C_UNKNOWN_MESSAGES,
    C_WITH_TIME,
    C_UNDATED,
    C_WIDTH,
) = range(10)

NO_TIME, NO_YEAR, WITH_DATE = range(3)
"""How much is known of a time."""
