"""Whose code made a buffer: what the recorded call stacks of allocations say.

A stack holds what ran around an allocation: functions of Python, modules (``nn.Module: Linear_3``)
and ops (``aten::clone``). Whose a frame is, its file says (`peakline.trace.frames`). One stack is
read frame by frame, for those that a screen shows; to sort all buffers of a profile each distinct
frame is looked at once instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntFlag
from functools import cached_property

import numpy as np

from peakline.arrays import AnyArray, Int64Array, UInt8Array
from peakline.formats.common.native_frames import is_allocation, is_machinery, native_op
from peakline.memory.signatures import History
from peakline.shown import Brief
from peakline.tables.columns import Columns
from peakline.tables.joins import summed
from peakline.text import remembered
from peakline.trace.distribution import distinct
from peakline.trace.frames import Frame, Whose, frame_of, module_of, whose_file

NamedFrame = tuple[str, str, int]
"""Function, file and line; empty and 0 where they are not known."""


def frames_of(stacks: Columns, wanted: AnyArray) -> dict[int, list[NamedFrame]]:
    """The frames of each of the stacks ``wanted`` of the table ``stacks``, the outermost first."""
    rows = np.flatnonzero(np.isin(stacks.array("stack_id"), wanted))
    table = stacks.take(rows[np.argsort(-stacks.array("depth")[rows], kind="stable")])
    result: dict[int, list[NamedFrame]] = {}
    for one in table.to_pylist():
        frame = one["function"] or "", one["file"] or "", one["line"] or 0
        result.setdefault(one["stack_id"], []).append(frame)
    return result


UNNAMED = ("<listcomp>", "<lambda>", "<genexpr>", "<dictcomp>", "<setcomp>")
_NODE = re.compile(r"torch::autograd::generated::(\w+?)Backward\d*::apply|^(\w+?)Backward\d*$")
_CALL = re.compile(r"at::_ops::(\w+)::call")
BACKWARD = re.compile(
    r"autograd::engine::|torch::autograd::generated::|run_backward|_engine_run_backward|"
    r"torch::autograd::Engine|torch/autograd/(?:graph|__init__)\.py"
)
OPTIMIZER = re.compile(
    r"(?:^|/)(?:torch/optim|optax|keras/src/optimizers|keras/optimizers|apex/optimizers|"
    r"deepspeed/ops/adam|bitsandbytes/optim)/|Optimizer\.step#"
)
_COPY = re.compile(
    r"aten::clone$|(?:^|[.\s])(?:clone|deepcopy|_array_copy|_copy_impl|copy_p|_reconstruct)(?:$|\s)"
    r"|jax/_src/(?:(?!jax/_src/)\S)*:copy$|__deepcopy__|(?:^|[._])(?:restore|restored|"
    r"load_checkpoint|from_bytes|from_state_dict|load_state_dict|restore_checkpoint|load_weights)(?:$|[\s_])"
)
_ZEROS = re.compile(r"(?:^|[.:\s])(?:zeros|zeros_like|ones|ones_like|full|full_like)(?:$|\s)")
INPUT = re.compile(
    r"torch/utils/data/|DataLoader|default_collate|pin_memory|device_put|(?:^|\s)collate\w*$"
)
_PUT = re.compile(r"jax/_src/numpy/array_constructors\.py:(?:as)?array$|device_put")
"""Functions of JAX that hand arrays of the host to a device."""


@dataclass(frozen=True)
class Stack:
    """What one stack says: the innermost function of the ``program`` that has a name, all of the
    program's that lead to it (``path``, outermost first), the innermost function of a framework
    (``library``), the ``ops`` and ``modules`` around the allocation (innermost first), and what it
    is a part of.
    """

    program: Frame | None
    path: tuple[Frame, ...]
    library: Frame | None
    ops: tuple[str, ...]
    types: tuple[str, ...]
    modules: tuple[str, ...]
    is_backward: bool
    is_optimizer: bool
    is_copy: bool
    is_zeros: bool
    is_input: bool
    is_put: bool

    @property
    def op(self) -> str:
        """The outermost op, whose caller a person wrote; empty without any."""
        return next((op for op in reversed(self.ops) if "autograd::engine" not in op), "")

    @property
    def op_type(self) -> str:
        """The type of the op that allocated, in lower case without what marks a gradient; empty
        where nothing says it.
        """
        if self.types:
            return self.types[0]
        return self.op.removeprefix("aten::").lower()

    @property
    def module(self) -> str:
        """The innermost module."""
        return self.modules[0] if self.modules else ""


NOTHING = Stack(
    None, (), None, (), (), (), is_backward=False, is_optimizer=False, is_copy=False,
    is_zeros=False, is_input=False, is_put=False,
)  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Origins(Brief):
    """The stacks of the records of ``history``; nothing where none are recorded."""

    stacks: Columns
    history: History

    @cached_property
    def _ids(self) -> Int64Array:
        events = self.history.events
        return np.where(events.is_valid("stack_id"), events.array("stack_id"), -1)

    @cached_property
    def _known(self) -> dict[int, Stack]:
        return {-1: NOTHING}

    @property
    def has_frames(self) -> bool:
        """Whether the file holds stacks at all."""
        return self.stacks.rows > 0

    def of(self, rows: AnyArray) -> list[Stack]:
        """The stack of each of some records."""
        ids = self._ids[rows]
        new = np.setdiff1d(ids, np.fromiter(self._known, np.int64, len(self._known)))
        if new.size:
            frames = frames_of(self.stacks, new)
            for number in new.tolist():
                self._known[number] = _stack(frames.get(number, [])[::-1])
        return [self._known[number] for number in ids.tolist()]

    def distinct(self, rows: AnyArray) -> tuple[list[Stack], Int64Array]:
        """The stacks of some records, each once, and per record its place among them."""
        _, first, place = np.unique(self._ids[rows], return_index=True, return_inverse=True)
        return self.of(np.asarray(rows)[first]), place

    def function(self, rows: AnyArray, sizes: AnyArray) -> Frame | None:
        """The function that made most of the bytes of some buffers, half of them at least."""
        if not self.has_frames or not rows.size:
            return None
        programs = [stack.program for stack in self.of(rows)]
        distinct = list(dict.fromkeys(programs))
        number = {one: place for place, one in enumerate(distinct)}
        place = np.array([number[one] for one in programs], np.int64)
        totals = summed(place, np.asarray(sizes, np.int64), len(distinct))
        most = int(totals.argmax())
        return distinct[most] if 2 * int(totals[most]) >= int(totals.sum()) else None


@dataclass(frozen=True)
class _Part:
    """What one function of a stack says by itself: ``whose`` code it is where it has a file of
    Python or C++, ``op``, ``op_type`` and ``module`` or nothing, and what it is a sign of.
    """

    whose: Whose | None
    op: str
    op_type: str
    module: str
    signs: tuple[bool, ...]


_IS_COPY = 2
"""The place of that sign."""


@remembered(1 << 16)
def _part(function: str, file: str) -> _Part:
    """Many stacks share their functions: each is looked at once."""
    text = f"{file}:{function}".replace("\\", "/") if file else function
    node = _NODE.search(text) or _CALL.search(text)
    built_in = None if file else frame_of(function)
    # Of C++ only the ops and nodes of PyTorch say anything: a thread begins with ``clone``.
    op = native_op(function)
    is_native = bool(op) or is_machinery(function)
    if not op and not is_native and not file and "::" in function and "<" not in function:
        op = "" if "(" in function or is_allocation(function) else function
    name = op if is_native else function if built_in is None else built_in.function
    return _Part(
        whose_file(file) if file else None,
        op,
        "" if node is None else next(filter(None, node.groups())).lower(),
        module_of(function),
        (
            BACKWARD.search(text) is not None,
            OPTIMIZER.search(text) is not None,
            _COPY.search(name) is not None,
            _ZEROS.search(name) is not None,
            INPUT.search(text) is not None,
            _PUT.search(text) is not None,
        ),
    )


def _stack(frames: list[tuple[str, str, int]]) -> Stack:
    """``frames`` stand innermost first."""
    parts = [_part(function, file) for function, file, _ in frames]
    known = [
        Frame(file, line, function, part.whose)
        for part, (function, file, line) in zip(parts, frames, strict=True)
        if part.whose is not None
    ]
    own = [frame for frame in known if frame.whose == "program"]
    named = [frame for frame in own if frame.function not in UNNAMED]
    program = next(iter(named or own), None)
    inside = known if program is None else known[: known.index(program)]
    library = next((one for one in inside if one.whose == "framework"), None)
    types = [part.op_type for part in parts if part.op_type]
    # The framework's own functions say it where C++ is not recorded.
    functional = (one for one in reversed(inside) if one.file.endswith("functional.py"))
    types += [one.function.lower() for one in functional if one.whose == "framework"]
    signs = [any(column) for column in zip(*(part.signs for part in parts), strict=True)]
    backward, optimizer, _, zeros, reads, puts = signs or [False] * 6
    # A copy that another op makes within it is that op's affair.
    ops = [part for part in parts if part.op]
    copies = any(
        part.signs[_IS_COPY] for part in [*ops[-1:], *(one for one in parts if not one.op)]
    )
    return Stack(
        program,
        tuple(reversed(named)),
        library,
        tuple(part.op for part in parts if part.op),
        tuple(types),
        tuple(part.module for part in parts if part.module),
        is_backward=backward,
        is_optimizer=optimizer,
        is_copy=copies,
        is_zeros=zeros,
        is_input=reads,
        is_put=puts,
    )


def signature_codes(history: History, evidence: Mapping[str, object]) -> Int64Array:
    """The signatures that a finding's evidence is about, by the columns that it has of them."""
    signatures = history.signatures
    chosen = np.ones(len(signatures), np.bool_)
    for name, texts in (
        ("allocator", signatures.allocators),
        ("op", signatures.ops),
        ("region_type", signatures.region_types),
        ("data_type", signatures.data_types),
        ("shape", signatures.shapes),
    ):
        if name in evidence and str(evidence[name]) in texts:
            chosen &= getattr(signatures, name) == texts.index(str(evidence[name]))
    size = evidence.get("buffer_bytes")
    if isinstance(size, int):
        chosen &= (signatures.size == size) | (signatures.size < 0)
    return np.flatnonzero(chosen)


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
    result = np.zeros(ids.size, np.uint8)
    if not stacks.rows:
        return result
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
    return np.where(numbers[at] == ids, marks[at], result)


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
    result = []
    for texts, better in ((modules, None), (functions, is_named)):
        some = np.array([bool(text) for text in texts], np.bool_)
        chosen = np.full(wanted.size, -1, np.int64)
        for flags in (some,) if better is None else (some, better):
            # The innermost frame with it; that with a name takes the place of one without.
            at = np.flatnonzero(flags[frame])
            stack, where = np.unique(owner[at], return_index=True)
            chosen[stack] = frame[at[where]]
        column = [texts[code] if code >= 0 else "" for code in chosen.tolist()]
        result.append([column[number] for number in place.reshape(-1).tolist()])
    return result[0], result[1]


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
