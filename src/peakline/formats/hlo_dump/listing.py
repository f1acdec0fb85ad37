"""Which files of a directory are dumped programs, and which of them is the one to read.

XLA calls them ``module_NNNN.NAME.STAGE.EXT`` (``xla/service/dump.cc``): NNNN is the module's id,
the stage ends in ``after_optimizations`` where the program is as it runs, with its buffer
assignment. XProf writes ``NAME(ID).hlo_proto.pb``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

_DUMPED = re.compile(
    r"module_(?P<id>[0-9]{1,18})\.(?P<name>.{1,255})\.(?P<stage>[\w.-]{,255}(?:before|after)_\w{1,255})$"
)
_BACKEND = re.compile(r"(?:^|_)(cpu|gpu|tpu)_")
_XPROF_ENDING = ".hlo_proto.pb"
_XPROF = re.compile(r"(?P<name>.+?)(?:\((?P<id>[0-9]{1,20})\))?\.hlo_proto\.pb$", re.DOTALL)
_NONE = "NO_MODULE"
"""What XProf calls the empty file that it writes beside a profile without programs."""
_PROTOS = (".hlo.pb", ".hlo_snapshot.pb")
_TEXT = ".txt"
_ASSIGNMENT = "-buffer-assignment"
_RANGES = "-live-range"
_FINAL = "after_optimizations"


@dataclass(frozen=True)
class DumpedProgram:
    """One program of a directory: its best form, and the texts that go with one that is a text."""

    name: str
    program_id: int | None
    backend: str
    path: str
    assignment: str | None = None
    live_ranges: str | None = None


def backend_of(stage: str) -> str:
    """What a program was compiled for, by the stage in its file's name; empty where it does not
    say.
    """
    result = _BACKEND.search(stage)
    return result[1] if result else ""


def program_of(file: str) -> DumpedProgram | None:
    """What the name of a file says of the program in it; None for one that is no dump."""
    for ending in (*_PROTOS, _TEXT):
        if file.endswith(ending):
            result = _DUMPED.match(file.removesuffix(ending))
            if result:
                backend = backend_of(result["stage"])
                # On a TPU events name a program by its fingerprint.
                number = int(result["id"]) if backend in ("cpu", "gpu") else None
                return DumpedProgram(result["name"], number, backend, file)
    result = _XPROF.match(file)
    if result and result["name"] != _NONE:
        number = int(result["id"] or 2**64)
        return DumpedProgram(result["name"], number if number < 2**64 else None, "", file)
    return None


def named_by(path: str) -> DumpedProgram | None:
    """As `program_of`, for the file itself, packed or not, at ``path``."""
    return program_of(re.split(r"[/\\]", path)[-1].removesuffix(".gz"))


def is_xprof_program(file: str) -> bool:
    """Whether XProf gives that name to a file in which it has a program of a session."""
    return file.endswith(_XPROF_ENDING) and file not in (_XPROF_ENDING, f"{_NONE}{_XPROF_ENDING}")


def named(paths: Iterable[str]) -> list[DumpedProgram]:
    """The programs of files that `is_xprof_program` accepts, by name; a path may be a URL."""
    result = []
    for path in sorted(paths):
        program = program_of(path.replace(os.sep, "/").rpartition("/")[2])
        if program is not None:
            result.append(replace(program, path=path))
    return result


def is_dump(files: Iterable[str]) -> bool:
    """Whether a directory with these files is one of dumps."""
    return any(program_of(file) is not None for file in files)


def listed(directory: str) -> list[DumpedProgram]:
    """The programs of a directory, each once: as it runs rather than as it was, a message rather
    than a text.

    Raises OSError where the directory cannot be read.
    """
    files = sorted(entry.name for entry in Path(directory).iterdir())
    have = set(files)
    best: dict[tuple[str, int | str], tuple[tuple[bool, bool, str], DumpedProgram]] = {}
    for file in files:
        result = program_of(file)
        if result is None:
            continue
        stem = file.removesuffix(_TEXT)
        number = re.match(r"module_([0-9]{1,18})\.", file)
        rank = _FINAL in file, not file.endswith(_TEXT), file
        texts = (f"{stem}{one}{_TEXT}" for one in (_ASSIGNMENT, _RANGES))
        beside = [one if stem != file and one in have else None for one in texts]
        made = DumpedProgram(
            result.name,
            result.program_id,
            result.backend,
            str(Path(directory) / file),
            *(str(Path(directory) / one) if one else None for one in beside),
        )
        key = result.name, int(number[1]) if number else file
        if key not in best or best[key][0] < rank:
            best[key] = rank, made
    return [made for _, made in best.values()]
