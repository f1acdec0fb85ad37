"""What is said of compiled programs: the memory they need, what is live then, what a run costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from peakline.document.model import Fact, Row, Table, columns_of
from peakline.document.profile import answer_document
from peakline.document.wording import PEAK
from peakline.hlo.modules import choose_program
from peakline.tables import Profile
from peakline.text import counted, number_text, shares_text, size_text, time_text
from peakline.timing.programs.answer import LiveBuffer, ProgramAnswer, programs_of

if TYPE_CHECKING:
    from peakline.hlo.advice import Advice

ADVICE = {
    "rematerialise": "recompute it after the peak",
    "chunk": "compute it in pieces",
    "donate": "donate it (donate_argnums)",
    "lower_precision": "in a smaller type",
}
"""What each kind of advice takes."""
NO_ASSIGNMENT = (
    "no buffer assignment: dump it with XLA_FLAGS='--xla_dump_to=DIR --xla_dump_hlo_as_proto' "
    "and read the file after_optimizations"
)
_LIST = columns_of(
    peak="bytes", arguments="bytes", outputs="bytes", temporaries="bytes", constants="bytes",
    flops="figure", moved="figure", runs="figure", time="figure", program="name",
)  # fmt: skip
NARROW_WITHOUT = ("outputs", "moved", "flops", "constants")
"""Columns of the list that a narrow screen does without, in this order."""
_LIVE = columns_of("size", "share", kind="form", shape="form", op="name", line="name",
                   instruction="name")  # fmt: skip
LIVE_ROWS = 12
"""So many values are shown of a program that is not the subject, and their shares are of these."""
LIVE_NARROW_WITHOUT = ("instruction", "share", "line")


def programs_table(programs: Sequence[ProgramAnswer], most: int) -> Table:
    """The programs, those that need most first."""
    known = [one for one in programs if one.peak_bytes is not None]
    title = counted(len(programs), "compiled program")
    if known:
        title += f"; {known[0].label} needs most, {size_text(known[0].peak_bytes or 0)}"
    rows: list[Row] = []
    for one in programs[:most]:
        total, runs = one.cost, one.run_count
        rows.append(
            (
                one.peak_bytes,
                _bytes(one, "argument_bytes"),
                _bytes(one, "output_bytes"),
                _bytes(one, "temporary_bytes"),
                one.constant_bytes,
                number_text(total.flops),
                size_text(total.bytes_accessed),
                "" if runs is None else f"{runs:,}",
                "" if not runs else time_text(one.run_ps),
                one.label,
            )
        )
    rest = (len(programs) - most,) if len(programs) > most else ()
    return Table(title, _LIST, rows, rest)


def _bytes(one: ProgramAnswer, name: str) -> int | None:
    value = one.facts[name]
    return value if isinstance(value, int) else None


def program_facts(one: ProgramAnswer) -> list[Fact]:
    """The numbers of one program."""
    result: list[Fact] = []
    if one.peak_bytes is None:
        result.append(Fact("peak", NO_ASSIGNMENT))
    else:
        result.append(Fact("peak", one.peak_bytes, "bytes", f", {PEAK[one.memory.found_by]}"))
    if one.memory.is_assigned:
        donated = _bytes(one, "alias_bytes") or 0
        taken = f", {size_text(donated)} of it donated" if donated else ", none donated"
        result += [
            Fact("arguments", _bytes(one, "argument_bytes"), "bytes", taken),
            Fact("outputs", _bytes(one, "output_bytes"), "bytes"),
            Fact("temporaries", _bytes(one, "temporary_bytes"), "bytes", _packed(one)),
        ]
    if one.memory.is_assigned or one.constant_bytes:
        result.append(Fact("constants", one.constant_bytes, "bytes", _embedded(one)))
    if one.memory.is_assigned:
        if host := _bytes(one, "host_bytes"):
            result.append(Fact("in the host's memory", host, "bytes"))
        if padding := one.padding_bytes:
            result.append(Fact("padding", padding, "bytes", " of what is live at the peak"))
    total = one.cost
    least = "at least " if total.is_least else ""
    result.append(Fact("one run", f"{least}{number_text(total.flops)} flops", "", _moved(one)))
    if runs := one.run_count:
        each = one.run_ps / runs
        rate = f", {number_text(total.flops / each * 1e12)} flop/s" if total.flops else ""
        result.append(Fact("runs", runs, "count", f", {time_text(round(each))} each{rate}"))
    return result


def _embedded(one: ProgramAnswer) -> str:
    """Which constants the peak does not have."""
    if not one.embedded_bytes:
        return ""
    return f", {size_text(one.embedded_bytes)} of it in the code of fusions, not in the peak"


def _moved(one: ProgramAnswer) -> str:
    total = one.cost
    more = (
        f", {number_text(total.transcendentals)} transcendentals" if total.transcendentals else ""
    )
    return f", {size_text(total.bytes_accessed)} read and written{more}"


def _packed(one: ProgramAnswer) -> str:
    """What the packing of the temporaries loses; said more of where it is packed again."""
    packing = one.memory.packing
    lost = packing.heap_bytes - packing.live_bytes
    if not packing.heap_bytes:
        return ""
    if lost <= 0:
        return ", packed without loss"
    text = f", {size_text(lost)} ({lost / packing.heap_bytes:.1%}) lost in packing"
    if not one.is_large and (again := one.repacking).repacked_bytes < again.heap_bytes:
        text += f", {size_text(again.repacked_bytes)} packed again"
    return text


def live_table(one: ProgramAnswer, most: int = LIVE_ROWS) -> Table:
    """What is live at the peak, the largest first."""
    shown = one.largest(most)
    rest = (one.peak_bytes or 0) - sum(row.bytes for row in shown)
    shares = shares_text([*(row.bytes for row in shown), rest])
    rows: list[Row] = [
        (row.bytes, share, row.kind, row.shape, row.op_name, row.source, row.instruction)
        for row, share in zip(shown, shares, strict=False)
    ]
    return Table("live at the peak", _LIVE, rows, (one.live_count - most, rest) if rest else ())


def groups_tables(one: ProgramAnswer, most: int) -> list[Table]:
    """What is live at the peak by scope, and by line of the user's program."""
    result = []
    for label, groups in (("scope", one.by_scope()), ("line", one.by_source())):
        if not groups:
            continue
        columns = columns_of("size", "share", values="count", **{label: "name"})
        whole = one.peak_bytes or 1
        rows: list[Row] = [
            (size, f"{size / whole:.1%}", count, name) for name, count, size in groups[:most]
        ]
        result.append(Table(f"live at the peak, by {label}", columns, rows))
    return result


