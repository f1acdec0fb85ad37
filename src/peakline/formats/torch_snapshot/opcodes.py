"""The opcodes of pickles that hold plain containers, and the scan of them.

Source: the standard library's ``pickletools``; protocols 0 to 5.
"""

from __future__ import annotations

import pickletools
from enum import IntEnum

import numpy as np

from peakline.arrays import UInt8Array
from peakline.kernels import pickle_layout as layout
from peakline.kernels.pickle_scan import scan


class Argument(IntEnum):
    """How an opcode's argument is written; a number of 0 or more is its length in bytes."""

    LINE = layout.A_LINE
    TWO_LINES = layout.A_TWO_LINES
    LENGTH_1 = layout.A_LENGTH_1
    LENGTH_4 = layout.A_LENGTH_4
    LENGTH_8 = layout.A_LENGTH_8
    NO_OPCODE = layout.A_NO_OPCODE


class Effect(IntEnum):
    """What an opcode does to the stack."""

    NOTHING = layout.E_NOTHING
    PUSH_SCALAR = layout.E_PUSH_SCALAR
    PUSH_CONTAINER = layout.E_PUSH_CONTAINER
    MARK = layout.E_MARK
    POP = layout.E_POP
    POP_MARK = layout.E_POP_MARK
    DUP = layout.E_DUP
    APPEND = layout.E_APPEND
    APPENDS = layout.E_APPENDS
    SETITEM = layout.E_SETITEM
    SETITEMS = layout.E_SETITEMS
    COLLECT = layout.E_COLLECT
    COLLECT_DICT = layout.E_COLLECT_DICT
    COLLECT_SET = layout.E_COLLECT_SET
    ADDITEMS = layout.E_ADDITEMS
    TUPLE1 = layout.E_TUPLE1
    TUPLE2 = layout.E_TUPLE2
    TUPLE3 = layout.E_TUPLE3
    PUT = layout.E_PUT
    MEMOIZE = layout.E_MEMOIZE
    GET = layout.E_GET
    STOP = layout.E_STOP
    NAME = layout.E_NAME
    EXTENSION = layout.E_EXTENSION
    OUT_OF_BAND = layout.E_OUT_OF_BAND
    BUILD = layout.E_BUILD


class Status(IntEnum):
    """How a scan ended; `NAME` and below want more than plain containers."""

    WHOLE = layout.S_WHOLE
    CUT = layout.S_CUT
    DAMAGED = layout.S_DAMAGED
    NAME = layout.S_NAME
    EXTENSION = layout.S_EXTENSION
    OUT_OF_BAND = layout.S_OUT_OF_BAND
    BUILD = layout.S_BUILD


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


def scanned(data: UInt8Array) -> tuple[Status, int]:
    """How far the pickle is one of plain containers, and where that was seen: the position of an
    opcode or, of a whole pickle, behind its last (`peakline.kernels.pickle_scan.scan`).
    """
    room = 1 << 14
    while True:
        status, at = scan(
            data, ARGUMENT, EFFECT,
            np.empty(room, np.uint8), np.empty(room, np.int64), np.zeros(room, np.uint8),
        )  # fmt: skip
        if status != layout.S_FULL:
            return Status(status), at
        room *= 8
