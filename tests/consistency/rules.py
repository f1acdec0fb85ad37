"""What has to be equal, whoever says it: a function for each fact, which asserts it of a profile.

Only these differ, as docs/steps.md says, and are not compared:

- ``compatible=xprof`` of any tool: XProf's steps, ops and kernels, also where they are wrong.
- the step ids of the tool ``memory_profile`` and of the table ``memory_snapshots``, and the moment
  and the lifetime's peak in that tool: as XProf has them.
- the *times* of steps in ``overview_page``, ``input_pipeline_analyzer`` and ``pod_viewer``: XProf's
  events decide where a step ends; which steps there are, and their names, is compared.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from peakline.findings.catalogue import kinds
from peakline.findings.ranking import priorities
from peakline.text import population_of

if TYPE_CHECKING:
    from tests.consistency.said import Said

Rule = Callable[["Said"], None]
RULES: list[Rule] = []


def rule(check: Rule) -> Rule:
    RULES.append(check)
    return check


def check_all(said: Said) -> None:
    """Try every rule; all that do not hold are reported, each by its name."""
    broken: list[Exception] = []
    for check in RULES:
        try:
            check(said)
        except Exception as error:  # noqa: BLE001 (whatever it is, the others are tried too)
            error.add_note(f"in the rule {check.__name__}, of {said.profile.path}")
            broken.append(error)
    if broken:
        raise ExceptionGroup(f"{len(broken)} of {len(RULES)} rules are broken", broken)


def only(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: row[name] for name in names}


@rule
def whose_profile(said: Said) -> None:
    profile = said.profile
    facts = {
        "path": profile.path,
        "format": profile.format,
        "host": profile.host,
        "duration_ps": profile.duration_ps,
    }
    assert said.of_steps["profile"] == said.of_memory["profile"] == facts
    assert said.of_diff["before"] == said.of_diff["after"] == facts
    if said.summary is not None:
        name = profile.path.rpartition("/")[2]
        assert said.summary["profile"] == facts | {"path": name}
    if said.findings_of_time is not None:
        assert said.findings_of_time["host"] == profile.host
    if said.live is not None:
        assert said.live["host"] == profile.host


@rule
def rows_of_steps(said: Said) -> None:
    """The steps one by one: verb, tool and table."""
    rows = said.table("step_breakdown")
    assert said.breakdown["steps"] == rows
    by_time = sorted(rows, key=lambda row: row["start_ps"])
    result = said.of_steps["steps"]
    assert [row["start_ps"] for row in result] == [row["start_ps"] for row in by_time]
    without = [{name: row[name] for name in row if name != "is_slow"} for row in result]
    assert sorted(map(str, without)) == sorted(map(str, rows))
    if said.findings_of_time is not None:
        assert said.findings_of_time["steps"] == said.of_steps["steps"]


@rule
def steps_are_those_of_the_table(said: Said) -> None:
    """Every row of ``step_breakdown`` is of a step, and has its name, and how it was found."""
    assert len(said.steps) == len(said.table("steps"))
    rows = said.breakdown["steps"]
    for row in rows:
        step = said.steps[row["step_id"]]
        assert only(row, "name", "found_by") == only(step, "name", "found_by")
        assert row["is_cut_off"] == bool(step["is_cut_off"])
        assert row["wall_ps"] == row["end_ps"] - row["start_ps"]
    if "events" in said.profile.tables or "op_runs" in said.profile.tables:
        assert {row["step_id"] for row in rows} == set(said.steps)


@rule
def begin_and_end_of_steps(said: Said) -> None:
    """Without a device a step is as long as its mark, unless an earlier one overlaps it."""
    rows = said.breakdown["steps"]
    if any(row["device"] is not None for row in rows):
        return
    reach = None
    for row in rows:
        step = said.steps[row["step_id"]]
        begin = step["start_ps"] if reach is None else max(step["start_ps"], reach)
        assert row["start_ps"] == begin
        if step["found_by"] != "function":
            assert row["end_ps"] == max(step["end_ps"], begin)
        assert row["end_ps"] >= step["end_ps"] or row["end_ps"] == begin
        reach = row["end_ps"]


@rule
def number_of_steps(said: Said) -> None:
    rows = [row for row in said.breakdown["steps"] if not row["is_cut_off"]]
    rows = rows or said.breakdown["steps"]
    whole = said.whole_steps if rows else []
    times = said.of_steps["times"]
    assert (times is None) == (not rows)
    if times is None:
        assert said.summary is None or not (said.summary["time"] or {}).get("times")
        assert said.breakdown["variation"] == []
        return
    names = {population_of(step["name"]) for step in whole}
    by_name = {one["name"]: one["count"] for one in said.of_steps["times_by_name"]}
    assert set(by_name) == (names if len(names) > 1 else set())
    assert sum(by_name.values()) == (len(rows) if by_name else 0)
    count = Counter((row["device"], population_of(row["name"])) for row in rows)
    result = {(one["device"], one["name"]): one["steps"] for one in said.breakdown["variation"]}
    assert result == count
    is_apart = len(rows) != len(whole) * len({row["device"] for row in rows})
    steps = said.summary["time"]["steps"]
    assert steps == (len(rows) if is_apart else len(whole))
    assert steps == said.of_steps["number_of_steps"] == said.breakdown["number_of_steps"]
    time = said.of_diff["time"]
    assert time["before"]["steps"] == time["after"]["steps"] == steps


@rule
def times_of_steps(said: Said) -> None:
    """Median, mean and extremes: of each name, over what is not cut off."""
    rows = [row for row in said.breakdown["steps"] if not row["is_cut_off"]]
    rows = rows or said.breakdown["steps"]
    walls: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        walls[population_of(row["name"])].append(row["wall_ps"])
    if not rows:
        return
    most = max(walls, key=lambda name: sum(walls[name]))
    of_name = said.of_steps["times_by_name"] or [{"name": most} | said.of_steps["times"]]
    assert of_name[0]["name"] == most
    assert {one["name"]: one["median_ps"] for one in of_name} == {
        name: round(statistics.median(own)) for name, own in walls.items()
    }
    assert of_name[0] == {"name": most} | said.of_steps["times"]
    for name in ("times", "times_by_name", "found_by", "parts"):
        assert said.summary["time"][name] == said.of_steps[name]
    assert said.of_diff["time"]["before"]["times"] == said.of_steps["times"]
    for one in said.breakdown["variation"]:
        own = [
            row["wall_ps"]
            for row in rows
            if (row["device"], population_of(row["name"])) == (one["device"], one["name"])
        ]
        assert one["median_ps"] == statistics.median(own)
        assert (one["min_ps"], one["max_ps"]) == (min(own), max(own))
        assert one["mean_ps"] == statistics.fmean(own)


@rule
def slow_steps(said: Said) -> None:
    slow = {(row["step_id"], row["device"]) for row in said.of_steps["steps"] if row["is_slow"]}
    result = {
        (step["step_id"], one["device"])
        for one in said.breakdown["variation"]
        for step in one["slow"]
    }
    assert result == slow


@rule
def devices(said: Said) -> None:
    rows = said.table("device_time")
    assert said.of_steps["devices"] == rows
    if said.summary is not None and said.summary["time"] is not None:
        assert said.summary["time"]["devices"] == rows
    for row in rows:
        assert row["busy_ps"] + row["idle_ps"] == row["end_ps"] - row["start_ps"]
    assert {row["device"] for row in said.breakdown["steps"]} - {None} <= {
        row["device"] for row in rows
    }


@rule
def step_ids(said: Said) -> None:
    """Whatever has a step is of one that the table ``steps`` has."""
    if not said.steps:
        return
    for name in ("events", "allocator_events"):
        if name not in said.profile.tables:
            continue
        assert ({row["step_id"] for row in said.table(name)} - {None}) <= set(said.steps)
    for name in ("start_step", "end_step"):
        assert {row[name] for row in said.table("buffers")} - {None} <= set(said.steps)


@rule
def peaks(said: Said) -> None:
    result = {one["allocator"]: one for one in said.of_memory["allocators"]}
    facts = ("peak_bytes", "peak_time_ps", "peak_step", "capacity_bytes", "untracked_allocations")
    expected = {name: only(one, *facts) for name, one in result.items()}
    if said.summary is not None:
        memory = said.summary["memory"] or {"allocators": []}
        assert {one["allocator"]: only(one, *facts) for one in memory["allocators"]} == expected
    if said.live is not None:
        assert {one["allocator"]: only(one, *facts) for one in said.live["allocators"]} == expected
        for one in said.live["allocators"]:
            assert one["lifetime_peak_bytes"] == result[one["allocator"]]["lifetime_peak_bytes"]
            assert one["live_at_end_bytes"] == result[one["allocator"]]["live_at_end_bytes"]
    bytes_of = {name: one["peak_bytes"] for name, one in result.items()}
    assert {one["allocator"]: one["peak_bytes"] for one in said.of_check} == bytes_of
    compared = said.of_diff["allocators"]
    assert {one["allocator"]: one["before"]["peak_bytes"] for one in compared} == bytes_of
    for name, one in result.items():
        assert sum(row["bytes"] for row in one["peak_buffers"]) == bytes_of[name]


@rule
def peaks_of_the_memory_profile(said: Said) -> None:
    result = said.tool("memory_profile")
    if result is None:
        return
    answer = {one["allocator"]: one for one in said.of_memory["allocators"]}
    for name, one in result["memoryProfilePerAllocator"].items():
        assert (
            int(one["profileSummary"]["peakStats"]["peakBytesInUse"]) == answer[name]["peak_bytes"]
        )


@rule
def what_is_live_at_a_peak(said: Said) -> None:
    for one in said.of_memory["allocators"]:
        result = said.tool("live_memory", allocator=one["allocator"], limit=0)
        assert result["bytes_in_use"] == one["peak_bytes"]
        assert result["record_ps"] == one["peak_time_ps"]
        assert result["step_id"] == one["peak_step"]
        assert result["is_peak"]
        if said.steps and one["peak_step"] is not None:
            assert result["step_name"] == said.steps[one["peak_step"]]["name"]
        records = [
            row["step_id"]
            for row in said.table("allocator_events")
            if (row["allocator"], row["time_ps"]) == (one["allocator"], one["peak_time_ps"])
        ]
        assert one["peak_step"] in records or not records


@rule
def findings(said: Said) -> None:
    memory, time = said.of_memory["findings"], said.of_steps["findings"]
    assert said.findings_of_memory["findings"] == memory
    if said.findings_of_time is not None:
        assert said.findings_of_time["findings"] == time
    if said.summary is None:
        # Programs alone may have some: a file of them is not summed up.
        assert not memory or not said.of_memory["allocators"]
        assert not time
        return
    every = priorities(said.profile.memory().findings, said.profile.time().findings)
    result = [one.as_json() for one in every]
    assert said.summary["first"] == result[:3]
    assert said.summary["further_findings"] == len(result[3:])
    count = Counter(finding["severity"] for finding in [*memory, *time])
    assert said.summary["findings"] == {
        severity: count[severity] for severity in ("error", "warning", "info")
    }
    assert said.of_diff["findings"] == {"new": [], "gone": [], "worse": []}


PLACE = {"file", "function", "line", "path"}
UNDECLARED = {"held_after_use": PLACE, "rounding": PLACE}
"""Where the rows of these findings are from, where a recording has Python's frames, is not in the
columns of their kinds.
"""


@rule
def evidence_of_findings(said: Said) -> None:
    """Every number of evidence is declared by the finding's kind."""
    for finding in [*said.profile.memory().findings, *said.profile.time().findings]:
        names = {*finding.evidence, *(name for row in finding.rows for name in row)}
        declared = {*kinds()[finding.kind].columns, *UNDECLARED.get(finding.kind, ())}
        assert names <= declared, finding.kind


