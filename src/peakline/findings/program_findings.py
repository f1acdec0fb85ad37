"""What stands out of the memory of compiled programs, where no allocator recorded anything.

Only the program says what it holds: by instruction, op and source line. Findings are of the same
kinds as those of allocators; their allocator is the device.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from peakline.memory.peak.temporaries import (
    ATTENTION,
    BLOWN_UP,
    BROADCAST,
    ONE_HOT,
    PATCHES,
    PER_EXAMPLE,
    SPARSE,
)
from peakline.text import size_text, source_text
from peakline.timing.program_runs import run_totals

if TYPE_CHECKING:
    from peakline.findings.finding import Finding
    from peakline.findings.program_memory import DeviceNeed
    from peakline.tables import Profile
    from peakline.timing.program_answer import LiveBuffer

_MOST = 400
"""So many of the largest values of a program are looked through."""
_SHAPE = re.compile(r"(?P<type>\w+)\[(?P<dims>[\d,]*)\]")
_ONE_HOT = re.compile(r"(?i)one_?hot")
_PATCHES = re.compile(r"(?i)patches|im2col|unfold")
_SOFTMAX = re.compile(r"(?i)softmax|attention|attend|/exp$|reduce_max")
_PRODUCT = re.compile(r"(?:dot_general|conv_general_dilated|dot|convolution)$")
_JOIN = re.compile(r"(?:^|/)concatenate$")
_PAIRS, _LARGER = 2, 2.0
"""A square matrix need not be so much larger than a weight."""
_IMAGES = 4
"""Images are of so many dimensions or more: with those of a batch and of colours."""
_SCATTER = re.compile(r"scatter(?:(?!scatter)[\w-])*$")
_EVALUATION = re.compile(r"(?i)(?:^|_)(?:eval\w*|val|valid\w*|test\w*|predict\w*|infer\w*)")
_DONATED = 0.10
"""State that is not donated counts from this share of what the program needs on."""
_LEAST_DONATED = 4 << 20
_FEW = 0.34
"""A program that runs at most so often as the one that runs most is not the step."""
_ROWS = 8


@dataclass(frozen=True)
class Form:
    """Values at a program's peak of one shape: ``bytes`` together, ``first`` the largest."""

    shape: str
    bytes: int
    values: tuple[LiveBuffer, ...]

    @property
    def first(self) -> LiveBuffer:
        """The largest of them."""
        return self.values[0]

    @property
    def sides(self) -> tuple[int, ...]:
        """The dimensions."""
        found = _SHAPE.match(self.shape)
        return tuple(int(one) for one in (found["dims"] if found else "").split(",") if one)


def forms_of(live: Sequence[LiveBuffer], kind: str) -> list[Form]:
    """The values of a kind (temporary, parameter, output) by shape, most bytes first."""
    groups: dict[str, list[LiveBuffer]] = {}
    for one in live:
        if one.kind == kind:
            groups.setdefault(one.shape, []).append(one)
    forms = [
        Form(shape, sum(one.bytes for one in values), tuple(values))
        for shape, values in groups.items()
    ]
    return sorted(forms, key=lambda form: -form.bytes)


def find_program_findings(profile: Profile) -> list[Finding]:
    """Findings of the programs that need most of each device, in the order of the catalogue.

    Raises InputError when the profile cannot be read.
    """
    from peakline.findings.program_memory import device_needs

    found: dict[tuple[str, str], Finding] = {}
    seen: dict[int, _Usual | None] = {}
    for need in device_needs(profile):
        findings: list[Finding] = []
        # Devices that run the same program would say the same.
        if need.program.number not in seen:
            live = need.program.largest(_MOST)
            findings += _huge(profile, need, live)
            findings += _float64(need, live)
            findings += _undonated(need)
            seen[need.program.number] = _usual(profile, need) if need.is_run else None
        usual = seen[need.program.number]
        if usual is not None and (more := list(_evaluation(need, usual))):
            findings += more
            seen[need.program.number] = None
        for finding in findings:
            found.setdefault((finding.kind, need.program.label), finding)
    return list(found.values())