def advice_table(one: ProgramAnswer) -> Table:
    """What would lower what the program needs."""
    rows: list[Row] = [
        (advice.bytes, advice.peak_after, ADVICE[advice.kind], advice.title)
        for advice in one.advice
    ]
    title = "what would lower it: estimates, packed again as XLA packs"
    columns = columns_of(saves="bytes", then="bytes", how="", what="name")
    return Table(title, columns, rows)


def advice_document(advice: Advice) -> dict[str, object]:
    """A row of ``advice`` in JSON."""
    return {**vars(advice), "rows": [dict(row) for row in advice.rows]}


def buffer_document(one: LiveBuffer) -> dict[str, object]:
    """A row of ``peak_buffers`` in JSON."""
    return {
        "instruction": one.instruction,
        "op_name": one.op_name or None,
        "source_file": one.source_file or None,
        "source_line": one.source_line,
        "bytes": one.bytes,
        "unpadded_bytes": one.unpadded_bytes,
        "shape": one.shape or None,
        "kind": one.kind,
    }


_FACTS = (
    "backend", "argument_bytes", "output_bytes", "temporary_bytes", "alias_bytes",
    "generated_code_bytes", "constant_bytes", "thread_local_bytes", "host_bytes",
)  # fmt: skip


def chosen_programs(profile: Profile, name: str | None) -> list[ProgramAnswer]:
    """The program of a name or an id, all of them without one."""
    if name is None:
        return programs_of(profile)
    return [ProgramAnswer(profile, choose_program(profile, name))]


def programs_document(
    profile: Profile,
    programs: Sequence[ProgramAnswer],
    top: int | None = None,
    *,
    in_full: bool = False,
) -> dict[str, object]:
    """What ``peakline programs --json`` prints; sizes in bytes, times in ps, the first ``top`` rows
    of each program or all.

    Advice about a program with very many temporaries takes seconds: it is there with ``in_full``.
    """
    modules = [_program_document(one, top, in_full=in_full) for one in programs]
    return answer_document(profile, {"modules": modules})


def _program_document(one: ProgramAnswer, top: int | None, *, in_full: bool) -> dict[str, object]:
    total, packing = one.cost, one.memory.packing
    is_known = one.memory.is_known
    return {
        "module": one.name,
        "program_id": one.program_id,
        "peak_bytes": one.peak_bytes,
        "peak_found_by": one.memory.found_by if is_known else None,
        **{name: one.facts[name] for name in _FACTS},
        "embedded_constant_bytes": one.embedded_bytes,
        "heap_bytes": packing.heap_bytes if is_known else None,
        "heap_live_bytes": packing.live_bytes if is_known else None,
        "padding_bytes": one.padding_bytes if is_known else None,
        "flops": total.flops,
        "transcendentals": total.transcendentals,
        "bytes_accessed": total.bytes_accessed,
        "is_least": total.is_least,
        "runs": one.run_count,
        "run_ps": one.run_ps if one.run_count is not None else None,
        "advice": [] if one.is_large and not in_full else [*map(advice_document, one.advice)],
        "peak_buffers": [
            buffer_document(row) for row in one.largest(one.live_count if top is None else top)
        ],
    }