@rule
def steps_that_findings_name(said: Said) -> None:
    labels = {step["name"] for step in said.steps.values()}
    labels |= {str(number) for number in said.steps}
    for finding in said.of_steps["findings"]:
        for row in finding["evidence"].get("rows", []):
            if "step" in row:
                assert row["step"] in labels
    for finding in said.of_memory["findings"]:
        evidence = finding["evidence"]
        if evidence.get("steps_found_by") == "steps":
            for name in ("since_step", "until_step"):
                assert evidence.get(name) in {None, *said.steps}
            for row in evidence.get("rows", []):
                assert row.get("since_step") in {None, *said.steps}


@rule
def growth(said: Said) -> None:
    """Memory at the ends of steps: those of the table, which are not cut off."""
    for one in said.findings_of_memory["growth"]:
        if one["steps_found_by"] != "steps":
            continue
        whole = {step["step_id"]: step["name"] for step in said.whole_steps}
        ids = [row["step"] for row in one["steps"]]
        assert set(ids) <= set(whole)
        assert one["stride"] > 1 or len(ids) == len(whole)
        is_inferred = said.of_steps["found_by"] == "function"
        how = ", inferred from runs of functions" if is_inferred else ""
        assert one["steps_detail"] == f"the profile's {len(whole)} steps{how}"
        for row in one["steps"]:
            assert row["name"] == (whole[row["step"]] or row["name"])


