"""What changed between the compiled programs of two profiles: memory, costs, what is live.

Programs are the same by name; of several with one name those that need the same go together first,
the others in the order of their numbers. What has no namesake is matched by its name without
numbers, which a runtime may count up, where it is the only one on either side.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from peakline.compare.matching import keyed, match_kinds
from peakline.compare.rows import BYTES, PIECES, GroupDiff, group_rows, resized
from peakline.compare.state import (
    COSTS,
    SIZES,
    AllocatorState,
    Kind,
    MemoryState,
    ProgramState,
    groups_of,
)
from peakline.findings.recording_advice import to_record_programs
from peakline.memory.signatures import normal_shape
from peakline.shown import Brief
from peakline.timing.programs.answer import ProgramAnswer

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.timing.programs.answer import LiveBuffer

_SHAPE = re.compile(r"([a-z]\w*)(\[[^\[\]()]*\])")
_PLACE = re.compile(r"[\d,]*+\}")
_NUMBERS = re.compile(r"(?:\d++\.)++")
"""The numbers of an instruction, read from behind, where there is one place to look at."""
_DIGITS = re.compile(r"\d+")
_MOST_KINDS = 50_000
"""A program with more of them is compared by what is live at its peak alone."""


@dataclass(frozen=True, repr=False)
class ProgramDiff(Brief):
    """What changed in one program; ``before`` or ``after`` is None where it is new or gone.

    ``groups`` are the kinds of values that changed at the peak, what changed most first; ``notes``
    say in one line each what explains several of them, or why two names are one program.
    """

    before: ProgramState | None
    after: ProgramState | None
    groups: tuple[GroupDiff, ...]
    notes: tuple[str, ...]

    @property
    def label(self) -> str:
        """Its label in the later profile, or in the earlier one where it is gone."""
        state = self.before if self.after is None else self.after
        return "" if state is None else state.label

    @property
    def peak_bytes(self) -> int:
        """The larger of the two peaks; one that is not known counts as none."""
        return max((one.peak_bytes or 0 for one in (self.before, self.after) if one), default=0)

    @property
    def peak_delta_bytes(self) -> int | None:
        """The peak after less the peak before, 0 for one that is not there; None where one of the
        two does not say it.
        """
        peaks = [0 if one is None else one.peak_bytes for one in (self.before, self.after)]
        return None if peaks[0] is None or peaks[1] is None else peaks[1] - peaks[0]

    @property
    def is_empty(self) -> bool:
        """Whether nothing changed."""
        if self.before is None or self.after is None:
            return False
        return not self.groups and _figures(self.before) == _figures(self.after)

    def as_json(self) -> dict[str, object]:
        """One of ``programs`` in ``peakline diff --json``."""
        return {
            "module": "" if (one := self.after or self.before) is None else one.name,
            "before": None if self.before is None else self.before.as_json(),
            "after": None if self.after is None else self.after.as_json(),
            "peak_delta_bytes": self.peak_delta_bytes,
            "groups": [group.as_json() for group in self.groups],
            "notes": list(self.notes),
        }


def program_states(profile: Profile) -> tuple[ProgramState, ...]:
    """All figures of every program of the profile, in the order of ``hlo_modules``.

    Raises InputError when the profile cannot be read.
    """
    return tuple(map(_in_full, _answers(profile)))


def with_programs(state: MemoryState, profile: Profile, *, ran: bool = False) -> MemoryState:
    """``state`` with what the programs of the profile need, not what they cost; with ``ran`` only
    of those that the profile saw run.

    Raises InputError when the profile cannot be read.
    """
    result = [one for one in _answers(profile) if not ran or one.run_count]
    why = f"no compiled programs in this profile; {to_record_programs(profile)}"
    if result or ran:
        why = "" if result else "no compiled program ran"
    return replace(state, programs=tuple(map(_state, result)), no_programs=why)


def _answers(profile: Profile) -> list[ProgramAnswer]:
    return [ProgramAnswer(profile, number) for number in range(len(profile.programs() or ()))]


def _without_occurrence(instruction: str) -> str:
    """The name of an instruction without its numbers, and without the place in its result."""
    first, *others = instruction.split("{")
    if others and _PLACE.fullmatch(others[-1]):
        others.pop()
    return "{".join(map(_without_numbers, (first, *others)))


def _without_numbers(name: str) -> str:
    result = _NUMBERS.match(name[::-1])
    return name if result is None else name[: -result.end()]


def value_kind(op_name: str, instruction: str, source: str, kind: str, shape: str) -> Kind:
    """What a value of a program is; of one without an op the instruction without its number.

    ``source`` is file and line, ``shape`` as XLA writes it (``f32[8,32]``).
    """
    op = op_name or _without_occurrence(instruction)
    parts = _SHAPE.fullmatch(shape)
    data_type, size = (parts[1], normal_shape(parts[2])) if parts else ("", shape)
    return Kind(" ".join(filter(None, (op, source))), kind, data_type, size)


def compare_programs(
    before: Sequence[ProgramState], after: Sequence[ProgramState]
) -> tuple[ProgramDiff, ...]:
    """What changed from ``before`` to ``after``, program by program, those that need most first."""
    result = [_diff(*pair) for pair in match_programs(before, after)]
    return tuple(sorted(result, key=lambda one: (-one.peak_bytes, one.label)))


def match_programs(
    before: Sequence[ProgramState], after: Sequence[ProgramState]
) -> list[tuple[ProgramState | None, ProgramState | None]]:
    """The programs in pairs; what is in one of the profiles only is with None."""
    old, new = _in_order(before), _in_order(after)
    pairs: list[tuple[ProgramState | None, ProgramState | None]] = []
    for is_alone, key in ((False, _figures), (False, _name), (True, _unnumbered)):
        result: list[tuple[ProgramState, ProgramState]] = []
        theirs = keyed(new, key)
        for value, mine in keyed(old, key).items():
            same = theirs.get(value, [])
            if not is_alone or len(mine) == len(same) == 1:
                result += zip(mine, same, strict=False)
        pairs += result
        old = _without(old, (one for one, _ in result))
        new = _without(new, (other for _, other in result))
    return [*pairs, *((one, None) for one in old), *((None, one) for one in new)]


def _in_order(states: Iterable[ProgramState]) -> list[ProgramState]:
    """By the number that the runtime gave them; files may have them in any order."""
    return sorted(states, key=lambda one: -1 if one.program_id is None else one.program_id)


def _without(states: Iterable[ProgramState], taken: Iterable[ProgramState]) -> list[ProgramState]:
    # Equal ones may be several programs.
    known = set(map(id, taken))
    return [one for one in states if id(one) not in known]


def _figures(state: ProgramState) -> Hashable:
    return state.name, *(getattr(state, name) for name in (*SIZES, *COSTS))


def _name(state: ProgramState) -> Hashable:
    return state.name


def _unnumbered(state: ProgramState) -> Hashable:
    return _DIGITS.sub("0", state.name)


def _diff(before: ProgramState | None, after: ProgramState | None) -> ProgramDiff:
    one, other = _as_allocator(before), _as_allocator(after)
    pairs = match_kinds(_kinds(before), _kinds(after))
    groups = tuple(
        # The same values with the same shape: another layout or padding made the difference.
        replace(row, change=BYTES) if row.change == PIECES else row
        for row in group_rows(one, other, pairs)
    )
    # What is live in one of them alone has grown for another reason than its size.
    notes = list(resized(row for row in groups if row.before_bytes and row.after_bytes))
    if before is not None and after is not None and before.name != after.name:
        what = f"{before.name!r} before and {after.name!r} after are taken as one"
        notes.insert(0, f"{what}: their names differ in numbers alone")
    return ProgramDiff(before, after, groups, tuple(notes))


def _as_allocator(state: ProgramState | None) -> AllocatorState | None:
    """The state as rows of buffers are compared: of an allocator that holds its values."""
    if state is None:
        return None
    return AllocatorState(state.label, state.peak_bytes or 0, state.groups, kinds=state.kinds)


def _kinds(state: ProgramState | None) -> set[Kind]:
    if state is None:
        return set()
    return {group.kind for group in state.groups} | (state.kinds or set())


def _state(program: ProgramAnswer) -> ProgramState:
    arguments, outputs, temporaries = (
        size if isinstance(size := program.facts[name], int) else None for name in SIZES[1:]
    )
    return ProgramState(
        program.name,
        program.program_id,
        program.peak_bytes,
        arguments,
        outputs,
        temporaries,
        groups=groups_of((_kind(row), row.bytes, 1) for row in program.live),
    )


def _in_full(program: ProgramAnswer) -> ProgramState:
    total = program.cost
    # A computed peak knows no others than those that are live then.
    every = program.distinct(_MOST_KINDS) if program.memory.is_assigned else None
    return replace(
        _state(program),
        flops=total.flops,
        bytes_accessed=total.bytes_accessed,
        kinds=None if every is None else frozenset(map(_kind, every)),
    )


def _kind(row: LiveBuffer) -> Kind:
    return value_kind(row.op_name, row.instruction, row.source, row.kind, row.shape)
