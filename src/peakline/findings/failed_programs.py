"""Which compiled program a failed allocation was for.

XLA takes the memory of a program in the pieces of its buffer assignment: one for the temporaries,
one for each result (``xla/service/buffer_assignment.cc``). A request that failed for one of them
has its size to the byte, so programs with an allocation of just that size are those it can have
been for. A report that names the program leaves no doubt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from peakline.findings.memory_answer import failures_of
from peakline.memory.oom import FailedMoment, Failure
from peakline.tables import Profile
from peakline.tables.once import once
from peakline.timing.program_answer import ProgramAnswer, programs_of

BY_SIZE, BY_NAME = "size", "name"
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
    need most first; none where none fits. ``by`` says how they were found.
    """

    moment: FailedMoment
    programs: tuple[FailedProgram, ...]
    by: str

    @property
    def failure(self) -> Failure:
        """The first request that failed."""
        return self.moment.failures[0]


@once
def explained_failures(profile: Profile) -> tuple[Explained, ...]:
    """What each moment of `failures_of` was for; empty where the profile has no programs.

    Raises InputError when the profile cannot be read.
    """
    moments = failures_of(profile)
    if not moments or not profile.programs():
        return ()
    known = [(one, _allocations(one)) for one in programs_of(profile)]
    return tuple(_explained(moment, known) for moment in moments)


_Known = list[tuple[ProgramAnswer, dict[int, tuple[str, ...]]]]


def _explained(moment: FailedMoment, known: _Known) -> Explained:
    failure = moment.failures[0]
    size, rounded = failure.requested_bytes, failure.rounded_bytes
    name = failure.op or None
    named = [(one, sizes) for one, sizes in known if name in (one.name, one.label)]
    if named:
        found = (FailedProgram(one, sizes.get(size or -1, ()), size or 0) for one, sizes in named)
        return Explained(moment, tuple(found), BY_NAME)
    exact = _of_size(known, lambda each: each == size)
    # A text that rounds the request may give what the allocator made of it to the byte.
    if not exact and rounded is not None:
        exact = _of_size(known, lambda each: -(-each // _UNIT) * _UNIT == rounded)
    return Explained(moment, exact, BY_SIZE)


def _of_size(known: _Known, fits: Callable[[int], bool]) -> tuple[FailedProgram, ...]:
    return tuple(
        FailedProgram(one, kinds, size)
        for one, sizes in known
        for size, kinds in sizes.items()
        if fits(size)
    )


def _allocations(program: ProgramAnswer) -> dict[int, tuple[str, ...]]:
    """By size what the allocations in main memory hold that a program takes when it runs."""
    memory = program.memory
    if not memory.is_assigned:
        # A computed peak says nothing of how XLA takes the memory.
        return {}
    buffers = memory.buffers
    kinds = buffers.names("kind")
    rows = np.flatnonzero(buffers.array("memory_space") == memory.space)
    found: dict[int, set[str]] = {}
    pairs = np.stack([buffers.array("allocation_bytes")[rows], kinds.codes[rows]])
    for size, code in np.unique(pairs, axis=1).T.tolist():
        kind = kinds.values[code] if code >= 0 else ""
        if size and kind != "thread-local":
            found.setdefault(size, set()).add(kind)
    return {size: tuple(sorted(names)) for size, names in found.items()}
