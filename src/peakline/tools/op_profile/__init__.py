"""The ``op_profile`` tool: which programs, kinds of instructions and scopes time went to.

The tree of XProf's tool of the same name (openxla/xprof), of CPUs too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from peakline import timing
from peakline.toolbox.parameters import XprofParameters, parameter
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import compact_json

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.timing.programs.hlo_host import HostHlo

__all__ = ["NAMES", "TOOL", "OpProfileParameters"]

NAMES = {"program": "byProgram", "category": "byCategory", "provenance": "byProvenance"}
"""What the trees are called in the answer, by what they are divided by first."""
_Item = TypeVar("_Item")


class OpProfileParameters(XprofParameters):
    """The parameters; text is accepted for every value."""

    group_by: Literal["program", "category", "provenance"] = parameter(
        "program", description="what the tree is divided by first"
    )
    program: str | None = parameter(
        None, description="only this program: its id, its name or name(id)", max_length=4096
    )
    category: str | None = parameter(
        None, description="only instructions of this category", max_length=4096
    )


def _partial(profile: Profile, _parameters: OpProfileParameters) -> HostHlo:
    return timing.host_hlo(profile)


def _combine(
    parts: Sequence[tuple[str, HostHlo]], parameters: OpProfileParameters, _format: str
) -> bytes:
    from peakline.tools.op_profile.tree import as_json, build_tree

    host = timing.combine_hosts([part for _, part in parts])
    group_by = parameters.group_by
    result: dict[str, Any] = {}
    for name, idle in ((NAMES[group_by], True), (f"{NAMES[group_by]}ExcludeIdle", False)):
        one = timing.chosen(
            host, program=parameters.program, category=parameters.category, idle=idle
        )
        tree = build_tree(one.table, host.programs, group_by, with_idle=idle, take=_largest)
        result[name] = as_json(tree, host.chips.peaks)
    result["deviceType"] = "CPU_ONLY" if host.chips.kind == "CPU" else host.chips.kind
    result["aggDvfsTimeScaleMultiplier"] = timing.ratio(host.table.normalized_ps, host.table.op_ps)
    return compact_json(result, ascii_only=False)


def _largest(items: list[_Item], count: int, key: Callable[[_Item], float]) -> list[_Item]:
    return sorted(items, key=key, reverse=True)[:count]


TOOL = Tool(
    name="op_profile",
    doc="Which programs, kinds of instructions and scopes the time of devices went to.",
    parameters=OpProfileParameters,
    formats=("json",),
    shows=(("events",),),
    partial=_partial,
    combine=_combine,
    runtime_steps=True,
)
