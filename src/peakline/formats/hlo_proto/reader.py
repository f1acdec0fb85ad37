"""Files of one program: HloProto, HloModuleProto, HloSnapshot."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from contextlib import closing

import numpy as np

from peakline import schema
from peakline.errors import InputError
from peakline.formats.common.files import SourceFile
from peakline.formats.common.reader import FileReader, warn_of_cut, warn_of_damage
from peakline.formats.common.recognise import recognise
from peakline.formats.graph_def.source import broken_fields, submessages
from peakline.formats.hlo_dump.listing import DumpedProgram, is_xprof_program, named_by
from peakline.formats.hlo_proto.source import StoredProgram, the_one
from peakline.formats.hlo_proto.tables import ProgramTables
from peakline.tables.columns import Columns
from peakline.tables.program_tables import PROGRAM_TABLES
from peakline.tables.reader import Warnings
from peakline.wire import Buffer, Damage, Plan, as_buffer, decode
from peakline.wire.tables import varint

_HLO, _MODULE, _ASSIGNMENT = 1, 1, 3
"""HloSnapshot.hlo, HloProto.hlo_module and .buffer_assignment."""


class HloReader(FileReader):
    """The program of one file, whichever message holds it."""

    __retained__ = "_file _programs"

    tables = PROGRAM_TABLES

    def __init__(self, file: SourceFile, form: str) -> None:
        super().__init__(file, form)
        self._reported = Damage()
        named = named_by(self.path)
        stored = StoredProgram(
            "", self._number(named), named.backend if named else "", self._content, self._release
        )
        self._programs = ProgramTables([stored])
        result = self._programs.read(0, "hlo_modules")
        if not result.array("computations")[0]:
            harm = self._programs.damage.get(0)
            if harm:
                raise self._nothing_whole(harm)

    def _number(self, named: DumpedProgram | None) -> int | None:
        """The module's own number, by which events of CPUs and GPUs name the program, whatever the
        file is called. XProf puts the one that events have into the name; a TPU has others.
        """
        number = named.program_id if named is not None else None
        if named is not None and (
            named.backend == "tpu" or (number is not None and is_xprof_program(named.path))
        ):
            return number
        plan = Plan(schema.shape("xla.HloProto"), ("hlo_module.id",))
        numbers = decode(self._content(), plan)["hlo_module"].array("id").tolist()
        # 0 is what a message holds that says none, too.
        return next((n for n in numbers if n > 0), number)

    def _content(self) -> Buffer:
        return proto_of(self._file.buffer, self.format)

    def _release(self) -> None:
        # From the begin: what was given back may have been read again.
        self._file.release(0)
        self._file.release(int(self._file.buffer.size))

    def _damage(self) -> Damage:
        """That of the program, and what a file that wraps it lacks."""
        harm = self._programs.damage[0]
        if self.format != "hlo_snapshot":
            return harm
        harm += broken_fields(self._file.buffer, "xla.HloSnapshot", "hlo")
        if harm:
            return harm
        size = int(self._file.buffer.size)
        missing = submessages(self._file.buffer, [0], [size], _HLO)[2]
        return Damage(1, 0, size, missing) if missing else harm

    def programs(self) -> ProgramTables:
        """The program of the file."""
        return self._programs

    def read(
        self, table: str, warnings: Warnings, columns: AbstractSet[str] | None = None
    ) -> Columns:
        """Read one table."""
        result = self._programs.table(table, warnings, columns)
        self._warn(warnings)
        return result

    def has_rows(self, table: str) -> bool:
        """As `Reader.has_rows`."""
        return self._programs.has_rows(table)

    def _warn(self, warnings: Warnings) -> None:
        """Report the damage that no table met before: each meets what is in its own messages."""
        harm, before = self._damage(), self._reported
        if harm.places <= before.places:
            return
        self._reported = harm
        if harm.missing_bytes and not before.missing_bytes:
            warn_of_cut(warnings, harm.missing_bytes, self._file.buffer.size)
        places = [one.places - bool(one.missing_bytes) for one in (harm, before)]
        warn_of_damage(warnings, harm, places[0] - places[1])

    def duration_ps(self) -> int:
        """0: a program has no time."""
        return 0


def proto_of(buffer: Buffer, form: str) -> Buffer:
    """The bytes of the HloProto in a file of a format, which wraps it or is a part of it."""
    if form == "hlo_module":
        head = bytes([_MODULE << 3 | 2]) + varint(int(buffer.size))
        return as_buffer(np.concatenate([np.frombuffer(head, np.uint8), buffer]))
    if form == "hlo_snapshot":
        _, spans, missing = submessages(buffer, [0], [int(buffer.size)], _HLO)
        one = the_one(spans, missing)
        start, length = int(one.start.sum()), int(one.length.sum())
        return buffer[start : start + length]
    return buffer


def content_of(
    path: str,
    assignment: str | None,
    live_ranges: str | None,
    forms: dict[str, str],
    open_file: Callable[[str], SourceFile] = SourceFile,
) -> tuple[Buffer, SourceFile]:
    """The bytes of the HloProto that a file holds, whatever its form, and the file, which the
    caller closes when it needs them no more; a text goes with those of its buffer ``assignment``
    and of when its values are live. ``forms`` are those found before, by path.
    ``open_file`` opens the file for a caller who may not open every one.

    Raises InputError for a file that holds none.
    """
    file = open_file(path)
    try:
        form = forms.get(path) or recognise(file.head).format
        forms[path] = form
        if form == "hlo_text":
            return _translated(file.buffer.tobytes(), assignment, live_ranges), file
        if form in ("hlo_proto", "hlo_module", "hlo_snapshot"):
            return proto_of(file.buffer, form), file
    except BaseException:
        file.close()
        raise
    file.close()
    raise InputError(f"{path}: holds no compiled program")


def _translated(text: bytes, assignment: str | None, live_ranges: str | None) -> Buffer:
    """The HloProto of a text, and of those beside it."""
    from peakline.formats.hlo_text.module import translate_module
    from peakline.formats.hlo_text.program import translate_assignment

    program, _ = translate_module(text)
    if assignment is not None:
        more, _ = translate_assignment(
            _text_of(assignment), program, _text_of(live_ranges) if live_ranges else None
        )
        program += bytes([_ASSIGNMENT << 3 | 2]) + varint(len(more)) + more
    return as_buffer(program)


def _text_of(path: str) -> bytes:
    with closing(SourceFile(path)) as file:
        return file.buffer.tobytes()
