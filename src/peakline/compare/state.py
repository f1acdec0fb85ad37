"""What differences and limits look at: the figures of one allocator, from an answer or a file.

A baseline may be a profile, or a JSON document that keeps only these figures; both are compared
in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from peakline.findings.finding import Finding
from peakline.findings.memory_answer import MemoryAnswer
from peakline.memory.churn import ChurnRows
from peakline.memory.details import MemoryDetails
from peakline.memory.growth.grown import LEAK_BYTES, LEAK_SHARE, SURE
from peakline.memory.growth.pattern import MIN_RISES
from peakline.memory.growth.series import AllocatorGrowth
from peakline.memory.peak.explained import (
    BEFORE_PROFILE,
    RESERVED,
    UNATTRIBUTED,
    AllocatorPeak,
    PeakBuffer,
)
from peakline.memory.signatures import Signature, normal_shape, scope_of
from peakline.shown import Brief, line_of
from peakline.text import allocator_text

SPECIAL = frozenset({BEFORE_PROFILE, RESERVED, UNATTRIBUTED})
"""Rows of a peak that stand for no op."""

SIZES = ("peak_bytes", "argument_bytes", "output_bytes", "temporary_bytes")
COSTS = ("flops", "bytes_accessed")
"""The figures of a compiled program."""

_MIN_STEPS = MIN_RISES + 1
"""Fewer step ends cannot show a leak even where every step leaves something."""

_UNTRACKED = 0.1
"""A peak that leaves out so large a share of the allocations is not known."""


_N = TypeVar("_N", int, float)


class Kind(NamedTuple):
    """What a group of buffers is: op, region, element type and shape (spelled ``[32, 10]``).

    What a profile does not say is the empty string.
    """

    op: str
    region_type: str
    data_type: str
    shape: str

    def __repr__(self) -> str:
        return line_of("Kind", lambda: " ".join(part for part in self if part))

    @property
    def scope(self) -> str:
        """The scope of the op's name."""
        return scope_of(self.op)

    @property
    def title(self) -> str:
        """``model/MatMul float [32, 10]``."""
        return " ".join(filter(None, (self.op or "(no op)", self.data_type, self.shape)))

    def as_json(self) -> dict[str, str]:
        """Its four columns."""
        return self._asdict()


class Purpose(NamedTuple):
    """What buffers of a kind are for and which module made them, where all that live at the peak
    agree; else the empty string.
    """

    category: str
    module: str


NO_PURPOSE = Purpose("", "")


@dataclass(frozen=True, repr=False)
class Group(Brief):
    """Buffers of one kind that live at the peak: their bytes together, and how many they are."""

    kind: Kind
    bytes: int
    count: int

    def as_json(self) -> dict[str, object]:
        """The columns of its kind, its bytes and its count."""
        return {**self.kind.as_json(), "bytes": self.bytes, "count": self.count}


@dataclass(frozen=True)
class Rate:
    """One kind per step: the bytes that every step leaves or allocates, in how many allocations.

    ``count_per_step`` is 0 where allocations are not counted.
    """

    kind: Kind
    bytes_per_step: float
    count_per_step: float = 0

    def as_json(self) -> dict[str, object]:
        """The columns of its kind, and its bytes per step."""
        return {**self.kind.as_json(), "bytes_per_step": round(self.bytes_per_step)}


