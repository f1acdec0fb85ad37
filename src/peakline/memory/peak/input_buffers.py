"""What stages of tf.data hold at the peak: the elements of a shuffle's buffer, a cache, a prefetch.

An iterator's event says how many elements it holds (``buffered_elements``), of what shapes and
types (``GetTraceMeMetadata`` of tensorflow/core/kernels/data and tensorflow/core/data). The buffers
are those of such an element's size that live at the peak: they have no op of their own where Python
or a copy made them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

import numpy as np

from peakline.arrays import BoolArray, IntpArray
from peakline.memory.peak.batches_ahead import ENOUGH
from peakline.memory.peak.buffers import AtPeak
from peakline.memory.signatures import History
from peakline.tables import Profile
from peakline.tables.once import once
from peakline.trace.events import read_with_steps, trace_of

_ITERATOR = "Iterator::"
_OPENED = re.compile(r"\[\d+\](?=::|$)")
_HELD, _SHAPES, _TYPES, _DATASET, _BATCH = (
    "buffered_elements", "shapes", "types", "name", "batch_size",
)  # fmt: skip
_LIMITS = ("buffer_size", "buffer_limit", "parallelism")
_SIZES = {
    "bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "half": 2, "bfloat16": 2,
    "int32": 4, "uint32": 4, "float": 4, "int64": 8, "uint64": 8, "double": 8, "complex64": 8,
    "complex128": 16,
}  # fmt: skip
"""Bytes of an element of a type, as ``DataTypeString`` writes it."""
MANY = 8
"""Fewer elements are what a pipeline works on."""
_SMALL = 1 << 10
"""Parts of an element below this are labels and the like."""
_ENOUGH = 0.5
"""So many of the buffers of the elements that a stage says it holds have to be there."""
_BATCHES = re.compile(r"(?:padded|parallel|mapand|ragged)?batch", re.IGNORECASE)


@dataclass(frozen=True)
class Holding:
    """``number`` elements that the stage ``name`` holds after an event at ``time_ps``: ``parts``
    are the bytes of their tensors, a pair of the bytes that are known and whether the first
    dimension multiplies them; ``limit`` is the most that it may hold, 0 where it does not say.
    """

    name: str
    time_ps: int
    number: int
    parts: tuple[tuple[int, bool], ...]
    limit: int

    @property
    def kind(self) -> str:
        """``Shuffle`` of ``Iterator::Root::Prefetch::Shuffle``."""
        return self.name.rpartition("::")[2]

    @property
    def is_cache(self) -> bool:
        """Whether it is ``Dataset.cache``, whose elements stay."""
        return "cache" in self.kind.lower()


@dataclass(frozen=True, eq=False)
class HeldBuffers:
    """``rows`` are the records of the buffers of a stage, of ``bytes`` together; ``of_batches``
    says whether an element is a batch: made by one, or what a step takes.
    """

    holding: Holding
    rows: IntpArray
    bytes: int
    of_batches: bool


@dataclass(frozen=True, eq=False)
class Pipelines:
    """The ``holdings`` of all stages over time, and the ``names`` of the stages."""

    holdings: tuple[Holding, ...]
    names: frozenset[str]

    def at(self, time_ps: int) -> list[Holding]:
        """What each stage held last before; those that others share their elements with first."""
        last: dict[str, Holding] = {}
        for one in self.holdings:
            if one.time_ps <= time_ps:
                last[one.name] = one
        many = (one for one in last.values() if one.number >= MANY)
        return sorted(many, key=lambda one: (not one.is_cache, -one.number))

    def of_batches(self, name: str) -> bool:
        """Whether a stage below makes batches, or none above does."""
        own = name + "::"
        below = [one[len(own) :] for one in self.names if one.startswith(own)]
        if _has_batch(below):
            return True
        parts = name.split("::")
        return not any(_BATCHES.match(part) for part in parts[:-1])


def _has_batch(paths: Iterable[str]) -> bool:
    return any(_BATCHES.match(part) for path in paths for part in path.split("::"))


@once
def pipelines_of(profile: Profile) -> Pipelines | None:
    """The stages of tf.data that say what they hold; None where none does.

    Raises InputError when the profile cannot be read.
    """
    if not {"events", "event_stats"} <= set(profile.tables):
        return None
    read_with_steps(profile)
    trace = trace_of(profile)
    if trace.source != "events" or not any(one.startswith(_ITERATOR) for one in trace.name.values):
        return None
    wanted = frozenset((_HELD, _SHAPES, _TYPES, _BATCH, *_LIMITS))
    stats = profile.typed_stats(wanted)
    place = trace.places(stats.array("event_id"))
    names, texts, numbers = stats.names("name"), stats.names("text"), stats.array("integer")
    values: dict[int, dict[str, int | str]] = {}
    for at, name, text, integer in zip(
        place.tolist(), names.codes.tolist(), texts.codes.tolist(), numbers.tolist(), strict=True
    ):
        if at >= 0:
            value = texts.values[text] if text >= 0 else integer
            values.setdefault(at, {})[names.values[name]] = value
    stages = {at: _OPENED.sub("", trace.name.values[trace.name.codes[at]]) for at in values}
    stages = {at: name for at, name in stages.items() if name.startswith(_ITERATOR)}
    batches = {
        name: int(values[at][_BATCH])
        for at, name in stages.items()
        if isinstance(values[at].get(_BATCH), int)
    }
    result = []
    for at in sorted(stages, key=lambda at: int(trace.start[at])):
        own, name = values[at], stages[at]
        number = own.get(_HELD)
        if isinstance(number, int) and number > 0:
            parts = _parts(str(own.get(_SHAPES, "")), str(own.get(_TYPES, "")))
            below = {
                size for stage, size in batches.items() if f"{stage}::".startswith(f"{name}::")
            }
            if len(below) == 1:
                (many,) = below
                parts = tuple((size * (many if free else 1), False) for size, free in parts)
            limits = [own[one] for one in _LIMITS if isinstance(own.get(one), int)]
            limit = int(limits[0]) if limits else 0
            result.append(Holding(name, int(trace.start[at]), number, parts, limit))
    return Pipelines(tuple(result), frozenset(stages.values())) if result else None


def _parts(shapes: str, types: str) -> tuple[tuple[int, bool], ...]:
    """The bytes of each tensor of an element: of ``[?,96] []`` and ``float int64``."""
    result = []
    forms, kinds = re.findall(r"\[([^\]]*)\]", shapes), types.split()
    if len(forms) != len(kinds):
        return ()
    for form, kind in zip(forms, kinds, strict=True):
        sides = form.split(",") if form else []
        if kind not in _SIZES or "?" in sides[1:]:
            continue
        free = sides[:1] == ["?"]
        known = sides[1:] if free else sides
        if all(side.isdigit() for side in known):
            result.append((prod(map(int, known)) * _SIZES[kind], free))
    return tuple(result)


def may_hold(history: History, result: AtPeak, least: float) -> bool:
    """Whether ``least`` bytes of the peak are in buffers of sizes that several have, as those are
    that a stage holds: without it, what stages say need not be read.
    """
    made = result.requested[~history.was_there[result.rows]]
    sizes, counts = np.unique(made, return_counts=True)
    return int((sizes * counts)[counts > ENOUGH].sum()) >= least


def held_buffers(history: History, result: AtPeak, pipelines: Pipelines) -> list[HeldBuffers]:
    """What the stages hold of the buffers at the peak, most bytes first; each buffer once."""
    time = int(history.events.array("time_ps")[result.row])
    free = ~history.was_there[result.rows]
    # A step's own tensors have a step, what works ahead has none.
    order = np.argsort(result.step >= 0, kind="stable")
    made = []
    for one in pipelines.at(time):
        mine = np.zeros(result.rows.size, np.bool_)
        for size, is_free in one.parts:
            places = order[_of_size(result, free & ~mine, size, is_free, one.number)[order]]
            if places.size >= _ENOUGH * one.number:
                mine[places[: one.number]] = True
        if mine.any():
            free &= ~mine
            total = int(result.bytes[mine].sum())
            rows = result.rows[mine]
            made.append(HeldBuffers(one, rows, total, pipelines.of_batches(one.name)))
    return sorted(made, key=lambda one: -one.bytes)


def _of_size(result: AtPeak, among: BoolArray, size: int, is_free: bool, number: int) -> BoolArray:
    """Which of them are of this many bytes, or of a multiple that as many have as are held."""
    if size and not is_free and size >= _SMALL:
        same: BoolArray = among & (result.requested == size)
        return same
    if not size or not is_free:
        return np.zeros(among.size, np.bool_)
    fits = among & (result.requested % size == 0) & (result.requested >= max(size, _SMALL))
    sizes = Counter(result.requested[fits].tolist())
    often = [one for one, times in sizes.items() if times >= _ENOUGH * number]
    if not often:
        return np.zeros(among.size, np.bool_)
    largest: BoolArray = fits & (result.requested == max(often))
    return largest
