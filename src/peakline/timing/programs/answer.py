"""What there is to say about the compiled programs of a profile: memory, costs, runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from peakline import hlo
from peakline.hlo.memory import LiveSet, ProgramMemory, memory_of
from peakline.hlo.row_costs import ExecutedCost, executed_cost
from peakline.shown import Brief
from peakline.tables.programs import INSTRUCTIONS
from peakline.text import source_text
from peakline.timing.programs.runs import program_runs, run_totals

if TYPE_CHECKING:
    from peakline.arrays import Int64Array
    from peakline.hlo.advice import Advice
    from peakline.hlo.packing import Repacking
    from peakline.tables import Columns, Names, Profile


_LITERAL = f"{INSTRUCTIONS}.literal"
_MANY_EVENTS = 20_000


@dataclass(frozen=True, slots=True, repr=False)
class LiveBuffer(Brief):
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
        return source_text(self.source_file, self.source_line)


@dataclass(frozen=True)
class Constant:
    """A constant of a program; ``embedded``: in the code of a fusion. ``digest`` stands for its
    shape and values.
    """

    program: str
    instruction: str
    shape: str
    bytes: int
    embedded: bool
    digest: str


class ProgramAnswer:
    """One program: ``number`` is its row in ``hlo_modules``."""

    __retained__ = "_programs facts name label graph runs live _origins"

    def __init__(self, profile: Profile, number: int) -> None:
        programs = profile.programs()
        if programs is None:
            raise IndexError(number)
        self._profile, self._programs, self.number = profile, programs, number
        self.program_id: int | None = programs.program_id(number)
        self.facts: dict[str, object] = self.memory.module.to_pylist()[0]
        """Its row of ``hlo_modules``, without what is derived."""
        self.name = str(self.facts["name"])
        self.graph: str = programs.label(number)
        """What its graph is called: without a name where a file of one program gives none."""
        # A file of one program does not name it beside what it holds.
        labelled = bool(programs.name(number))
        self.label: str = self.graph if labelled else self.name + self.graph
        """Its name, with the id in parentheses where there is one."""

    @property
    def memory(self) -> ProgramMemory:
        """What it needs."""
        return memory_of(self._profile, self.number)

    @property
    def peak_bytes(self) -> int | None:
        """The most main memory that it needs at one time; None where it does not say."""
        return self.memory.peak_bytes if self.memory.is_known else None

    @cached_property
    def _constants(self) -> tuple[int, int]:
        """The bytes of constants outside of fusions and in them."""
        read = partial(self._programs.read, self.number)
        table = read("hlo_instructions", frozenset(("opcode", "computation_id", "bytes")))
        rows = np.flatnonzero(
            table.names("opcode").per_row(lambda one: one == "constant", np.bool_)
        )
        fused = read("hlo_computations", frozenset(("is_fusion",))).array("is_fusion")
        is_fused = fused[table.array("computation_id")[rows]]
        size = table.array("bytes")[rows]
        return int(size[~is_fused].sum()), int(size[is_fused].sum())

    def large_constants(self, least: int) -> list[Constant]:
        """Its constants of so many bytes and more whose values it holds: a dump may leave them
        out.
        """
        read = partial(self._programs.read, self.number)
        wanted = frozenset(("name", "shape", "bytes", "computation_id"))
        table = read("hlo_instructions", wanted)
        size = table.array("bytes")
        if not (size >= least).any():
            return []
        fused = read("hlo_computations", frozenset(("is_fusion",))).array("is_fusion")
        literals = self._programs.parts(self.number, [f"{_LITERAL}.@span"])[_LITERAL]
        spans, rows = literals.spans("@span"), literals.parent
        data = self._programs.data(self.number)
        large = np.flatnonzero((size[rows] >= least) & (spans.length >= size[rows]))
        result = []
        for place in large.tolist():
            row, begin = int(rows[place]), int(spans.start[place])
            values = data[begin : begin + int(spans.length[place])]
            result.append(
                Constant(
                    program=self.label,
                    instruction=str(table.names("name")[row]),
                    shape=str(table.names("shape")[row]),
                    bytes=int(size[row]),
                    embedded=bool(fused[table.array("computation_id")[row]]),
                    digest=blake2b(values.data).hexdigest(),
                )
            )
        return result

    @property
    def embedded_bytes(self) -> int:
        """The constants in its fusions: a part of the code, in no allocation, so that neither the
        buffer assignment nor the peak has them.
        """
        return self._constants[1]

    @property
    def constant_bytes(self) -> int:
        """All its constants, those in its fusions too."""
        assigned = self.facts["constant_bytes"]
        outside = assigned if isinstance(assigned, int) else self._constants[0]
        return outside + self.embedded_bytes

    @property
    def advice(self) -> tuple[Advice, ...]:
        """What would lower what it needs, most bytes first; estimates."""
        return hlo.advice_of(self._profile, self.number)

    @property
    def repacking(self) -> Repacking:
        """How its temporaries are packed, and packed again."""
        return hlo.repack(self.memory)

    @property
    def is_large(self) -> bool:
        """Whether packing again takes so long that it is done only on request."""
        return sum(heap.events.rows for heap in self.memory.heaps) > _MANY_EVENTS

    @property
    def cost(self) -> ExecutedCost:
        """What one run of it costs, with the turns that loops take."""
        return executed_cost(self._profile, self.number)

    @cached_property
    def runs(self) -> Columns:
        """When it ran: ``device``, ``start_ps``, ``end_ps``."""
        every = program_runs(self._profile)
        return every.take(every.array("program") == self.number)

    @property
    def run_count(self) -> int | None:
        """How often the profile saw it run; None where it records no run of any program."""
        if not program_runs(self._profile).rows:
            return None
        return int(run_totals(self._profile)[0][self.number])

    @property
    def run_ps(self) -> int:
        """The time of all its runs."""
        return int(run_totals(self._profile)[1][self.number])

    @property
    def live_count(self) -> int:
        """How many values or allocations hold memory at its peak."""
        return int(self.memory.live_set.bytes.size)

    @cached_property
    def live(self) -> list[LiveBuffer]:
        """What holds memory at its peak, the largest first; together `peak_bytes`."""
        return self.largest(self.live_count)

    @cached_property
    def _origins(self) -> Columns:
        """What the instructions of `live` come from, in the order of those that are known."""
        live = self.memory.live_set.instruction
        wanted = {"op_name", "source_file", "source_line"}
        return self._programs.instructions(self.number, live[live >= 0], wanted)

    def largest(self, most: int) -> list[LiveBuffer]:
        """The first ``most`` of `live`."""
        return self._described(self.memory.live_set.take(np.arange(min(most, self.live_count))))

    def distinct(self, most: int) -> list[LiveBuffer] | None:
        """One value in main memory of those that are equal in op, line, kind and shape, at the peak
        or not; so that a large program is a short list. None where there are more than ``most``.
        """
        memory, buffers = self.memory, self.memory.buffers
        kinds, known = buffers.names("kind"), buffers.is_valid("instruction_id")
        rows = np.flatnonzero(
            (buffers.array("memory_space") == memory.space)
            & ~kinds.per_row("thread-local".__eq__, np.bool_)
        )
        made_by = np.where(known, buffers.array("instruction_id"), -1)[rows]
        wanted = {"name", "op_name", "source_file", "source_line"}
        listed = self._programs.read(self.number, "hlo_instructions", wanted)
        op = listed.names("op_name").codes
        # What has no op is known by its instruction.
        name = np.where(op < 0, listed.names("name").codes, -1)
        line = np.where(listed.is_valid("source_line"), listed.array("source_line"), -1)
        texts = (op, name, listed.names("source_file").codes, line)
        table = np.stack(
            [
                *(np.append(column, -1)[made_by] for column in texts),
                kinds.codes[rows],
                buffers.names("shape").codes[rows],
            ]
        )
        first = np.unique(table, axis=1, return_index=True)[1]
        if first.size > most:
            return None
        rows, made_by = rows[first], made_by[first]
        return self._described(
            LiveSet(buffers.array("bytes")[rows], rows, made_by, kinds.take(rows))
        )

    def _described(self, result: LiveSet) -> list[LiveBuffer]:
        known = np.flatnonzero(result.instruction >= 0)
        said: list[dict[str, Any]] = [{} for _ in range(result.bytes.size)]
        wanted = {"name", "opcode", "op_name", "source_file", "source_line"}
        rows = self._programs.instructions(self.number, result.instruction[known], wanted)
        for place, row in zip(known.tolist(), rows.to_pylist(), strict=True):
            said[place] = row
        values = self.memory.buffers.take(result.buffer).to_pylist()
        sizes, kinds = result.bytes.tolist(), result.kind.to_list()
        return [
            LiveBuffer(
                f"{one.get('name') or ''}{value['shape_index']}",
                one.get("opcode") or "",
                one.get("op_name") or "",
                one.get("source_file") or "",
                one.get("source_line"),
                size,
                value["unpadded_bytes"],
                value["shape"] or "",
                kind or "",
            )
            for one, value, size, kind in zip(said, values, sizes, kinds, strict=True)
        ]

    @property
    def padding_bytes(self) -> int:
        """Of what is live at the peak the bytes beyond its elements.

        Of an allocation that holds several values the largest counts.
        """
        result, buffers = self.memory.live_set, self.memory.buffers
        known = buffers.is_valid("unpadded_bytes")[result.buffer]
        size, own = (buffers.array(name)[result.buffer] for name in ("bytes", "unpadded_bytes"))
        beyond = size - own
        return int(np.maximum(beyond[known], 0).sum())

    def by_source(self) -> list[tuple[str, int, int]]:
        """Lines of the user's program with what they have live at the peak: line, count, bytes."""
        line = self._origins.array("source_line")
        return self._summed(self._origins.names("source_file"), line, source_text)

    def by_scope(self) -> list[tuple[str, int, int]]:
        """The same by the scope of the op: its name without the last part."""
        return self._summed(
            self._origins.names("op_name"), None, lambda name, _: name.rpartition("/")[0]
        )

    def _summed(
        self, texts: Names, numbers: Int64Array | None, label: Callable[[str, int], str]
    ) -> list[tuple[str, int, int]]:
        """What is live at the peak by what its instruction says: label, count, bytes."""
        result = self.memory.live_set
        known = result.instruction >= 0
        size, code = result.bytes[known], texts.codes.astype(np.int64)
        number = np.zeros(code.size, np.int64) if numbers is None else numbers
        lines, line = np.unique(number, return_inverse=True)
        keys, place = np.unique(code * max(lines.size, 1) + line, return_inverse=True)
        counts = np.bincount(place, minlength=keys.size)
        bytes_of = np.zeros(keys.size, np.int64)
        np.add.at(bytes_of, place, size)
        sums: dict[str, list[int]] = {}
        for key, count, total in zip(
            keys.tolist(), counts.tolist(), bytes_of.tolist(), strict=True
        ):
            text, at = divmod(key, max(lines.size, 1))
            name = label(texts.values[text], int(lines[at])) if text >= 0 else ""
            if name:
                one = sums.setdefault(name, [0, 0])
                one[0], one[1] = one[0] + count, one[1] + total
        listed = [(name, count, total) for name, (count, total) in sums.items()]
        return sorted(listed, key=lambda row: (-row[2], row[0]))


def programs_of(profile: Profile) -> list[ProgramAnswer]:
    """All programs of the profile, those that need most first, those that do not say it last.

    Raises InputError when the profile cannot be read.
    """
    every = [ProgramAnswer(profile, number) for number in range(len(profile.programs() or ()))]
    return sorted(every, key=lambda one: (-(one.peak_bytes or -1), one.label))