@dataclass(frozen=True, repr=False)
class AllocatorState(Brief):
    """The figures of one allocator. Sizes are bytes.

    ``groups`` add up to ``peak_bytes``. ``reported``: the allocator reports what is in use (False:
    the buffers are added up; None: not known). ``growth_per_step`` is what leaks add together
    in a step, ``growth_unknown`` why it is None. ``fragmentation`` (0 to 1) is that at the peak,
    the allocator's own or (``fragmentation_rebuilt``) made from addresses. ``peak_unknown`` says
    why the peak is not known, empty where it is. ``kinds`` are all kinds that the profile has,
    at the peak or not; None where only those at the peak are known. ``steps`` is how many steps
    the profile has. ``purposes`` are those of kinds at the peak, ``categories`` the bytes of each
    category there; both are empty where nothing is known.
    """

    allocator: str
    peak_bytes: int
    groups: tuple[Group, ...] = ()
    peak_unknown: str = ""
    reported: bool | None = None
    steps: int | None = None
    growth_per_step: float | None = None
    growth_unknown: str = ""
    leaks: tuple[Rate, ...] = ()
    fragmentation: float | None = None
    fragmentation_rebuilt: bool = False
    allocated_per_step: float | None = None
    churn: tuple[Rate, ...] = field(default=(), repr=False)
    kinds: frozenset[Kind] | None = field(default=None, repr=False)
    purposes: Mapping[Kind, Purpose] = field(default_factory=dict, repr=False)
    categories: Mapping[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The allocator as a person reads it."""
        return allocator_text(self.allocator)

    @property
    def turnover(self) -> float | None:
        """How many times its peak the allocator hands out in a step."""
        if self.allocated_per_step is None or not self.peak_bytes:
            return None
        return self.allocated_per_step / self.peak_bytes

    def as_json(self) -> dict[str, object]:
        """The figures, without what is behind them; None where they are not known."""
        growth = self.growth_per_step
        allocated = self.allocated_per_step
        return {
            "allocator": self.allocator,
            "peak_bytes": self.peak_bytes,
            "reported": self.reported,
            "steps": self.steps,
            "growth_per_step_bytes": None if growth is None else round(growth),
            "fragmentation_at_peak": self.fragmentation,
            "allocated_per_step_bytes": None if allocated is None else round(allocated),
        }


@dataclass(frozen=True, repr=False)
class ProgramState(Brief):
    """The figures of one program. Sizes are bytes, None where the program does not say them.

    ``groups`` are what is live when it needs most, together ``peak_bytes``; their ops are named
    with the line of the user's program. ``kinds`` are all that it has, live then or not, None where
    that is not known. ``flops`` and ``bytes_accessed`` are those of one run.
    """

    name: str
    program_id: int | None = None
    peak_bytes: int | None = None
    argument_bytes: int | None = None
    output_bytes: int | None = None
    temporary_bytes: int | None = None
    flops: float | None = None
    bytes_accessed: float | None = None
    groups: tuple[Group, ...] = ()
    kinds: frozenset[Kind] | None = field(default=None, repr=False)

    @property
    def label(self) -> str:
        """Its name, with the id in parentheses where there is one."""
        return self.name + ("" if self.program_id is None else f"({self.program_id})")

    def as_json(self) -> dict[str, object]:
        """Its figures, without what is behind them."""
        figures = ("program_id", *SIZES, *COSTS)
        return {"module": self.name, **{name: getattr(self, name) for name in figures}}


@dataclass(frozen=True, repr=False)
class MemoryState(Brief):
    """The figures of every allocator, and the findings; ``nothing`` says why there are none.

    ``programs`` are those of the compiled programs, where they are looked at; ``no_programs`` says
    why there are none.
    """

    allocators: tuple[AllocatorState, ...]
    findings: tuple[Finding, ...] = ()
    nothing: str = ""
    programs: tuple[ProgramState, ...] = ()
    no_programs: str = ""


def state_of(answer: MemoryAnswer) -> MemoryState:
    """The figures of a memory answer."""
    # Details are one per allocator; an answer without records has neither.
    pairs = zip(answer.allocators, answer.details, strict=True)
    nothing = "" if answer.allocators else answer.nothing or "no memory events in this profile"
    allocators = tuple(_allocator(peak, detail) for peak, detail in pairs)
    return MemoryState(allocators, answer.findings, nothing)


def groups_of(rows: Iterable[tuple[Kind, int, int]]) -> tuple[Group, ...]:
    """Rows of kind, bytes and count as groups, most bytes first; equal kinds are added up."""
    groups = (Group(*row) for row in _added_up(rows))
    return tuple(sorted(groups, key=lambda group: (-group.bytes, group.kind)))


def rates_of(rows: Iterable[tuple[Kind, float, float]]) -> tuple[Rate, ...]:
    """Rows of kind, bytes and count per step, largest first; equal kinds are added up."""
    result = (Rate(*row) for row in _added_up(rows))
    return tuple(sorted(result, key=lambda rate: (-rate.bytes_per_step, rate.kind)))


def purposes_of(rows: Iterable[tuple[Kind, Purpose]]) -> dict[Kind, Purpose]:
    """What all rows of a kind agree about; nothing where nothing is known."""
    result: dict[Kind, Purpose] = {}
    for kind, one in rows:
        known = result.get(kind, one)
        same = (a if a == b else "" for a, b in zip(known, one, strict=True))
        result[kind] = Purpose(*same)
    return result if any(map(any, result.values())) else {}


def _added_up(rows: Iterable[tuple[Kind, _N, _N]]) -> Iterator[tuple[Kind, _N, _N]]:
    sums: dict[Kind, tuple[_N, _N]] = {}
    for kind, size, count in rows:
        known = sums.get(kind)
        sums[kind] = (size, count) if known is None else (known[0] + size, known[1] + count)
    return ((kind, size, count) for kind, (size, count) in sums.items())


def _allocator(peak: AllocatorPeak, detail: MemoryDetails) -> AllocatorState:
    leaks, unknown = _growth(peak, detail.growth, is_leaking=bool(detail.grown.leak))
    fragmentation, rebuilt = peak.fragmentation_at_peak, False
    if fragmentation is None and detail.fragmentation is not None:
        fragmentation, rebuilt = detail.fragmentation.at(peak.peak_time_ps) or 0.0, True
    return AllocatorState(
        allocator=peak.allocator,
        peak_bytes=peak.peak_bytes,
        groups=groups_of(
            (kind_of(buffer), buffer.bytes, buffer.count) for buffer in peak.peak_buffers
        ),
        peak_unknown=_peak_unknown(peak),
        reported=peak.reported,
        steps=detail.churn.steps,
        growth_per_step=None if unknown else sum(leak.bytes_per_step for leak in leaks),
        growth_unknown=unknown,
        leaks=leaks,
        fragmentation=fragmentation,
        fragmentation_rebuilt=rebuilt,
        allocated_per_step=detail.churn.bytes_per_step,
        churn=rates_of(
            (
                _kind(row.signature),
                row.bytes / detail.churn.steps,
                row.allocations / detail.churn.steps,
            )
            for row in detail.churn.signatures.at_least(allocations=1)
        )
        if detail.churn.steps
        else (),
        kinds=_kinds(detail.churn.signatures),
        purposes=purposes_of(
            (kind_of(buffer), Purpose(buffer.category, buffer.module))
            for buffer in peak.peak_buffers
        ),
        categories=peak.categories,
    )


def kind_of(buffer: PeakBuffer) -> Kind:
    """What a row of a peak is, whatever step allocated it."""
    return Kind(buffer.op, buffer.region_type, buffer.data_type, normal_shape(buffer.shape))


def _peak_unknown(peak: AllocatorPeak) -> str:
    lost = peak.untracked_allocations
    if peak.reported or lost <= _UNTRACKED * (peak.allocations or 1):
        return ""
    return f"{lost} records have no id and no address, so their buffers cannot be followed"


def _growth(
    peak: AllocatorPeak, growth: AllocatorGrowth | None, *, is_leaking: bool
) -> tuple[tuple[Rate, ...], str]:
    """What leaks, or why that is not known. Leaks that deserve a finding but have none are none."""
    if growth is None:
        return (), "nothing records where steps begin"
    lost = peak.untracked_allocations
    if lost > _UNTRACKED * (peak.allocations + peak.deallocations):
        return (), f"{lost} records have no id and no address, so frees cannot be followed"
    steps = len(growth.marks)
    if steps < _MIN_STEPS and not is_leaking:
        return (), f"there are {steps} steps; {_MIN_STEPS} are needed to see growth"
    leaks = growth.leaks
    if not is_leaking:
        least = max(LEAK_BYTES, LEAK_SHARE * growth.peak_bytes)
        large = [leak for leak in leaks if leak.pattern.bytes_per_step >= least]
        if not peak.reported and any(leak.pattern.confidence >= SURE for leak in large):
            return (), (
                f"no end of {large[0].signature.title} is recorded, and the allocator does not "
                "report what is in use"
            )
        leaks = tuple(leak for leak in leaks if leak not in large)
    return rates_of((_kind(leak.signature), leak.pattern.bytes_per_step, 0) for leak in leaks), ""


def _kind(signature: Signature) -> Kind:
    return Kind(signature.op, signature.region_type, signature.data_type, signature.shape)


def _kinds(rows: ChurnRows) -> frozenset[Kind]:
    """What the rows are of, without a row for each."""
    table, codes = rows.signatures, rows.codes
    columns = (
        (table.ops, table.op),
        (table.region_types, table.region_type),
        (table.data_types, table.data_type),
        (table.shapes, table.shape),
    )
    texts = ([values[number] for number in of[codes].tolist()] for values, of in columns)
    return frozenset(map(Kind, *texts))
