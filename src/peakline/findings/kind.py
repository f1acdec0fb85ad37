"""What a kind of finding is: its words, its columns, what it saves, and its place on a screen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from peakline.findings.finding import Finding

if TYPE_CHECKING:
    from peakline.memory.signatures import Signature
    from peakline.trace.frames import Frame

About = Literal["memory", "time"]


@dataclass(frozen=True)
class Column:
    """A number of evidence, or a column of its rows: what a person calls it, and its unit.

    ``unit`` is ``bytes``, ``ps``, ``share`` (0 to 1) or empty.
    """

    heading: str
    unit: str


@dataclass(frozen=True)
class Kind:
    """The declaration of a kind of finding, which its module has as ``KIND``.

    ``name`` is that of the module, and ``doc`` its docstring: what it says. ``phrase`` is what it
    comes to, in the middle of a sentence, ``severity`` its gravest one, and ``section`` the part of
    a report that it belongs to. Kinds with a ``share`` in their evidence are said from ``least`` of
    it on, and for information only below ``much``. ``saves`` is the number of the evidence that
    says what would go; `peakline.findings.ranking` has what it is compared with. ``limit`` is the
    number that is the capacity of the allocator, of kinds that say that it was reached.
    """

    name: str
    doc: str
    about: About
    phrase: str
    severity: str
    section: str
    columns: Mapping[str, Column]
    least: float = 0.0
    much: float = 0.0
    saves: str = ""
    limit: str = ""

    def finding(
        self,
        title: str,
        evidence: Mapping[str, object],
        suggestion: str,
        rows: tuple[Mapping[str, object], ...] = (),
        severity: str = "",
    ) -> Finding:
        """A finding of this kind; without a ``severity`` its ``share`` decides, or the kind."""
        is_little = not severity and self.much and float(str(evidence["share"])) < self.much
        severity = severity or ("info" if is_little else self.severity)
        return Finding(self.name, severity, title, evidence, suggestion, rows)


COMMON = {
    "allocator": "Allocator",
    "op": "Op",
    "scope": "Scope",
    "region_type": "Region",
    "data_type": "Type",
    "shape": "Shape",
    "bytes": "Size",
    "count": "Count",
    "since_ps": "Since",
    "buffer_bytes": "One buffer",
    "forms": "Shapes",
    "pattern": "Pattern",
    "since_step": "Since step",
    "since_step_name": "Since step",
    "until_step": "Until step",
    "bytes_per_step": "Per step",
    "kept_bytes": "Retained",
    "held_bytes": "Held at the end",
    "rises": "Steps that grew",
    "confidence": "Confidence",
    "allocations_per_step": "Times a step",
    "most_live": "Most at a time",
    "peak_bytes": "Peak",
    "capacity_bytes": "Capacity",
    "free_bytes": "Free",
    "fragmentation": "Fragmentation",
    "largest_hole_bytes": "Largest free piece",
    "time_ps": "At",
    "steps": "Steps seen",
    "steps_found_by": "Steps found by",
    "steps_detail": "Steps are",
    "devices": "Devices",
    "device": "Device",
    "step": "Step",
    "wall_ps": "Time",
    "share": "Share of the time",
    "function": "Function",
    "file": "File",
    "line": "Line",
    "module": "Module",
    "path": "Path",
    "callee": "What it calls",
    "gain_ps": "Would save",
    "gain_share": "Would save of the run",
    "most_gain_share": "Would save at most",
    "part_of": "Part of",
}
"""The columns that mean the same in several kinds, and in rows of savings."""

SIGNATURE = ("allocator", "op", "region_type", "data_type", "shape")
"""The columns of evidence that say which buffers it is about."""


ORIGIN = ("function", "file", "line", "module", "path", "callee")
"""The columns that say whose code made the buffers that a finding is about."""


def about_signature(signature: Signature) -> dict[str, object]:
    """The evidence that says which buffers it is about."""
    return {name: getattr(signature, name) for name in SIGNATURE}


def columns(*names: str, **own: str) -> dict[str, Column]:
    """The columns of a kind by name; ``own`` are headings of those whose names do not do."""
    common = {name: COMMON.get(name) or heading_of(name.removesuffix("_ps")) for name in names}
    return {name: Column(heading, unit_of(name)) for name, heading in (common | own).items()}


def heading_of(name: str, declared: Mapping[str, Column] = MappingProxyType({})) -> str:
    """What a person calls a column of a kind that has ``declared`` it, or of any other row."""
    if name in declared:
        return declared[name].heading
    return COMMON.get(name) or name.replace("_", " ").capitalize()


def unit_of(name: str) -> str:
    """The unit of a column, which its name carries."""
    if "bytes" in name.split("_"):
        return "bytes"
    if name.endswith("_ps"):
        return "ps"
    words = name.rpartition("_")[2]
    return "share" if words in {"share", "fragmentation", "confidence"} else ""


FRAME = columns(
    "function", "file", "line", "module", "path",
    does="What it does", callee="What it calls", calls_per_step="Calls per step",
    function_ps="Time",
)  # fmt: skip


def of_frame(frame: Frame | None) -> dict[str, object]:
    """The columns that say which function it is, empty where none is known."""
    if frame is None:
        return {}
    return {"function": frame.function, "file": frame.file, "line": frame.line}
