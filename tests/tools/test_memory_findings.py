"""The tool on recorded programs with known faults: whole, filtered, and of several hosts."""

import html
import json
import pickle
import re

import pytest
from tests.analysis.records import alloc, events, free
from tests.each_row import each_row
from tests.engine.ending import DATA
from tests.profile.fake import FakeReader

import peakline
from peakline.api import Profile
from peakline.errors import NotFoundError, UsageError
from peakline.tools import available_tools, find_tool
from peakline.tools.memory_findings import KINDS

PROGRAMS = DATA / "programs"
OOM = DATA / "oom_report" / "tf_bfc_oom.log.gz"
TOOL = find_tool("memory_findings")


def content(path, fmt=None, **parameters):
    with peakline.open(path) as profile:
        return profile.tool("memory_findings", format=fmt, **parameters).content


def answer(name, **parameters):
    return json.loads(content(PROGRAMS / f"{name}.xplane.pb.gz", **parameters))


def of_rows(rows, steps=()):
    tables = {"allocator_events": events(rows), "steps": list(steps)}
    return Profile(FakeReader(tables))


@each_row("name", ["leak_list", "fragmentation", "late_slot", "leak_list_healthy"])
def test_the_findings_are_those_of_the_memory_answer(name):
    with peakline.open(PROGRAMS / f"{name}.xplane.pb.gz") as profile:
        expected = [finding.as_json() for finding in profile.memory().findings]
        found = json.loads(profile.tool("memory_findings").content)
    assert found["findings"] == json.loads(json.dumps(expected))
    assert bool(expected) is (name != "leak_list_healthy")


def test_the_details_are_the_rows_behind_a_leak():
    found = answer("leak_list")
    (growth,) = found["growth"]
    assert growth["allocator"] == "bfc_cpu_allocator_for_gpu"
    assert (growth["bytes_per_step"], growth["steps_left"]) == (786432, 82525)
    assert len(growth["steps"]) == 20
    assert growth["steps"][0] == {"step": 0, "name": "train 0", "in_use_bytes": 12586496}
    assert growth["groups"][0]["op"] == "model/hidden/MatMul"
    assert growth["groups"][0]["kept_bytes"] == 20 * 786432
    (churn,) = found["churn"]
    assert churn["bytes_per_step"] == round(churn["bytes"] / 20)
    assert sum(one["allocations"] for one in churn["signatures"]) == churn["allocations"] == 336
    sizes = [saving["bytes"] for saving in found["savings"]]
    assert sizes == sorted(sizes, reverse=True)
    for saving in found["savings"]:
        assert saving["rows"]
        assert saving["peak_after_bytes"] + saving["bytes"] == 33165056


def test_the_details_tell_how_memory_lay_in_pieces():
    found = answer("fragmentation")
    (pool,) = found["fragmentation"]
    at_peak = found["findings"][0]["evidence"]["fragmentation"]
    assert (pool["reported_at_peak"], pool["forced"]) == (at_peak, 12)
    assert 0 < pool["rebuilt_at_peak"] < 1
    assert sum(one["new_bytes"] for one in pool["forced_allocations"]) == pool["forced_bytes"]
    worst = pool["forced_allocations"][0]
    assert worst["new_bytes"] == max(one["new_bytes"] for one in pool["forced_allocations"])
    assert worst["time_ps"] == pool["worst_time_ps"]
    assert sum(hole["bytes"] for hole in pool["holes"]) == worst["free_bytes"]
    assert {pin["op"] for pin in pool["pins"]} == {"summary/MatMul"}


def test_findings_can_be_chosen():
    assert [f["kind"] for f in answer("fragmentation")["findings"]] == [
        "fragmentation_at_peak",
        "fragmentation",
    ]
    chosen = answer("fragmentation", kind="fragmentation")
    assert [f["kind"] for f in chosen["findings"]] == ["fragmentation"]
    assert chosen["growth"]
    assert answer("cache_fill")["findings"][0]["severity"] == "info"
    assert answer("cache_fill", min_severity="warning")["findings"] == []
    assert answer("leak_list", min_severity="warning")["findings"]
    assert answer("leak_list", min_severity="error")["findings"] == []


def test_an_allocator_and_a_step_can_be_chosen():
    rows = [alloc(n, 99, in_use_bytes=99, free_bytes=1, allocator=name)
            for n, name in enumerate("ab")]  # fmt: skip
    found = json.loads(of_rows(rows).tool("memory_findings", allocator="b").content)
    assert [f["evidence"]["allocator"] for f in found["findings"]] == ["b"]
    assert {entry["allocator"] for entry in found["churn"]} == {"b"}
    with pytest.raises(NotFoundError, match="a, b"):
        of_rows(rows).tool("memory_findings", allocator="c")
    with pytest.raises(NotFoundError, match="no step '99'"):
        answer("leak_list", step="99")
    whole, early = answer("leak_list"), answer("leak_list", step="train 1")
    assert early["savings"] != whole["savings"]
    assert early["growth"] == whole["growth"]


