"""What is said first of a profile: summary, headline and findings."""

import html
import json
import pickle
import re
import statistics
from collections import defaultdict

import pytest
from tests.each_row import each_row
from tests.memory.records import alloc, events, free
from tests.shared import DATA
from tests.tables.fake import FakeReader
from tests.web.samples import SAMPLES

import peakline
from peakline.api import Profile
from peakline.engine import Engine
from peakline.errors import NotFoundError, UsageError
from peakline.findings.memory_answer import memory_of
from peakline.repository import Repository
from peakline.text import population_of, size_text, time_text
from peakline.tools import available_tools, find_tool
from peakline.tools.headline import WIDTH
from peakline.tools.memory_findings import KINDS

_PROGRAMS = DATA / "programs"


@pytest.fixture(params=["", "time", "steps"], ids=["memory", "time", "steps"])
def programs(request):
    """The recorded programs of one folder that have steps."""
    return sorted((_PROGRAMS / request.param).glob("*.xplane.pb.gz"))


def headline(profile, about):
    return json.loads(profile.tool("headline", about=about).content)


def of_kind(answer, kind):
    return [one for one in answer["sentences"] if one["kind"] == kind]


def test_a_sentence_is_its_phrases(sample):
    with peakline.open(sample) as profile:
        for about in ("memory", "time", "savings"):
            for one in headline(profile, about)["sentences"]:
                assert one["text"] == "".join(phrase["text"] for phrase in one["phrases"])
                assert one["phrases"][0]["text"].strip()


def test_the_peak_is_that_of_the_memory_answer(sample):
    with peakline.open(sample) as profile:
        result = headline(profile, "memory")
        peaks = {peak.allocator: peak for peak in memory_of(profile).allocators}
        assert len(of_kind(result, "peak")) == bool(peaks)
        for one in of_kind(result, "peak"):
            links = [
                phrase["params"] for phrase in one["phrases"] if phrase.get("view") == "memory"
            ]
            for params in (link for link in links if link):
                peak = peaks[params["allocator"]]
                assert size_text(peak.peak_bytes) in one["text"]
                assert params.get("at", peak.peak_time_ps) == peak.peak_time_ps
            picture = result["picture"]
            if picture is not None:
                assert len(picture["high"]) == len(picture["low"]) == WIDTH
                assert max(picture["high"]) == peaks[picture["allocator"]].peak_bytes


def slow_steps(profile):
    """The longest window of each step by plain loops: name, length, times the median of its name,
    and whether it is one of the first two of that name.
    """
    longest = {}
    for row in profile.table("step_breakdown").to_pylist():
        if row["is_cut_off"]:
            continue
        known = longest.get(row["step_id"])
        if known is None or row["wall_ps"] > known["wall_ps"]:
            longest[row["step_id"]] = row
    steps = sorted(longest.values(), key=lambda row: row["start_ps"])
    by_name = defaultdict(list)
    for row in steps:
        by_name[population_of(row["name"] or str(row["step_id"]))].append(row)
    result = []
    for rows in by_name.values():
        if len(rows) < 5:
            continue
        median = statistics.median(row["wall_ps"] for row in rows)
        result += [
            (row["name"], row["wall_ps"], median, place < 2)
            for place, row in enumerate(rows)
            if row["wall_ps"] >= 2 * max(median, 1)
        ]
    return result


def with_steps(programs):
    """The profiles among them that have steps, open."""
    for path in programs:
        with peakline.open(path) as profile:
            if profile.table("step_breakdown").num_rows:
                yield profile


def test_the_slow_step_is_the_one_that_loses_most_time(programs):
    for profile in with_steps(programs):
        slow = slow_steps(profile)
        result = headline(profile, "time")
        for kind, is_first in (("slow_step", False), ("first_step", True)):
            chosen = [one for one in slow if one[3] == is_first]
            sentences = of_kind(result, kind)
            assert len(sentences) == bool(chosen)
            if not chosen:
                continue
            name, wall, median, _ = max(chosen, key=lambda one: one[1] - one[2])
            (one,) = sentences
            assert one["is_notable"] == (kind == "slow_step")
            assert one["phrases"][1]["params"]["name"] == name
            assert f"took {time_text(wall)}, {wall / median:.1f} times the median" in one["text"]
            if kind == "slow_step" and len(chosen) > 1:
                more = len(chosen) - 1
                assert f"; {more} more slow step{'s' if more > 1 else ''}" in one["text"]


