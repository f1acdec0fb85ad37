"""What there is to say about the compiled programs of a profile: memory, costs, runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from peakline.hlo.memory import ProgramMemory, memory_of
from peakline.hlo.row_costs import RowCosts, row_costs
from peakline.timing.program_runs import program_runs

if TYPE_CHECKING:
    from peakline.tables import Columns, Profile


@dataclass(frozen=True, slots=True)
class LiveBuffer:
    """What holds ``bytes`` of memory when a program needs most, padding included.

    What the program does not say is empty, or None.
    """

    instruction: str
    opcode: str
    op_name: str
    source_file: str
    source_line: int | None
    bytes: int
    unpadded_bytes: int | None
    shape: str
    kind: str

    @property
    def source(self) -> str:
        """File and line, the file without its folders; empty where they are not known."""
        name = self.source_file.replace("\\", "/").rpartition("/")[2]
        return f"{name}:{self.source_line}" if name and self.source_line else name


class ProgramAnswer:
    """One program: ``number`` is its row in ``hlo_modules``."""

    def __init__(self, profile: Profile, number: int) -> None:
        programs = profile.programs()
        if programs is None:
            raise IndexError(number)
        self._profile, self._programs, self.number = profile, programs, number
        self.label: str = programs.label(number)
        """Its name, with the id in parentheses where there is one."""
        self.program_id: int | None = programs.program_id(number)
        self.facts: dict[str, object] = self.memory.module.to_pylist()[0]
        """Its row of ``hlo_modules``, without what is derived."""
        self.name = str(self.facts["name"])

    @property
    def memory(self) -> ProgramMemory:
        """What it needs."""
        return memory_of(self._profile, self.number)

    @property
    def peak_bytes(self) -> int | None:
        """The most main memory that it needs at one time; None where it does not say."""
        return self.memory.peak_bytes if self.memory.is_known else None

    @property
    def costs(self) -> RowCosts:
        """What its instructions cost."""
        return row_costs(self._profile, self.number)

    @cached_property
    def runs(self) -> Columns:
        """When it ran: ``device``, ``start_ps``, ``end_ps``."""
        every = program_runs(self._profile)
        return every.take(every.array("program") == self.number)

    @property
    def run_count(self) -> int | None:
        """How often the profile saw it run; None where it records no run of any program."""
        return self.runs.rows if program_runs(self._profile).rows else None

    @property
    def run_ps(self) -> int:
        """The time of all its runs."""
        return int((self.runs.array("end_ps") - self.runs.array("start_ps")).sum())

    @cached_property
    def live(self) -> list[LiveBuffer]:
        """What holds memory at its peak, the largest first; together `peak_bytes`."""
        found = self.memory.live
        wanted = {"name", "opcode", "op_name", "source_file", "source_line"}
        listed = self._programs.read(self.number, "hlo_instructions", wanted)
        rows = np.array([one.instruction for one in found], np.int64)
        known = rows >= 0
        texts = listed.take(rows[known]).lists() if known.any() else dict[str, list[object]]()
        at = np.cumsum(known) - 1
        buffers = self.memory.buffers
        mine = buffers.take(np.array([one.buffer for one in found], np.int64)).lists()
        made = []
        for place, one in enumerate(found):
            said = (
                {name: values[at[place]] for name, values in texts.items()} if known[place] else {}
            )
            made.append(
                LiveBuffer(
                    f"{said.get('name') or ''}{mine['shape_index'][place]}",
                    said.get("opcode") or "",
                    said.get("op_name") or "",
                    said.get("source_file") or "",
                    said.get("source_line"),
                    one.bytes,
                    mine["unpadded_bytes"][place],
                    mine["shape"][place] or "",
                    one.kind,
                )
            )
        return made

    @property
    def padding_bytes(self) -> int:
        """Of what is live at the peak the bytes beyond its elements.

        Of an allocation that holds several values the largest counts.
        """
        return sum(
            one.bytes - one.unpadded_bytes
            for one in self.live
            if one.unpadded_bytes is not None and one.unpadded_bytes < one.bytes
        )

    def by_source(self) -> list[tuple[str, int, int]]:
        """Lines of the user's program with what they have live at the peak: line, count, bytes."""
        return _summed((one.source, one.bytes) for one in self.live if one.source)

    def by_scope(self) -> list[tuple[str, int, int]]:
        """The same by the scope of the op: its name without the last part."""
        return _summed(
            (one.op_name.rpartition("/")[0], one.bytes) for one in self.live if "/" in one.op_name
        )


def _summed(parts: Iterable[tuple[str, int]]) -> list[tuple[str, int, int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for key, size in parts:
        found[key].append(size)
    rows = [(key, len(sizes), sum(sizes)) for key, sizes in found.items()]
    return sorted(rows, key=lambda row: (-row[2], row[0]))


def programs_of(profile: Profile) -> list[ProgramAnswer]:
    """All programs of the profile, those that need most first, those that do not say it last.

    Raises InputError when the profile cannot be read.
    """
    every = [ProgramAnswer(profile, number) for number in range(len(profile.programs() or ()))]
    return sorted(every, key=lambda one: (-(one.peak_bytes or -1), one.label))
