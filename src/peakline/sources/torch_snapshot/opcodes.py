"""The opcodes of pickles that hold plain containers, as tables for the kernel.

Source: the standard library's ``pickletools``; protocols 0 to 5.
"""

from __future__ import annotations

import pickletools
from enum import IntEnum

import numpy as np

__all__ = ["ARGUMENT", "EFFECT", "Argument", "Effect", "Status"]


class Argument(IntEnum):
    """How an opcode's argument is written; a number of 0 or more is its length in bytes."""

    LINE = -1
    TWO_LINES = -2
    LENGTH_1 = -3
    LENGTH_4 = -4
    LENGTH_8 = -5
    NO_OPCODE = -6


class Effect(IntEnum):
    """What an opcode does to the stack."""

    NOTHING = 0
    PUSH_SCALAR = 1
    PUSH_CONTAINER = 2
    MARK = 3
    POP = 4
    POP_MARK = 5
    DUP = 6
    APPEND = 7
    APPENDS = 8
    SETITEM = 9
    SETITEMS = 10
    COLLECT = 11
    COLLECT_DICT = 12
    COLLECT_SET = 13
    ADDITEMS = 14
    TUPLE1 = 15
    TUPLE2 = 16
    TUPLE3 = 17
    PUT = 18
    MEMOIZE = 19
    GET = 20
    STOP = 21
    NAME = 22
    EXTENSION = 23
    OUT_OF_BAND = 24
    BUILD = 25


class Status(IntEnum):
    """How a scan ended; `NAME` and below want more than plain containers."""

    WHOLE = 0
    CUT = 1
    DAMAGED = 2
    NAME = 3
    EXTENSION = 4
    OUT_OF_BAND = 5
    BUILD = 6


_EFFECTS = {
    "PUSH_SCALAR": "INT BININT BININT1 BININT2 LONG LONG1 LONG4 STRING BINSTRING SHORT_BINSTRING "
    "BINBYTES SHORT_BINBYTES BINBYTES8 NONE NEWTRUE NEWFALSE UNICODE SHORT_BINUNICODE BINUNICODE "
    "BINUNICODE8 FLOAT BINFLOAT",
    "PUSH_CONTAINER": "EMPTY_LIST EMPTY_TUPLE EMPTY_DICT EMPTY_SET BYTEARRAY8",
    "MARK": "MARK",
    "POP": "POP",
    "POP_MARK": "POP_MARK",
    "DUP": "DUP",
    "APPEND": "APPEND",
    "APPENDS": "APPENDS",
    "SETITEM": "SETITEM",
    "SETITEMS": "SETITEMS",
    "COLLECT": "LIST TUPLE",
    "COLLECT_DICT": "DICT",
    "COLLECT_SET": "FROZENSET",
    "ADDITEMS": "ADDITEMS",
    "TUPLE1": "TUPLE1",
    "TUPLE2": "TUPLE2",
    "TUPLE3": "TUPLE3",
    "PUT": "PUT BINPUT LONG_BINPUT",
    "MEMOIZE": "MEMOIZE",
    "GET": "GET BINGET LONG_BINGET",
    "STOP": "STOP",
    "NAME": "GLOBAL STACK_GLOBAL INST PERSID BINPERSID",
    "EXTENSION": "EXT1 EXT2 EXT4",
    "OUT_OF_BAND": "NEXT_BUFFER READONLY_BUFFER",
    "BUILD": "REDUCE BUILD OBJ NEWOBJ NEWOBJ_EX",
    "NOTHING": "PROTO FRAME",
}

_LENGTHS = {
    pickletools.UP_TO_NEWLINE: Argument.LINE,
    pickletools.TAKEN_FROM_ARGUMENT1: Argument.LENGTH_1,
    pickletools.TAKEN_FROM_ARGUMENT4: Argument.LENGTH_4,
    pickletools.TAKEN_FROM_ARGUMENT4U: Argument.LENGTH_4,
    pickletools.TAKEN_FROM_ARGUMENT8U: Argument.LENGTH_8,
}

ARGUMENT = np.full(256, Argument.NO_OPCODE, np.int8)
"""Per opcode one of `Argument`, or the length of what follows."""

EFFECT = np.zeros(256, np.int8)
"""Per opcode one of `Effect`."""

_EFFECT_OF = {name: Effect[effect] for effect, names in _EFFECTS.items() for name in names.split()}
for _opcode in pickletools.opcodes:
    _code = ord(_opcode.code)
    EFFECT[_code] = _EFFECT_OF[_opcode.name]
    if _opcode.arg is None:
        ARGUMENT[_code] = 0
    elif _opcode.name in {"GLOBAL", "INST"}:
        ARGUMENT[_code] = Argument.TWO_LINES
    else:
        ARGUMENT[_code] = _LENGTHS.get(_opcode.arg.n, _opcode.arg.n)