@each_row(("parameter", "value"), [("kind", "leaks"), ("min_severity", "fatal"), ("steps", "1")])
def test_what_is_not_known_is_a_usage_error(parameter, value):
    with pytest.raises(UsageError, match=f"memory_findings: (no )?parameter '?{parameter}"):
        of_rows([alloc(1, 1)]).tool("memory_findings", **{parameter: value})


def test_every_kind_of_finding_can_be_asked_for_and_is_documented(root):
    told = set()
    for path in (root / "src" / "peakline" / "findings" / "kinds").glob("*.py"):
        if 'about="memory"' in (text := path.read_text(encoding="utf-8")):
            told |= set(re.findall(r'^KIND = Kind\(\s*"(\w+)"', text, re.MULTILINE))
            assert f'"{path.stem}"' in text
    assert told == set(KINDS)
    page = (root / "docs" / "findings.md").read_text(encoding="utf-8")
    row = re.compile(r"^\| \[`(\w+)`\]\(#\1\) \| (?:info|warning|error)[^|]*\|", re.MULTILINE)
    assert set(row.findall(page)) == told


def test_a_failed_allocation_is_a_finding():
    found = json.loads(content(OOM, min_severity="error"))
    assert [f["kind"] for f in found["findings"]] == ["out_of_memory"]
    assert found["growth"] == []


def test_it_is_there_where_memory_is(sessions):
    with peakline.open(OOM) as profile:
        assert "memory_findings" in available_tools(profile)
    with peakline.open(sessions / "jax_cpu") as profile:
        assert "memory_findings" not in available_tools(profile)
        assert set(map(len, json.loads(profile.tool("memory_findings").content).values())) == {0}
        assert profile.tool("memory_findings", format="markdown").content == b""
        assert "no_memory_events" in {warning.kind for warning in profile.warnings}


def combined(files, fmt="json"):
    """One answer of ``[(host, path)]``."""
    parameters, parts = TOOL.validated({}), []
    for host, path in files:
        with peakline.open(path) as profile:
            parts.append((host, TOOL.partial(profile, parameters)))
    return TOOL.combine(pickle.loads(pickle.dumps(parts)), parameters, fmt)  # noqa: S301


def test_one_finding_of_many_hosts_is_told_once():
    names = ["leak_list", "leak_late", "cache_fill", "leak_list_healthy"]
    files = [(f"host-{k}", PROGRAMS / f"{name}.xplane.pb.gz") for k, name in enumerate(names)]
    whole = json.loads(combined(files))
    leak, cache = whole["findings"]
    single = {host: json.loads(content(path)) for host, path in files}
    assert (leak["kind"], leak["hosts"]) == ("leak", ["host-0", "host-1"])
    assert leak["title"] == single["host-0"]["findings"][0]["title"]
    assert leak["evidence_by_host"] == {
        host: single[host]["findings"][0]["evidence"] for host in leak["hosts"]
    }
    assert (cache["kind"], cache["hosts"]) == ("cache", ["host-2"])
    for name in ("savings", "growth", "fragmentation", "churn"):
        told = [entry | {} for entry in whole[name]]
        assert [entry.pop("host") for entry in told] == [
            host for host, part in single.items() for _ in part[name]
        ]
        assert told == [entry for part in single.values() for entry in part[name]]


def test_a_session_of_two_hosts_is_answered_as_one(sessions):
    session = peakline.Repository(sessions / "tf2_multihost").sessions()[0]
    found = json.loads(session.tool("memory_findings").content)
    assert {entry["host"] for entry in found["churn"]} == set(session.hosts)
    assert found["findings"] == []


def test_markdown_is_a_list_that_names_the_hosts():
    paths = [PROGRAMS / f"{name}.xplane.pb.gz" for name in ("leak_list", "leak_list", "cache_fill")]
    alone = content(paths[0], "markdown").decode()
    assert alone.startswith("- **warning** `leak`: bfc\\_cpu\\_allocator")
    text = combined([(f"h_{k}", path) for k, path in enumerate(paths)], "markdown").decode()
    assert text.count("\n- **") == 1
    first, second = text.split("\n- **")
    assert first.endswith("(on h\\_0, h\\_1)")
    assert second.endswith("(on h\\_2)\n")


def test_hostile_names_stay_text():
    name = "[x](javascript:1)<img>\n- **error** `leak`\u2028|@me#1 $a$ https://evil.example *b*"
    profile = of_rows([alloc(1, 99, in_use_bytes=99, free_bytes=1, allocator=name), free(1)])
    text = profile.tool("memory_findings", format="markdown").content.decode()
    assert text.splitlines()[0].startswith("- **warning** `near_capacity`: ")
    assert len(text.splitlines()) == 2
    said = text.partition(": ")[2]
    assert re.findall(r"(?<!\\)[\[\]*`|$_<>@]", said) == []
    assert "://" not in said
    shown = html.unescape(re.sub(r"\\(.)", r"\1", said))
    assert shown.startswith("[x](javascript:1)<img> - **error** `leak` |@me#1 $a$ https://evil")
