"""Which compiled program a failed allocation was for.

XLA takes the memory of a program in the pieces of its buffer assignment: one for the temporaries,
one for each result (``xla/service/buffer_assignment.cc``). A request that failed for one of them
has its size to the byte, so programs with an allocation of just that size are those it can have
been for. A report that names the program leaves no doubt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from peakline.findings.memory_answer import failures_of
from peakline.memory.oom import FailedMoment, Failure
from peakline.tables import Profile
from peakline.tables.once import once
from peakline.timing.programs.answer import ProgramAnswer, programs_of

BY_SIZE, BY_NAME = "size", "name"
MOST_MOMENTS = 100
"""So many failures are explained, ..."""
MOST_PROGRAMS = 20
"""... each by so many programs."""
_UNIT = 256
"""The BFC allocator rounds requests up to this (``bfc_allocator.h``)."""


@dataclass(frozen=True, eq=False)
class FailedProgram:
    """A program that a failed request can have been for.

    ``kinds`` are what its allocations of that size hold (temporary, output, ...), empty where the
    report names the program and none has the size; ``bytes`` is the size of these.
    """

    program: ProgramAnswer
    kinds: tuple[str, ...]
    bytes: int


@dataclass(frozen=True, eq=False)
class Explained:
    """A moment at which allocations failed, and the programs that the first was for, those that
    need most first; none where none fits. ``by`` says how they were found, ``count`` how many fit:
    ``programs`` are the first `MOST_PROGRAMS` of them.
    """

    moment: FailedMoment
    programs: tuple[FailedProgram, ...]
    by: str
    count: int

    @property
    def failure(self) -> Failure:
        """The first request that failed."""
        return self.moment.failures[0]


def explained_failures(profile: Profile) -> tuple[Explained, ...]:
    """What each moment of `failures_of` was for, the first `MOST_MOMENTS` of them; empty where the
    profile has no programs.

    Raises InputError when the profile cannot be read.
    """
    result, more = _explained(profile)
    if more:
        text = f"failures beyond the first {MOST_MOMENTS}, for which no program is looked up"
        profile.warn("failures_left_out", text, more, once=True)
    return result


@once
def _explained(profile: Profile) -> tuple[tuple[Explained, ...], int]:
    """The first moments explained, and how many more there are."""
    moments = failures_of(profile) if profile.programs() else ()
    if not moments:
        return (), 0
    known = _Known(programs_of(profile))
    result = tuple(known.explained(moment) for moment in moments[:MOST_MOMENTS])
    return result, len(moments) - len(result)


class _Known:
    """The programs by name, and by the sizes of what they allocate, those that need most first."""

    def __init__(self, programs: Sequence[ProgramAnswer]) -> None:
        self._named: dict[str, list[tuple[ProgramAnswer, dict[int, tuple[str, ...]]]]] = {}
        self._exact: dict[int, list[FailedProgram]] = {}
        self._rounded: dict[int, list[FailedProgram]] = {}
        for one in programs:
            sizes = _allocations(one)
            for name in {one.name, one.label}:
                self._named.setdefault(name, []).append((one, sizes))
            for size, kinds in sizes.items():
                result = FailedProgram(one, kinds, size)
                self._exact.setdefault(size, []).append(result)
                self._rounded.setdefault(-(-size // _UNIT) * _UNIT, []).append(result)

    def explained(self, moment: FailedMoment) -> Explained:
        """What a moment was for."""
        failure = moment.failures[0]
        size, rounded = failure.requested_bytes, failure.rounded_bytes
        if failure.op and (named := self._named.get(failure.op)):
            result = (
                FailedProgram(one, sizes.get(size or -1, ()), size or 0)
                for one, sizes in named[:MOST_PROGRAMS]
            )
            return Explained(moment, tuple(result), BY_NAME, len(named))
        exact = [] if size is None else self._exact.get(size, [])
        # A text that rounds the request may give what the allocator made of it to the byte.
        if not exact and rounded is not None:
            exact = self._rounded.get(rounded, [])
        return Explained(moment, tuple(exact[:MOST_PROGRAMS]), BY_SIZE, len(exact))


def _allocations(program: ProgramAnswer) -> dict[int, tuple[str, ...]]:
    """By size what the allocations in main memory hold that a program takes when it runs."""
    memory = program.memory
    if not memory.is_assigned:
        # A computed peak says nothing of how XLA takes the memory.
        return {}
    buffers = memory.buffers
    kinds = buffers.names("kind")
    rows = np.flatnonzero(buffers.array("memory_space") == memory.space)
    result: dict[int, set[str]] = {}
    pairs = np.stack([buffers.array("allocation_bytes")[rows], kinds.codes[rows]])
    for size, code in np.unique(pairs, axis=1).T.tolist():
        kind = kinds.values[code] if code >= 0 else ""
        if size and kind != "thread-local":
            result.setdefault(size, set()).add(kind)
    return {size: tuple(sorted(names)) for size, names in result.items()}
