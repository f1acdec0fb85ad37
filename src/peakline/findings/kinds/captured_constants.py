"""Several compiled programs hold one array as a constant, each a copy of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.deadline import checked
from peakline.findings.kind import Kind, columns
from peakline.safe_text import cut_middle
from peakline.text import counted, size_text
from peakline.timing.programs.answer import Constant, programs_of

if TYPE_CHECKING:
    from peakline.findings.context import Findings, MemoryContext

KIND = Kind(
    "captured_constants",
    __doc__,
    about="memory",
    phrase="programs hold copies of one array",
    severity="warning",
    section="peak",
    columns=columns(
        "shape", "count", "bytes",
        programs="Programs",
        saved_bytes="Saves",
        share="Of the largest need",
        program="Program",
        instruction="Instruction",
        embedded="In a fusion's code",
    ),
    least=0.10,
    saves="saved_bytes",
)  # fmt: skip

_LEAST_BYTES = 1 << 20
_ROWS = 10
_NAME, _NAMED = 60, 3
ADVICE = (
    "A function that is compiled takes an array from around it for a constant, and each program "
    "holds a copy: pass it as an argument (jax.jit(f)(x, w) in place of a closure over w; "
    "functools.partial binds it as a closure does)."
)


def find(context: MemoryContext) -> Findings:
    """At most one, of compiled programs: of the array whose copies take most. Two constants are one
    array where their values, as the program writes them, are the same.
    """
    profile = context.programs[0].profile if context.programs else context.profile
    if profile is None or not profile.programs():
        return
    needs = [one.need.program.peak_bytes or 0 for one in context.programs]
    needs += [one.peak.peak_bytes for one in context.allocators]
    arrays: dict[str, list[Constant]] = {}
    for program in checked(programs_of(profile), 1):
        for one in program.large_constants(_LEAST_BYTES):
            arrays.setdefault(one.digest, []).append(one)
    several = [some for some in arrays.values() if len({one.program for one in some}) > 1]
    if not several:
        return
    saved = sum(_copies(some) for some in several)
    share = saved / max(*needs, 1)
    if share < KIND.least:
        return
    most = max(several, key=_copies)
    programs = sorted({one.program for one in most})
    named = ", ".join(cut_middle(one, _NAME) for one in programs[:_NAMED])
    named += ", ..." if len(programs) > _NAMED else ""
    others = f", and {counted(len(several) - 1, 'array')} more" if len(several) > 1 else ""
    yield KIND.finding(
        f"{counted(len(programs), 'program')} ({named}) hold a copy of one array {most[0].shape} "
        f"of {size_text(most[0].bytes)} as a constant{others}: {size_text(saved)} are copies",
        {
            "shape": most[0].shape,
            "count": len(several),
            "bytes": sum(one.bytes for some in several for one in some),
            "programs": len(programs),
            "saved_bytes": saved,
            "share": share,
        },
        ADVICE,
        tuple(_row(one) for some in several for one in some)[:_ROWS],
    )


def _row(one: Constant) -> dict[str, object]:
    return {name: value for name, value in vars(one).items() if name != "digest"}


def _copies(constants: list[Constant]) -> int:
    """The bytes of all programs' copies but one."""
    return constants[0].bytes * (len({one.program for one in constants}) - 1)