def what_is(form: Form, live: Sequence[LiveBuffer]) -> str:
    """What the values of a form are, empty for what a model needs."""
    names = [one.op_name for one in form.values]
    sides = form.sides
    if any(_ONE_HOT.search(name) for name in names):
        return ONE_HOT
    if any(_PATCHES.search(name) for name in names):
        return PATCHES
    weights = {one.sides for one in forms_of(live, "parameter") if len(one.sides) >= 2}
    if len(sides) >= 3 and sides[1:] in weights:
        # Piece by piece in a loop is how it should be.
        return PER_EXAMPLE if all(map(_is_apart, names)) else ""
    is_square = len(sides) >= 3 and sides[-1] == sides[-2]
    if is_square and any(_SOFTMAX.search(name) for name in names):
        return ATTENTION
    shapes = {one.shape for one in form.values}
    others = [one.bytes for one in live if one.shape not in shapes]
    is_blown_up = form.first.bytes >= BLOWN_UP * max(others, default=0)
    # All pairs of the outputs of a layer: a Hessian, a Gram matrix.
    is_blown_up |= (
        len(sides) == _PAIRS
        and sides[0] == sides[1]
        and form.first.bytes >= _LARGER * max(others, default=0)
    )
    # What has the shape of an argument is no larger than what it was made of.
    is_blown_up &= all(one.shape != form.shape for one in live if one.kind == "parameter")
    is_product = any(_PRODUCT.search(name.rpartition("/")[2]) for name in names)
    if is_blown_up and is_square:
        return ATTENTION
    if is_blown_up and sides[-2:-1] == sides[-1:] and any(map(_SCATTER.search, names)):
        return SPARSE
    # What is joined to so much more than all else was there several times over; of waves and texts
    # a few neighbours are a model's input.
    if is_blown_up and len(sides) >= _IMAGES and any(_JOIN.search(name) for name in names):
        return PATCHES
    return BROADCAST if is_blown_up and not is_product and all(names) else ""


def _alike(forms: Sequence[Form]) -> list[Form]:
    """Forms of one type with as many numbers together: one is the other, reshaped or transposed."""
    groups: dict[tuple[str, int], list[Form]] = {}
    for form in forms:
        kind = form.shape.partition("[")[0]
        groups.setdefault((kind, math.prod(form.sides)), []).append(form)
    found = [
        Form(
            group[0].shape,
            sum(form.bytes for form in group),
            tuple(one for form in group for one in form.values),
        )
        for group in groups.values()
    ]
    return sorted(found, key=lambda form: -form.bytes)


def _together(form: Form, what: str, live: Sequence[LiveBuffer]) -> tuple[LiveBuffer, ...]:
    """The values that go with those of a form: with one weight's gradients of each example those of
    all others.
    """
    if what != PER_EXAMPLE:
        return form.values
    shapes = {one.shape for one in form.values}
    more = (
        one
        for other in forms_of(live, "temporary")
        if other.sides[:1] == form.sides[:1] and other.shape not in shapes
        if what_is(other, live) == PER_EXAMPLE
        for one in other.values
    )
    return (*form.values, *more)


def _is_apart(name: str) -> bool:
    """Whether an op is one of each example: made by ``vmap``, and not piece by piece in a loop."""
    return "vmap(" in name and "while/body" not in name


def _evidence(need: DeviceNeed, value: LiveBuffer) -> dict[str, object]:
    return {
        "allocator": need.device or need.program.name,
        "op": value.op_name or value.instruction,
        "region_type": value.kind,
        "data_type": value.shape.partition("[")[0],
        "shape": value.shape,
        "file": value.source_file,
        "line": value.source_line,
        "peak_bytes": need.bytes,
        "program": need.program.label,
    }


def _rows(values: Sequence[LiveBuffer]) -> tuple[dict[str, object], ...]:
    return tuple(
        {
            "op": one.op_name or one.instruction,
            "region_type": one.kind,
            "shape": one.shape,
            "bytes": one.bytes,
            "file": one.source_file,
            "line": one.source_line,
        }
        for one in values[:_ROWS]
    )


def _where(value: LiveBuffer) -> str:
    source = source_text(value.source_file, value.source_line)
    return f", made in {source}" if source else ""


def _huge(profile: Profile, need: DeviceNeed, live: Sequence[LiveBuffer]) -> Iterator[Finding]:
    from peakline.findings.kinds.huge_temporary import ADVICE, HUGE, HUGE_BYTES, KIND
    from peakline.findings.program_origins import with_readers

    for alike in _alike(forms_of(live, "temporary")):
        if alike.bytes < max(HUGE * need.bytes, HUGE_BYTES):
            return
        form = alike
        if not any(one.op_name for one in form.values):
            form = replace(form, values=with_readers(profile, need.program, form.values))
        what = what_is(form, live)
        if not what:
            continue
        values = _together(form, what, live)
        first, size = form.first, sum(one.bytes for one in values)
        same = sum(one.shape == form.shape for one in values)
        count = f"{same} x " if same > 1 else ""
        more = len(values) - same
        others = f" and {more} of other shapes" if more else ""
        yield KIND.finding(
            f"{need.program.label}: {count}{form.shape} of {first.op_name or first.instruction} "
            f"({what}){others} hold {size_text(size)} of the {size_text(need.bytes)} that the "
            f"program needs{_where(first)}",
            {
                **_evidence(need, first),
                "what": what,
                "bytes": size,
                "saved_bytes": size,
                # One of them may be there at a time.
                "least_saved_bytes": size - first.bytes,
                "peak_after_bytes": need.bytes - size,
            },
            ADVICE[what],
            _rows(values),
        )
        return