@rule
def ops(said: Said) -> None:
    table = said.table("op_stats")
    assert sorted(map(str, said.of_ops)) == sorted(map(str, table))
    times: Counter[tuple[str, str]] = Counter()
    for row in table:
        times[row["side"], row["op"]] += row["self_ps"]
    rows, _ = said.gviz("framework_op_stats", 1)
    result: Counter[tuple[str, str]] = Counter()
    for row in rows:
        result[row["host_or_device"].lower(), row["operation"]] += round(
            row["total_self_time"] * 10**6
        )
    assert {op: ps for op, ps in result.items() if ps} == {op: ps for op, ps in times.items() if ps}
    if said.summary is not None and said.summary["time"] is not None:
        for op in said.summary["time"]["top_ops"]:
            same = [row for row in table if (row["side"], row["op"]) == (op["side"], op["op"])]
            assert op["self_ps"] in [row["self_ps"] for row in same]


@rule
def ops_of_a_comparison(said: Said) -> None:
    time = said.of_diff["time"]
    if time is None:
        return
    own: Counter[str] = Counter()
    for row in said.table("op_stats"):
        own[row["side"]] += row["self_ps"]
    for which in ("before", "after"):
        for side, result in time[which]["own_ps"].items():
            # With steps it is what ran from the first to the last one (docs/diff.md).
            assert result == own[side] or (time[which]["steps"] and result < own[side])
    assert (time["parts"], time["ops"]) == ([], [])


