"""What every face says of one profile: verbs, tools and tables, each asked once.

The page shows what tools and tables say, and asks for nothing else (`tests/web` compares it with
them): `breakdown`, `findings_of_time`, `summary`, `findings_of_memory` and `live` are its answers.
"""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any

from peakline.check.baseline import write_baseline
from peakline.compare.comparison import ProfileState, compare_profiles, profile_state
from peakline.compare.state import state_of
from peakline.document import memory_document, ops_document, steps_document
from peakline.tools import available_tools

if TYPE_CHECKING:
    import peakline

Document = dict[str, Any]


class Said:
    """The answers about an open profile; times are ps, sizes bytes."""

    def __init__(self, profile: peakline.Profile) -> None:
        self.profile = profile
        self.tools = frozenset(available_tools(profile))

    def tool(self, name: str, **parameters: object) -> Any:
        """What a tool says as JSON, None where it has nothing to show."""
        if name not in self.tools:
            return None
        return json.loads(self.profile.tool(name, format="json", **parameters).content)

    def table(self, name: str) -> list[Document]:
        """A table's rows, none where the profile lacks it."""
        profile = self.profile
        return profile.columns(name).to_pylist() if name in profile.tables else []

    @cached_property
    def summary(self) -> Document | None:
        """``peakline summary``, and the page's first view."""
        return self.tool("summary")

    @cached_property
    def of_steps(self) -> Document:
        """``peakline steps --json``."""
        return steps_document(self.profile)

    @cached_property
    def of_memory(self) -> Document:
        """``peakline memory --json``."""
        return memory_document(self.profile)

    @cached_property
    def of_ops(self) -> list[Document]:
        """The rows of ``peakline ops --json``."""
        return ops_document(self.profile)["ops"]

    @cached_property
    def of_kernels(self) -> list[Document]:
        """The rows of ``peakline ops --kernels --json``."""
        return ops_document(self.profile, kernels=True)["kernels"]

    @cached_property
    def of_check(self) -> list[Document]:
        """``allocators`` of ``peakline check --json``."""
        return write_baseline(state_of(self.profile.memory()))

    @cached_property
    def of_diff(self) -> Document:
        """``peakline diff --json`` of the profile with itself."""
        return self.compared_with(self)

    @cached_property
    def state(self) -> ProfileState:
        """What a comparison reads of the profile."""
        return profile_state(self.profile)

    def compared_with(self, after: Said) -> Document:
        """``peakline diff --json`` of this profile and a later one."""
        return compare_profiles(self.state, after.state).as_json()

    @cached_property
    def breakdown(self) -> Document:
        """The tool ``step_breakdown``: the chart and the table of the page's steps."""
        return self.tool("step_breakdown") or {"steps": [], "variation": [], "straggler": None}

    @cached_property
    def findings_of_time(self) -> Document | None:
        """The tool ``time_findings``."""
        result = self.tool("time_findings")
        return None if result is None else result["hosts"][0]

    @cached_property
    def findings_of_memory(self) -> Document:
        """The tool ``memory_findings``: without records too, for what programs alone say."""
        return json.loads(self.profile.tool("memory_findings", format="json").content)

    @cached_property
    def live(self) -> Document | None:
        """The tool ``live_memory`` at the largest peak."""
        return self.tool("live_memory")

    @cached_property
    def steps(self) -> dict[int, Document]:
        """The table ``steps`` by id."""
        return {step["step_id"]: step for step in self.table("steps")}

    @property
    def whole_steps(self) -> list[Document]:
        """The rows of ``steps`` that no answer leaves out: all, where all are cut off."""
        every = [*self.steps.values()]
        return [step for step in every if not step["is_cut_off"]] or every

    def gviz(self, name: str, place: int = 0) -> tuple[list[Document], Document]:
        """The rows of a tool's table in the shape of XProf's, and the table's properties."""
        result = self.tool(name)
        if result is None:
            return [], {}
        table = result[place] if isinstance(result, list) else result
        names = [column["id"] for column in table.get("cols", [])]
        rows = [
            dict(zip(names, ((cell or {}).get("v") for cell in row["c"]), strict=True))
            for row in table.get("rows", [])
        ]
        return rows, table.get("p", {})