def _float64(need: DeviceNeed, live: Sequence[LiveBuffer]) -> Iterator[Finding]:
    from peakline.findings.kinds.float64_memory import ADVICE, KIND

    wide = [one for one in live if one.shape.startswith(("f64[", "c128["))]
    size = sum(one.bytes for one in wide)
    if not wide or size < KIND.least * need.bytes:
        return
    first = wide[0]
    yield KIND.finding(
        f"{need.program.label}: {size_text(size)} of the {size_text(need.bytes)} that the program "
        f"needs are float64: {first.shape} of {first.op_name or first.instruction}{_where(first)}",
        {**_evidence(need, first), "wide_bytes": size, "saved_bytes": size // 2},
        ADVICE,
        _rows(wide),
    )


def _undonated(need: DeviceNeed) -> Iterator[Finding]:
    from peakline.findings.kinds.redundant_copy import KIND

    for advice in need.program.advice:
        least = max(_DONATED * need.bytes, _LEAST_DONATED)
        if advice.kind != "donate" or advice.bytes < least:
            continue
        row = advice.rows[0]
        # Fewer copies may be live at once, as far as the program's present order says.
        values = sum(size for one in advice.rows if isinstance(size := one.get("bytes"), int))
        yield KIND.finding(
            f"{need.program.label}: the program makes new copies of what it is given, for "
            f"{size_text(advice.bytes)} of the {size_text(need.bytes)} that it needs: "
            f"{advice.title}",
            {
                "allocator": need.device or need.program.name,
                "op": _made_by(row),
                "shape": row.get("shape"),
                "copy_bytes": max(values, advice.bytes),
                "least_saved_bytes": advice.bytes,
                "peak_bytes": need.bytes,
                "program": need.program.label,
            },
            advice.suggestion,
            tuple(
                {"op": _made_by(one), "shape": one.get("shape"), "bytes": one.get("bytes")}
                for one in advice.rows
            ),
        )
        return


def _made_by(row: Mapping[str, object]) -> str:
    return str(row.get("op_name") or row.get("instruction") or "")


@dataclass(frozen=True)
class _Usual:
    """The program that runs most beside the one that needs most: its name and runs, and the most
    bytes that any of the others needs.
    """

    label: str
    runs: int
    most_bytes: int


def _usual(profile: Profile, need: DeviceNeed) -> _Usual | None:
    """None where no other runs more, or one needs nearly as much."""
    from peakline.findings.program_memory import every_need
    from peakline.memory.peak.lone import ALONE, LEAST

    every, needs = every_need(profile)
    runs, times = (column.tolist() for column in run_totals(profile))
    own = need.program.number
    others = [number for number, count in enumerate(runs) if count and number != own]
    usual = max(others, key=lambda number: (times[number], runs[number]), default=None)
    if usual is None or needs[usual] <= 0 or times[own] >= times[usual]:
        return None
    most = max(needs[number] for number in others)
    if need.bytes < ALONE * most or need.bytes - most < LEAST:
        return None
    return _Usual(every[usual].label, runs[usual], most)


def _evaluation(need: DeviceNeed, usual: _Usual) -> Iterator[Finding]:
    """The program that needs most is not the one that runs most."""
    from peakline.findings.kinds import peak_in_evaluation, peak_in_one_step

    is_evaluation = _EVALUATION.search(need.program.name) is not None
    if not is_evaluation and need.runs > _FEW * usual.runs:
        return
    kind = (peak_in_evaluation if is_evaluation else peak_in_one_step).KIND
    first = need.program.largest(1)[0]
    yield kind.finding(
        f"{need.program.label} needs {size_text(need.bytes)}, {usual.label} and all others "
        f"{size_text(usual.most_bytes)} at most: {first.shape} of "
        f"{first.op_name or first.instruction}{_where(first)}",
        {
            **_evidence(need, first),
            "others_bytes": usual.most_bytes,
            "saved_bytes": need.bytes - usual.most_bytes,
        },
        "Run it on smaller batches: it needs more than the step that trains.",
        _rows(need.program.largest(_ROWS)),
    )
