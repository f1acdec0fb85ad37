"""Which compiled program a question to XProf means (``convert/xplane_to_hlo.cc``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.errors import NotFoundError, UsageError
from peakline.hlo.messages import read_module

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.tables.programs import Programs


def find_program(profile: Profile, module_name: str, program_id: str, node_name: str = "") -> int:
    """The number of a program: the one whose name with its id is ``module_name``; else the first
    whose name with its id contains ``program_id``; else the first with an instruction
    ``node_name``.

    XProf has the programs as files, and takes the first that the file system lists; here it is the
    first of the profile. Raises NotFoundError where there is none, UsageError where nothing is
    named.
    """
    programs = profile.programs()
    count = len(programs) if programs is not None else 0
    if programs is None or not (module_name or program_id or node_name):
        raise UsageError(f"{profile.path}: no program named: say module_name or program_id")
    labels = [programs.label(number) for number in range(count)]
    if module_name:
        found = [number for number, label in enumerate(labels) if label == module_name]
    else:
        found = [
            number for number, label in enumerate(labels) if program_id and program_id in label
        ]
    if not found and node_name:
        found = _with_node(programs, node_name)
    if not found:
        wanted = module_name or program_id or node_name
        raise NotFoundError(f"{profile.path}: no program for {wanted!r}").quoting(repr(wanted))
    return found[0]


def _with_node(programs: Programs, name: str) -> list[int]:
    for number in range(len(programs)):
        parts = read_module(programs.data(number))
        if parts is not None and any(
            made.name == name
            for computation in parts.computations
            for made in computation.instructions
        ):
            return [number]
    return []
