"""Files of one program: HloProto, HloModuleProto, HloSnapshot."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet

import numpy as np

from peakline.formats.common.files import SourceFile
from peakline.formats.common.reader import FileReader, warn_of_cut, warn_of_damage
from peakline.formats.graph_def.source import submessages
from peakline.formats.hlo_proto.source import StoredProgram
from peakline.formats.hlo_proto.tables import ProgramTables
from peakline.tables.columns import Columns
from peakline.tables.program_tables import PROGRAM_TABLES
from peakline.tables.reader import Warnings
from peakline.wire import Buffer, as_buffer
from peakline.wire.tables import varint

_DUMPED = re.compile(
    r"module_\d+\.(?P<name>.+)\.(?:(?P<backend>[a-z]+)_|sm_[\d.]+[a-z]*_(?P<gpu>gpu)_)"
    r"(?:after|before)_"
)
"""How ``--xla_dump_to`` calls its files (``xla/service/dump.cc``)."""
_BACKENDS = {"cpu": "cpu", "gpu": "gpu", "tpu": "tpu"}
_NUMBERED = re.compile(r"\((\d{1,20})\)\.hlo_proto\.pb$")
"""How XProf calls them: with the program's id."""
_HLO, _MODULE = 1, 1
"""HloSnapshot.hlo, HloProto.hlo_module."""


class HloReader(FileReader):
    """The program of one file, whichever message holds it."""

    __retained__ = "_file _programs"

    tables = PROGRAM_TABLES

    def __init__(self, file: SourceFile, form: str) -> None:
        super().__init__(file, form)
        self._is_reported = False
        name = re.split(r"[/\\]", self.path)[-1]
        numbered = _NUMBERED.search(name)
        program_id = int(numbered[1]) if numbered else None
        stored = StoredProgram("", program_id, backend_of(name), self._content)
        self._programs = ProgramTables([stored])
        found = self._programs.read(0, "hlo_modules")
        if not found.array("computations")[0]:
            harm = self._programs.damage.get(0)
            if harm:
                raise self._nothing_whole(harm)

    def _content(self) -> Buffer:
        buffer = self._file.buffer
        if self.format == "hlo_module":
            head = bytes([_MODULE << 3 | 2]) + varint(int(buffer.size))
            return as_buffer(np.concatenate([np.frombuffer(head, np.uint8), buffer]))
        if self.format == "hlo_snapshot":
            _, spans, _ = submessages(buffer, [0], [int(buffer.size)], _HLO)
            if not len(spans):
                return buffer[:0]
            start = int(spans.start[-1])
            return buffer[start : start + int(spans.length[-1])]
        return buffer

    def programs(self) -> ProgramTables:
        """The program of the file."""
        return self._programs

    def read(
        self, table: str, warnings: Warnings, columns: AbstractSet[str] | None = None
    ) -> Columns:
        """Read one table."""
        found = self._programs.table(table, warnings, columns)
        harm = self._programs.damage[0]
        if harm and not self._is_reported:
            self._is_reported = True
            if harm.missing_bytes:
                warn_of_cut(warnings, harm.missing_bytes, self._file.buffer.size)
            warn_of_damage(warnings, harm, harm.places - bool(harm.missing_bytes))
        return found

    def duration_ps(self) -> int:
        """0: a program has no time."""
        return 0


def backend_of(name: str) -> str:
    """What a dumped program was compiled for, by its file; empty where the name does not say it."""
    found = _DUMPED.match(name)
    return _BACKENDS.get(found["backend"] or found["gpu"] or "", "") if found else ""