def test_a_bar_is_the_longest_of_its_steps(programs):
    for profile in with_steps(programs):
        strip = headline(profile, "time")["picture"]
        rows = [row for row in profile.table("step_breakdown").to_pylist() if not row["is_cut_off"]]
        assert sum(strip["steps"]) == len({row["step_id"] for row in rows})
        assert max(strip["wall_ps"]) == max(row["wall_ps"] for row in rows)
        assert len(strip["wall_ps"]) <= WIDTH
        assert {len(column) for column in strip.values()} == {len(strip["name"])}
        slow = {(name, is_first) for name, _, _, is_first in slow_steps(profile)}
        for name, *marks in zip(strip["name"], strip["is_slow"], strip["is_warm_up"], strict=True):
            assert marks == [(name, False) in slow, (name, True) in slow]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("graph_def/frozen.pb", "GraphDef of 70 nodes and 1 function"),
        ("graph_def/saved_model.pb.gz", "MetaGraph of 431 nodes and 1 function"),
        ("xla_dump/module_0000.jit_flow.cpu_after_optimizations.hlo.pb", None),
        ("programs/leak_list.xplane.pb.gz", None),
    ],
)
def test_a_graph_alone_is_said_by_its_size(name, text):
    with peakline.open(DATA / name) as profile:
        result = of_kind(headline(profile, "memory"), "graph")
        assert [one["text"] for one in result] == ([] if text is None else [text])


def test_without_steps_the_op_with_most_self_time_is_said(sample):
    with peakline.open(sample) as profile:
        result = headline(profile, "time")
        rows = profile.table("op_stats").to_pylist() if "op_stats" in profile.tables else []
    if of_kind(result, "steps"):
        assert not of_kind(result, "op")
        return
    rows = [row for row in rows if row["side"] == "device"] or rows
    most = max((row["self_ps"] for row in rows), default=0)
    whole = sum(row["self_ps"] for row in rows)
    assert len(of_kind(result, "op")) == (most >= 0.005 * whole > 0)
    for one in of_kind(result, "op"):
        assert one["text"].startswith(f"{most / whole:.0%} of the self time of the ")
        op = one["phrases"][1]["params"]["op"]
        assert most in [row["self_ps"] for row in rows if row["op"] == op]


def test_nothing_stands_out_is_not_said_beside_a_saving_of_half_the_peak():
    with peakline.open(DATA / "memory_log" / "session_default_allocator.log.gz") as profile:
        (saving,) = of_kind(headline(profile, "savings"), "saving")
        document = json.loads(profile.tool("summary").content)
    assert "instead of 33.0 MiB (51% less)" in saving["text"]
    assert saving["is_notable"]  # nothing says how much memory there is
    [first] = document["first"]
    assert (first["kind"], first["severity"]) == ("peak_saving", "info")
    assert document["notable"] == [saving]


def test_a_failure_comes_first():
    with peakline.open(DATA / "oom_report" / "tf_bfc_oom.log.gz") as profile:
        first, peak = headline(profile, "memory")["sentences"]
    assert first["kind"] == "failure"
    assert first["text"].endswith("ran out of memory: 2.0 MiB requested by AddV2")
    assert "97% of the capacity" in peak["text"]


def test_rounding_is_said_from_a_fifth_of_the_peak_on():
    path = DATA / "programs" / "huge_temporary.xplane.pb.gz"
    with peakline.open(path) as profile:
        (one,) = of_kind(headline(profile, "memory"), "rounding")
        moment = json.loads(profile.tool("live_memory", limit="5000").content)
    known = [row for row in moment["rows"] if row["requested_bytes"] is not None]
    wasted = sum(row["bytes"] - row["requested_bytes"] for row in known)
    assert wasted >= moment["bytes_in_use"] / 5
    assert one["text"].startswith(f"rounding takes {size_text(wasted)} of the ")


