"""What every recorded call stack of a profile is a part of, for all stacks at once.

`peakline.memory.origins.stacks` reads one stack frame by frame, for those that a screen shows. To
sort all buffers of a profile each distinct frame is looked at once instead.
"""

from __future__ import annotations

import re
from enum import IntFlag

import numpy as np

from peakline.arrays import AnyArray, UInt8Array
from peakline.memory.origins.stacks import BACKWARD, INPUT, OPTIMIZER, UNNAMED
from peakline.tables.columns import Columns
from peakline.trace.distribution import distinct
from peakline.trace.frames import Frame, module_of, whose_file

_CALLS = ("_call_impl", "_wrapped_call_impl")
_MAKES = ("__init__", "reset_parameters", "_apply", "load_state_dict", "__deepcopy__")
_MOVES = re.compile(r"<built-in method (?:to|cuda|pin_memory) of Tensor object")


class Mark(IntFlag):
    """What a stack is a part of: a backward pass, an optimizer's step, loading of input, the call
    of a module, or the making (also moving, copying) of a module's parameters. ``MOVE``: Python
    moves or converts a tensor. What an optimizer does in ``zero_grad`` is no part of its step.
    """

    BACKWARD = 1
    OPTIMIZER = 2
    INPUT = 4
    MODULE = 8
    MAKING = 16
    MOVE = 32
    ZERO_GRAD = 64


def marks_of(stacks: Columns, ids: AnyArray) -> UInt8Array:
    """The marks of the stacks ``ids``, 0 for -1 and for one that the table does not have."""
    found = np.zeros(ids.size, np.uint8)
    if not stacks.rows:
        return found
    function, file = stacks.names("function"), stacks.names("file")
    pairs = (function.codes.astype(np.int64) + 1) * (len(file.values) + 1) + file.codes + 1
    distinct, place = np.unique(pairs, return_inverse=True)
    table = np.zeros(distinct.size, np.uint8)
    for number, pair in enumerate(distinct.tolist()):
        one, other = divmod(pair, len(file.values) + 1)
        table[number] = _marks(
            function.values[one - 1] if one else "", file.values[other - 1] if other else ""
        )
    owner = stacks.array("stack_id")
    order = np.argsort(owner, kind="stable")
    numbers, first = np.unique(owner[order], return_index=True)
    marks = np.bitwise_or.reduceat(table[place.reshape(-1)][order], first)
    clears = (marks & int(Mark.ZERO_GRAD)) != 0
    marks[clears] &= ~np.uint8(Mark.OPTIMIZER)
    at = np.minimum(np.searchsorted(numbers, ids), numbers.size - 1)
    return np.where(numbers[at] == ids, marks[at], found)


def places_of(stacks: Columns, ids: AnyArray) -> tuple[list[str], list[str]]:
    """Of each of the stacks ``ids`` the innermost module, and the innermost function of the program
    (``forward (train.py:12)``); empty where there is none, as `peakline.memory.origins.stacks` has
    them.
    """
    wanted, place = np.unique(ids, return_inverse=True)
    rows = np.flatnonzero(np.isin(stacks.array("stack_id"), wanted))
    rows = rows[np.lexsort((stacks.array("depth")[rows], stacks.array("stack_id")[rows]))]
    function, file = stacks.names("function"), stacks.names("file")
    line = np.where(stacks.is_valid("line"), stacks.array("line"), 0)[rows]
    first, frame = distinct(function.codes[rows], file.codes[rows], line)
    modules, functions = [""] * first.size, [""] * first.size
    is_named = np.zeros(first.size, np.bool_)
    for number, row in enumerate(first.tolist()):
        name, path = function[int(rows[row])] or "", file[int(rows[row])] or ""
        modules[number] = module_of(name)
        if path and (whose := whose_file(path)) == "program":
            functions[number] = Frame(path, int(line[row]), name, whose).title
            is_named[number] = name not in UNNAMED
    owner = np.searchsorted(wanted, stacks.array("stack_id")[rows])
    found = []
    for texts, better in ((modules, None), (functions, is_named)):
        some = np.array([bool(text) for text in texts], np.bool_)
        chosen = np.full(wanted.size, -1, np.int64)
        for flags in (some,) if better is None else (some, better):
            # The innermost frame with it; that with a name takes the place of one without.
            at = np.flatnonzero(flags[frame])
            stack, where = np.unique(owner[at], return_index=True)
            chosen[stack] = frame[at[where]]
        column = [texts[code] if code >= 0 else "" for code in chosen.tolist()]
        found.append([column[number] for number in place.reshape(-1).tolist()])
    return found[0], found[1]


def _marks(function: str, file: str) -> int:
    own = file.replace("\\", "/")
    text = f"{own}:{function}" if own else function
    mark = Mark(0)
    if BACKWARD.search(text):
        mark |= Mark.BACKWARD
    if OPTIMIZER.search(text):
        mark |= Mark.OPTIMIZER
    if INPUT.search(text):
        mark |= Mark.INPUT
    if module_of(function) or (own.endswith("torch/nn/modules/module.py") and function in _CALLS):
        mark |= Mark.MODULE
    if "torch/nn/" in own and function in _MAKES:
        mark |= Mark.MAKING
    if function == "zero_grad":
        mark |= Mark.ZERO_GRAD
    if _MOVES.match(function):
        mark |= Mark.MOVE
    return int(mark)
