"""What PyTorch's profiler records of memory: its ``[memory]`` events as allocator events.

An event holds the address, the size (negative for memory given back), the device and what its
allocator held afterwards, but not who allocated. That is the operator or Python function that was
running on the same thread.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int32Array, Int64Array
from peakline.formats.chrome_trace.steps import Steps
from peakline.formats.chrome_trace.trace import Trace
from peakline.formats.common.callers import LEFT_OUT, MEAN_DEPTH, Frame, is_own, stacks_table
from peakline.formats.common.native_frames import is_allocation
from peakline.kernels.trace_events import enclose
from peakline.tables.columns import Columns, Names
from peakline.tables.joins import ranges
from peakline.text import without_address

MOST_BYTES = 2**48
"""No device holds more: what processors can address is at most about that."""

_OPERATORS = {"cpu_op": 1, "Operator": 1, "python_function": 0}
"""Categories of what may own memory; ``Operator`` is how ``cpu_op`` was called in 2020. Of an
operator and a Python function with the same interval the operator is the inner one."""
_CPU, _MAPPED = 0, -2
_DEVICES = {
    _MAPPED: "CPU mapped", _CPU: "CPU", 1: "CUDA", 2: "MKLDNN", 3: "OpenGL", 4: "OpenCL",
    5: "IDEEP", 6: "HIP", 7: "FPGA", 8: "MAIA", 9: "XLA", 10: "Vulkan", 11: "Metal", 12: "XPU",
    13: "MPS", 14: "Meta", 15: "HPU", 16: "VE", 17: "Lazy", 18: "IPU", 19: "MTIA",
    20: "PrivateUse1",
}  # fmt: skip
"""By the numbers of ``c10/core/DeviceType.h`` (pytorch/pytorch), which never change."""
_EMPTY = re.compile(r"<built-in (?:method|function) (?:new_)?empty\w* ")
_PYTHON = re.compile(r"(?P<file>.+)\((?P<line>\d+)\): (?P<function>.+)", re.DOTALL)


@dataclass(frozen=True, eq=False)
class Owners:
    """Who allocated, per memory event: ``name`` is the code of the innermost running operator or
    function that does more than allocate (-1: none), ``stack`` the number of everything that was
    running (-1: none).

    Stack ``s`` is its innermost frame ``frame[s]``, a code, on top of stack ``below[s]``.
    """

    name: Int32Array
    stack: Int64Array
    frame: Int32Array
    below: Int64Array


def find_owners(trace: Trace) -> Owners:
    """What was running around each memory event on its thread."""
    memory, events = trace.memory, trace.events
    has_memory = np.zeros(trace.planes.line_count, np.bool_)
    has_memory[memory["line"]] = True
    rank_of = np.full(len(trace.collected.categories.values) + 1, -1, np.int8)
    for category, depth in _OPERATORS.items():
        code = trace.collected.categories.code_of(category)
        if code >= 0:
            rank_of[code] = depth
    rank = rank_of[events.category]
    rows = np.flatnonzero((rank >= 0) & has_memory[events.line] & events.timed)
    line, start = events.line[rows], events.start[rows]
    end = start + events.duration[rows]
    order = np.lexsort((rank[rows], -end, start, line))
    moments = np.lexsort((np.arange(memory["time"].size), memory["time"], memory["line"]))
    parent = np.full(rows.size, -1, np.int64)
    owner = np.full(memory["time"].size, -1, np.int64)
    enclose(
        order, line.astype(np.int64), start, end, moments, memory["line"].astype(np.int64),
        memory["time"], parent, owner, np.empty(rows.size, np.int64),
    )  # fmt: skip
    names = np.append(events.name[rows], np.int32(-1))
    stack, frame, below = _stacks(parent, owner, names)
    asks = _meaningful(owner, parent, names, trace.collected.names.values)
    return Owners(names[asks], stack, frame, below)


def _meaningful(
    owner: Int64Array, parent: Int64Array, names: Int32Array, texts: Sequence[str]
) -> Int64Array:
    """In place of an owner that only allocates (``aten::empty``) the innermost around it that says
    what for: an op, or a function of the program; the owner itself where there is none.
    """
    says = np.zeros(len(texts) + 1, np.int8)
    used = np.unique(names[names >= 0])
    says[used] = [_rank(texts[code]) for code in used.tolist()]
    says[-1] = _OP
    result = owner.copy()
    for least in (_LIBRARY, _PROGRAM):
        # Where no op is around it, what a person wrote comes before what that calls.
        at = owner.copy() if least == _LIBRARY else result.copy()
        while (inner := (at >= 0) & (says[names[at]] < least)).any():
            at[inner] = parent[at[inner]]
        result = np.where(at >= 0, at, result)
    return result


_ALLOCATION, _LIBRARY, _PROGRAM, _OP = range(4)


def _rank(name: str) -> int:
    """How much a name says of what memory is for."""
    match = _PYTHON.fullmatch(name)
    if match is not None:
        is_named = match["function"] == "<module>" or not match["function"].startswith("<")
        return _PROGRAM if is_named and is_own(match["file"]) else _LIBRARY
    if name.startswith("nn.Module: "):
        return _LIBRARY
    if name.startswith("<built-in "):
        return _ALLOCATION if _EMPTY.match(name) else _LIBRARY
    return _ALLOCATION if is_allocation(name) else _OP


def _stacks(
    parent: Int64Array, owner: Int64Array, names: Int32Array
) -> tuple[Int64Array, Int32Array, Int64Array]:
    """Number the distinct stacks: of each memory event, and each stack's frame and rest.

    Walks from the outermost events inwards; events with the same name on the same stack share one.
    """
    chain = np.unique(owner[owner >= 0])
    needed = np.zeros(parent.size, np.bool_)
    while chain.size:
        needed[chain] = True
        chain = np.unique(parent[chain])
        chain = chain[chain >= 0]
        chain = chain[~needed[chain]]
    rows = np.flatnonzero(needed)
    stack_of = np.full(parent.size + 1, -1, np.int64)
    frames: list[Int32Array] = [np.zeros(0, np.int32)]
    belows: list[Int64Array] = [np.zeros(0, np.int64)]
    count = 0
    level = rows[parent[rows] < 0]
    children = rows[parent[rows] >= 0]
    children = children[np.argsort(parent[children], kind="stable")]
    while level.size:
        below = stack_of[parent[level]]
        pairs = np.stack([below, names[level].astype(np.int64)])
        distinct, place = np.unique(pairs, axis=1, return_inverse=True)
        stack_of[level] = count + place.reshape(-1)
        belows.append(distinct[0])
        frames.append(distinct[1].astype(np.int32))
        count += distinct.shape[1]
        first = np.searchsorted(parent[children], level, side="left")
        last = np.searchsorted(parent[children], level, side="right")
        level = children[ranges(first, last)]
    return stack_of[owner], np.concatenate(frames), np.concatenate(belows)


def device_bytes(properties: bytes) -> dict[int, int]:
    """What each device holds in all, in bytes by its number, as ``deviceProperties`` says.

    Kineto writes one object per device (``libkineto/src/DeviceProperties.cpp``). A device that has
    several sizes there has none.
    """
    try:
        devices = json.loads(properties)
    except (ValueError, RecursionError):
        return {}
    sizes: dict[int, set[int]] = {}
    for one in devices if isinstance(devices, list) else ():
        number, size = (one.get("id"), one.get("totalGlobalMem")) if type(one) is dict else ("", "")
        if type(number) is type(size) is int and 0 < size <= MOST_BYTES:
            sizes.setdefault(number, set()).add(size)
    return {number: min(some) for number, some in sizes.items() if len(some) == 1}


def allocator_events(
    trace: Trace, steps: Steps, owners: Owners, capacities: Mapping[int, int]
) -> Columns:
    """The ``allocator_events`` table, in time order; ``capacities`` as `device_bytes`.

    ``in_use_bytes`` is what PyTorch calls Total Allocated, of mapped memory the sum. Total Reserved
    counts all that was taken from the device, in use or not: it says nothing of how much the device
    holds.
    """
    memory = trace.memory
    order = np.lexsort((np.arange(memory["time"].size), memory["time"]))
    memory = {name: column[order] for name, column in memory.items()}
    amount = memory["Bytes"]
    is_mapped, mapped = _mapped(memory)
    has_total = memory["has Total Allocated"]
    reserved = memory["Total Reserved"]
    has_pool = memory["has Total Reserved"] & ~is_mapped & (reserved > 0)
    capacity = _capacities(memory, capacities)
    planes = trace.planes.plane_of_line
    step = steps.at(planes[memory["line"]], memory["time"])
    stack = owners.stack[order]
    return Columns(
        {
            "time_ps": memory["time"],
            "sequence": order.astype(np.int64),
            "allocator": _allocators(memory, is_mapped),
            "activity": Names((amount < 0).astype(np.int32), ["allocation", "deallocation"]),
            "address": memory["Addr"].view(np.uint64),
            "allocated_bytes": np.abs(amount),
            "op": _ops(Names(owners.name[order], trace.collected.names.values)),
            "step_id": step,
            "in_use_bytes": np.where(is_mapped, mapped, memory["Total Allocated"]),
            "pool_bytes": reserved,
            "capacity_bytes": capacity,
            "stack_id": stack,
            "line_id": memory["line"],
        },
        {
            "address": memory["has Addr"],
            "step_id": step >= 0,
            "in_use_bytes": has_total,
            "pool_bytes": has_pool,
            "capacity_bytes": capacity > 0,
            "stack_id": stack >= 0,
        },
    )


def _capacities(memory: dict[str, AnyArray], capacities: Mapping[int, int]) -> Int64Array:
    """Per record what its device holds in all, in bytes; 0 where that is not known.

    `oversize` says of which devices the trace contradicts itself.
    """
    number = np.where(_on_device(memory), memory["Device Id"], -1)
    result = np.zeros(number.size, np.int64)
    wrong = oversize(memory, capacities)
    for device, size in capacities.items():
        if device not in wrong:
            result[number == device] = size
    return result


def _on_device(memory: dict[str, AnyArray]) -> BoolArray:
    """Which records are of memory of a device, which ``deviceProperties`` may describe."""
    is_device: BoolArray = memory["has Device Type"] & (memory["Device Type"] > _CPU)
    return is_device & (memory["Device Id"] >= 0)


def oversize(memory: dict[str, AnyArray], capacities: Mapping[int, int]) -> dict[int, int]:
    """What was reserved of the devices of which more was than ``capacities`` says there is.

    Pools of unified memory (``UVM``) may exceed their device; a trace that was put together of
    several processes may describe another device by the same number.
    """
    of_device = _on_device(memory)
    number, reserved = memory["Device Id"][of_device], memory["Total Reserved"][of_device]
    most = {device: int(reserved[number == device].max(initial=0)) for device in capacities}
    return {device: size for device, size in most.items() if size > capacities[device]}


def _ops(names: Names) -> Names:
    """Names that are the same in another run: ``<built-in method cat of type object>``."""
    numbers, texts = names.grouped(without_address)
    return Names(np.where(names.codes < 0, -1, numbers).astype(np.int32), texts)


def _mapped(memory: dict[str, AnyArray]) -> tuple[BoolArray, Int64Array]:
    """Which records are of memory that is mapped, not allocated (a batch of a ``DataLoader``'s
    worker, a file), and what of it was mapped after each. The records are in time order.

    PyTorch reports it (``aten/src/ATen/MapAllocator.cpp``) with a Total Allocated of 0 beside that
    of the allocator. After an allocation the allocator has no 0; after a deallocation it has one
    only where nothing else was in use.
    """
    amount, address, total = memory["Bytes"], memory["Addr"], memory["Total Allocated"]
    without = memory["has Total Allocated"] & (memory["Device Type"] == _CPU) & (total == 0)
    is_mapped = without & (amount > 0)
    if not is_mapped.any():
        return is_mapped, total
    rows = np.argsort(address, kind="stable")
    makers = np.append(rows, -1)[_newest(amount[rows] > 0)]
    made = np.empty(rows.size, np.int64)
    made[rows] = np.where(address[makers] == address[rows], makers, -1)
    # Of what was made before the profile nothing but the sum says whose it is.
    held = np.append(total, 0)[_newest(~without)]
    before = np.isin(address, address[is_mapped]) | (held + amount != 0)
    is_mapped |= without & np.where(made < 0, before, is_mapped[made])
    at_start = -amount[is_mapped & (made < 0)].sum()
    return is_mapped, at_start + np.cumsum(np.where(is_mapped, amount, 0))


def _newest(chosen: BoolArray) -> Int64Array:
    """Per row the last chosen one up to it, -1 before the first."""
    return np.maximum.accumulate(np.where(chosen, np.arange(chosen.size), -1))


def _allocators(memory: dict[str, AnyArray], is_mapped: BoolArray) -> Names:
    """``CPU``, ``CUDA:0``, or a number for the types that only PyTorch can name."""
    known = memory["has Device Type"]
    kinds = np.where(is_mapped, _MAPPED, np.where(known, memory["Device Type"], -1))
    pairs = np.stack([kinds, np.where(is_mapped, -1, memory["Device Id"])])
    distinct, place = np.unique(pairs, axis=1, return_inverse=True)
    names = []
    for kind, number in distinct.T.tolist():
        name = "" if kind == -1 else _DEVICES.get(kind, f"device type {kind}")
        names.append(name if number < 0 or kind == _CPU else f"{name}:{number}")
    return Names(place.reshape(-1).astype(np.int32), names)


def stacks(trace: Trace, owners: Owners) -> Columns:
    """The ``stacks`` table of the allocations' stacks."""
    values = trace.collected.names.values
    used = np.unique(owners.stack[owners.stack >= 0])
    ids: list[Int64Array] = [used[:0]]
    depths: list[Int64Array] = [used[:0]]
    frames: list[AnyArray] = [used[:0]]
    here, of = used, used
    level = rows = 0
    while here.size:
        rows += here.size
        if level >= MEAN_DEPTH and rows > MEAN_DEPTH * used.size:
            deeper = [*ids, of][MEAN_DEPTH + 1]
            ids, depths, frames = (part[: MEAN_DEPTH + 1] for part in (ids, depths, frames))
            frames[-1] = np.where(np.isin(ids[-1], deeper), len(values), frames[-1])
            break
        ids.append(of)
        depths.append(np.full(of.size, level, np.int64))
        frames.append(owners.frame[here])
        here = owners.below[here]
        of, here = of[here >= 0], here[here >= 0]
        level += 1
    stack_id, frame = np.concatenate(ids), np.concatenate(frames).astype(np.int64)
    order = np.lexsort((np.concatenate(depths), stack_id))
    codes, place = np.unique(frame[order], return_inverse=True)
    known = [*values, None]
    parsed = [_frame(known[code] if code >= 0 else "") for code in codes.tolist()]
    depth = np.concatenate(depths)[order]
    return stacks_table(stack_id[order], depth, parsed, place.reshape(-1))


def _frame(name: str | None) -> Frame:
    """Function, file and line of a frame; PyTorch writes Python's as ``file(line): function``."""
    if name is None:
        return LEFT_OUT
    match = _PYTHON.fullmatch(name)
    if match is None or len(match["line"]) > 9:
        return without_address(name), "", 0
    return match["function"], match["file"], int(match["line"])