MULTI = DATA / "sessions" / "tf2_multihost"


def printed(capsys, *words):
    from peakline.__main__ import main

    capsys.readouterr()
    assert main(["summary", *map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def with_names(document):
    """With file names for paths."""
    path = document["profile"]["path"].rpartition("/")[2]
    return document | {"profile": document["profile"] | {"path": path}}


@each_row(
    "file",
    [
        "programs/time/input_bound.xplane.pb.gz",
        "programs/leak_list.xplane.pb.gz",
        "pprof/device_memory.pprof.pb.gz",
        "oom_report/tf_bfc_oom.log.gz",
        "memory_log/tf1_control_flow.log.gz",
        "run_metadata/tf1_cnn_2.pb.gz",
        "chrome_trace/noleak.pt.trace.json.gz",
    ],
)
def test_it_is_what_the_verb_prints(capsys, file):
    with peakline.open(DATA / file) as profile:
        assert find_tool("summary").supports(profile)
        result = json.loads(profile.tool("summary").content)
    assert result == with_names(printed(capsys, DATA / file))


def test_a_graph_has_no_summary():
    with peakline.open(DATA / "graph_def" / "frozen.pb") as profile:
        assert not find_tool("summary").supports(profile)


def test_several_hosts_and_who_keeps_them_waiting(capsys):
    (session,) = Repository(MULTI).sessions()
    result = json.loads(Engine().tool(session, "summary").content)
    assert "no collectives are recorded" in (text := result.pop("straggler_text"))
    assert result.pop("straggler") is None
    for own in result["hosts"]:
        host = own.pop("host")
        assert own == with_names(printed(capsys, MULTI, "--host", host))
    # The verb answers about the job: the tool of that name.
    job = json.loads(Engine().tool(session, "job").content)
    assert job == printed(capsys, MULTI)
    assert text == job["headline"]


def test_one_of_several_hosts_is_told_alone(capsys):
    (session,) = Repository(MULTI).sessions()
    answer = Engine().tool(session, "summary", host="localhost_56665")
    verb = printed(capsys, MULTI, "--host", "localhost_56665")
    assert json.loads(answer.content) == with_names(verb)


def test_warnings_of_a_question_are_in_its_document_each_time():
    (session,) = Repository(DATA / "sessions" / "jax_cpu").sessions()
    engine = Engine()
    engine.tool(session, "memory_findings")
    result = json.loads(engine.tool(session, "summary").content)
    assert [(one["kind"], one["count"]) for one in result["warnings"]] == [("no_memory_events", 1)]


def test_it_stays_small_however_many_steps_there_are():
    with peakline.open(DATA / "sessions" / "jax_captured") as profile:
        answer = profile.tool("summary").content
    assert json.loads(answer)["time"]["steps"] == 113
    assert len(answer) < 8000


PARTS = ("facts", "memory", "time", "findings")


@pytest.mark.parametrize("name", SAMPLES)
def test_the_parts_are_the_whole(name):
    path = str(SAMPLES[name][0])
    with peakline.open(path) as profile:
        whole = json.loads(profile.tool("summary").content)
    with peakline.open(path) as profile:
        parts = {}
        for part in PARTS:
            parts |= json.loads(profile.tool("summary", part=part).content)
    assert parts == whole


FAULTY = DATA / "programs" / "time" / "recompiling.xplane.pb.gz"


def found(profile, **parameters):
    return json.loads(profile.tool("time_findings", **parameters).content)["hosts"]


def test_it_is_the_answer_of_the_verb():
    with peakline.open(FAULTY) as profile:
        (host,) = found(profile)
        answer = profile.time().as_json()
    assert host.pop("host") == profile.host
    assert host == json.loads(json.dumps(answer))
    assert [finding["kind"] for finding in host["findings"]] == ["recompilation"]


@each_row(
    ("parameters", "kinds"),
    [
        ({"kind": "recompilation"}, ["recompilation"]),
        ({"kind": "input_bound"}, []),
        ({"min_severity": "error"}, []),
    ],
)
def test_only_what_is_asked_for(parameters, kinds):
    with peakline.open(FAULTY) as profile:
        (host,) = found(profile, **parameters)
    assert [finding["kind"] for finding in host["findings"]] == kinds


def test_without_the_steps_it_is_short():
    with peakline.open(FAULTY) as profile:
        (host,) = found(profile, steps="false")
    assert "steps" not in host
    assert host["times"]["count"] > 0


def test_every_host_has_its_own():
    repository = peakline.Repository(DATA / "sessions" / "tf2_multihost")
    content = repository.sessions()[0].tool("time_findings").content
    hosts = [host["host"] for host in json.loads(content)["hosts"]]
    assert hosts == ["localhost_47507", "localhost_56665"]


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
        result = json.loads(profile.tool("memory_findings").content)
    assert result["findings"] == json.loads(json.dumps(expected))
    assert bool(expected) is (name != "leak_list_healthy")


def test_the_details_are_the_rows_behind_a_leak():
    result = answer("leak_list")
    (growth,) = result["growth"]
    assert growth["allocator"] == "bfc_cpu_allocator_for_gpu"
    assert (growth["bytes_per_step"], growth["steps_left"]) == (786432, 82525)
    assert len(growth["steps"]) == 20
    assert growth["steps"][0] == {"step": 0, "name": "train 0", "in_use_bytes": 12586496}
    assert growth["groups"][0]["op"] == "model/hidden/MatMul"
    assert growth["groups"][0]["kept_bytes"] == 20 * 786432
    (churn,) = result["churn"]
    assert churn["bytes_per_step"] == round(churn["bytes"] / 20)
    assert sum(one["allocations"] for one in churn["signatures"]) == churn["allocations"] == 336
    sizes = [saving["bytes"] for saving in result["savings"]]
    assert sizes == sorted(sizes, reverse=True)
    for saving in result["savings"]:
        assert saving["rows"]
        assert saving["peak_after_bytes"] + saving["bytes"] == 33165056


def test_the_details_tell_how_memory_lay_in_pieces():
    result = answer("fragmentation")
    (pool,) = result["fragmentation"]
    at_peak = result["findings"][0]["evidence"]["fragmentation"]
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
    result = json.loads(of_rows(rows).tool("memory_findings", allocator="b").content)
    assert [f["evidence"]["allocator"] for f in result["findings"]] == ["b"]
    assert {entry["allocator"] for entry in result["churn"]} == {"b"}
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
    result = set()
    for path in (root / "src" / "peakline" / "findings" / "kinds").glob("*.py"):
        if 'about="memory"' in (text := path.read_text(encoding="utf-8")):
            result |= set(re.findall(r'^KIND = Kind\(\s*"(\w+)"', text, re.MULTILINE))
            assert f'"{path.stem}"' in text
    assert result == set(KINDS)
    page = (root / "docs" / "findings.md").read_text(encoding="utf-8")
    row = re.compile(r"^\| \[`(\w+)`\]\(#\1\) \| (?:info|warning|error)[^|]*\|", re.MULTILINE)
    assert set(row.findall(page)) == result


def test_a_failed_allocation_is_a_finding():
    result = json.loads(content(OOM, min_severity="error"))
    assert [f["kind"] for f in result["findings"]] == ["out_of_memory"]
    assert result["growth"] == []


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
        result = [entry | {} for entry in whole[name]]
        assert [entry.pop("host") for entry in result] == [
            host for host, part in single.items() for _ in part[name]
        ]
        assert result == [entry for part in single.values() for entry in part[name]]


def test_a_session_of_two_hosts_is_answered_as_one(sessions):
    session = peakline.Repository(sessions / "tf2_multihost").sessions()[0]
    result = json.loads(session.tool("memory_findings").content)
    assert {entry["host"] for entry in result["churn"]} == set(session.hosts)
    assert result["findings"] == []


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