@rule
def kernels(said: Said) -> None:
    table = said.table("kernels")
    assert sorted(map(str, said.of_kernels)) == sorted(map(str, table))
    rows, _ = said.gviz("kernel_stats")
    if not rows:
        return
    result: Counter[str] = Counter()
    times: Counter[str] = Counter()
    for row in rows:
        result[row["kernel_name"]] += round(row["total_duration_us"] * 10**6)
    for row in table:
        times[row["kernel"]] += row["total_ps"]
    assert result == times


@rule
def warnings(said: Said) -> None:
    """One warning is the same whoever asks."""
    documents = [said.of_steps, said.of_memory, said.summary or {"warnings": []}]
    every = {one.kind: (one.count, one.detail) for one in said.profile.warnings}
    for document in documents:
        for one in document["warnings"]:
            assert every[one["kind"]] == (one["count"], one["detail"])


@rule
def steps_of_xprof_s_pages(said: Said) -> None:
    """Our own answers in XProf's shapes: the same steps by name."""
    rows, _ = said.gviz("overview_page", 1)
    other, _ = said.gviz("input_pipeline_analyzer", 1)
    assert [row["stepnum"] for row in rows] == [row["stepnum"] for row in other]
    if rows and not any(step["found_by"] == "device" for step in said.steps.values()):
        assert sorted(row["stepnum"] for row in rows) == sorted(
            step["name"] or str(step["step_id"]) for step in said.whole_steps
        )
