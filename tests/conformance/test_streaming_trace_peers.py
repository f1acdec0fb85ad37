"""XProf's trace viewers and TensorFlow's timeline against the peers themselves."""

import gzip
import json
from collections import Counter

import pytest

import peakline
from peakline.schema import TraceDataResponse
from tests.conformance.oracle import OWN_SAMPLES, SEEDS
from tests.conformance.peer import Refused
from tests.conformance.step_spaces import gpu_space, tpu_space
from tests.conformance.viewer_spaces import (
    crowded_space,
    gpu_viewer_space,
    grouped_space,
    viewer_space,
)
from tests.tools.step_stats import random_run_metadata

TOOL = "trace_viewer@"
HOSTS = sorted((OWN_SAMPLES[0] / "tf2_multihost").rglob("*.xplane.pb"))
OFFLOAD = "Host Offload Ops"
"""Which row XProf puts a transfer on that ends with another is left to its sort."""


def ours(path, form=None, **options):
    with peakline.open(str(path)) as profile:
        answer = profile.tool("trace_viewer@", format=form, compatible="xprof", **options)
    return answer.content


def of_json(content):
    """What an answer says, whatever XProf's hashes made of the numbers of flows."""
    answer = json.loads(content)
    flows, result, serials = {}, [], {}
    rows = {(e["pid"], e["tid"]) for e in answer["traceEvents"]
            if e["name"] == "thread_name" and e["args"]["name"].startswith(OFFLOAD)}  # fmt: skip
    for event in sorted(answer.pop("traceEvents"), key=_order):
        own = dict(event)
        if (own["pid"], own.get("tid")) in rows:
            if own["ph"] == "M":
                continue
            own["tid"] = own["z"] = 0
        if own["name"] == "process_name":
            own["args"]["name"] = own["args"]["name"].partition(" ")[2]
            own["thread_count"] -= sum(pid == own["pid"] for pid, _ in rows)
        for key in ("bind_id", "id"):
            if key in own:
                # Flows of two hosts may share a number in XProf.
                known = flows.setdefault(own["pid"] // 1000, {})
                own[key] = known.setdefault(own[key], len(known))
        own = {k: float(v) if k in {"ts", "dur"} else v for k, v in own.items() if v != {}}
        if "sf" in own:
            # XProf numbers stack frames in the order of a hash map.
            own["sf"] = answer["stackFrames"][str(own["sf"])]["name"]
        serial = own.pop("z", 0)
        own.get("args", {}).pop("uid", None)
        # What is eager is left out.
        own.get("args", {}).pop("is_eager", None)
        serials.setdefault((own.get("ts"), own.get("dur")), []).append(serial)
        result.append(json.dumps(own, sort_keys=True))
    # Of events of one begin and length XProf's heap decides which comes first; and the launches
    # of steps, and asynchronous events of one name, stand in no order.
    if not any('"name": "Launch Stats"' in text or '"ph": "e"' in text for text in result):
        result += [f"{key}: {sorted(numbers)}" for key, numbers in serials.items()]
    answer["stackFrames"] = sorted(frame["name"] for frame in answer["stackFrames"].values())
    return answer, Counter(result)


def _order(event):
    keys = ("ts", "dur", "z", "pid", "tid")
    return (event["ph"], *(event.get(key, 0) for key in keys), event["name"])


def of_pb(content):
    import pyarrow as pa

    unpacked = pa.CompressedInputStream(pa.BufferReader(content), "zstd").read()
    answer = TraceDataResponse.FromString(unpacked)
    texts = answer.interned_strings
    result = Counter()
    for kind in ("complete_events", "counter_events", "async_events"):
        for series in getattr(answer, kind):
            own = kind, series.metadata.process_id, series.metadata.thread_id
            own += (texts[series.metadata.event_stats_ref],)
            name, time = texts[series.metadata.name_ref], 0
            for number, one in enumerate(series.event_metadata):
                time = (time + series.deltas[number]) % 2**64
                length = series.durations[number] if series.durations else None
                shown = texts[series.name_refs[number]] if series.name_refs else name
                value = one.counter_value_double, one.counter_value_uint64
                flow = texts[one.flow_category], bool(one.flow_id)
                result[*own, time, length, shown, *value, *flow, one.group_id] += 1
    processes = [
        (process.id, process.name.partition(" ")[2], process.sort_index,
         sorted((t.id, t.name, t.sort_index) for t in process.threads))
        for process in answer.metadata.processes
    ]  # fmt: skip
    span = answer.full_timespan_start_ps, answer.full_timespan_end_ps
    details = [(detail.name, detail.value) for detail in answer.details]
    return result, sorted(processes), span, details


def same(theirs, mine):
    assert theirs[0] == mine[0]
    assert not theirs[1] - mine[1], list(theirs[1] - mine[1])[:3]
    assert not mine[1] - theirs[1], list(mine[1] - theirs[1])[:3]


def check(xprof, path, options=None):
    """In JSON, or with that format in the compact form."""
    options = options or {}
    shown = of_pb if options.get("format") == "pb" else of_json
    form = {"form" if key == "format" else key: value for key, value in options.items()}
    theirs, mine = shown(xprof.ask(TOOL, path, options=options)), shown(ours(path, **form))
    if shown is of_pb:
        assert theirs == mine, path
    else:
        same(theirs, mine)


def test_every_sample_is_shown_as_xprof_shows_it(xprof):
    assert len(xprof.traces) >= 4
    for path in xprof.traces:
        assert json.loads(xprof.ask(TOOL, path))["traceEvents"]
        check(xprof, path)


def test_every_sample_in_compact_form(xprof):
    for path in xprof.traces:
        if "tpu" not in path.name:
            check(xprof, path, {"format": "pb"})


VIEWPORTS = [
    {"start_time_ms": "20", "end_time_ms": "60"},
    {"start_time_ms": "20.0005", "end_time_ms": "20.001", "resolution": "100"},
    {"start_time_ms": "20"},
    {"start_time_ms": "1e6", "end_time_ms": "2e6"},
    {"end_time_ms": "5", "resolution": "0"},
    {"full_dma": True},
    {"search_prefix": "Thread"},
    {"search_prefix": "train"},
    {"search_prefix": ""},
    {"search_prefix": "no such name"},
    {"search_prefix": "tr", "search_metadata": True},
]


@pytest.mark.parametrize("options", VIEWPORTS, ids=str)
def test_viewports_and_searches(xprof, options):
    # Those of programs look alike; recorded is one.
    paths = [path for path in xprof.traces if OWN_SAMPLES[1] not in path.parents]
    if xprof.is_recorded:
        paths = HOSTS[-1:]
    if options.get("start_time_ms") == "1e6":
        # Here the levels show, and what is on them depends on the rows of a TPU's transfers.
        paths = [path for path in paths if "tpu" not in path.name]
    for path in paths:
        check(xprof, path, options)


@pytest.mark.conformance
def test_all_of_one_event(live_xprof):
    request = 0
    for path in live_xprof.traces:
        if OWN_SAMPLES[1] in path.parents:
            continue
        shown = json.loads(ours(path))["traceEvents"]
        for event in [e for e in shown if e["ph"] == "X"][:: max(1, len(shown) // 40)]:
            length = 0.0 if event["dur"] == 1e-6 else event["dur"]
            options = {
                "event_name": event["name"],
                "start_time_ms": repr(event["ts"] / 1000),
                "duration_ms": repr(length / 1000),
                "unique_id": str(event["args"]["uid"]),
            }
            request += 1
            try:
                theirs = live_xprof.ask(TOOL, path, options=options)
            except Refused as error:
                assert "not found" in str(error)  # noqa: PT017 (of some events there is no answer)
                continue
            same(of_json(theirs), of_json(ours(path, **options)))
    assert request > 100


def written(folder, name, space):
    path = folder / f"{name}.xplane.pb"
    for plane in space.planes:
        for event in (event for line in plane.lines for event in line.events):
            for stat in event.stats:
                # As profilers write it; of another kind XProf reads 0.
                if plane.stat_metadata[stat.metadata_id].name == "correlation_id":
                    stat.uint64_value = stat.int64_value or stat.uint64_value
    path.write_bytes(space.SerializeToString())
    return path


MAKERS = {
    "viewer": viewer_space,
    "gpu_viewer": gpu_viewer_space,
    "grouped": grouped_space,
    "gpu": lambda seed: gpu_space(seed, gpus=1 + seed % 2),
    "tpu": lambda seed: tpu_space(seed, cores=1 + seed % 3, sparse_cores=seed % 2),
}


@pytest.mark.conformance
@pytest.mark.parametrize("kind", MAKERS)
def test_random_spaces(live_xprof, kind, tmp_path):
    for seed in range(SEEDS):
        path = written(tmp_path, f"{kind}{seed}", MAKERS[kind](seed))
        check(live_xprof, path)
        check(live_xprof, path, {"format": "pb"})


@pytest.mark.conformance
@pytest.mark.parametrize(
    "options",
    [
        {"resolution": "8000"},
        {"resolution": "100"},
        {"resolution": "1.5"},
        {"resolution": "2000", "start_time_ms": "10", "end_time_ms": "12"},
        {"resolution": "2000", "start_time_ms": "10", "end_time_ms": "10.01"},
    ],
    ids=str,
)
def test_many_events_are_thinned_alike(live_xprof, options, crowded):
    check(live_xprof, crowded, options)


@pytest.fixture(scope="module")
def crowded(tmp_path_factory):
    return written(tmp_path_factory.mktemp("crowded"), "host", crowded_space(1))


def test_two_hosts_are_numbered_one_after_the_other(xprof):
    from peakline.tools import find_tool

    tool = find_tool(TOOL)
    parameters = tool.validated({"compatible": "xprof"})
    tool = tool.answering(parameters)
    parts = []
    for path in HOSTS:
        with peakline.open(str(path)) as profile:
            parts.append((profile.host, tool.contribution(profile, parameters)))
    same(of_json(xprof.ask(TOOL, *HOSTS)), of_json(tool.combine(parts, parameters, "json")))


def test_a_file_may_be_compressed(tmp_path):
    path = written(tmp_path, "plain", viewer_space(3))
    packed = tmp_path / "packed.xplane.pb.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    same(of_json(ours(path)), of_json(ours(packed)))


def _told(content):
    """Every event and what XProf says of it, but for what it makes of hashes and of its sort."""
    result = Counter()
    shown = json.loads(content)["traceEvents"]
    rows = {
        (e["pid"], e["tid"])
        for e in shown
        if e.get("name") == "thread_name" and e["args"]["name"].startswith("Host Offload")
    }
    for event in shown:
        own = {k: float(v) if k in {"ts", "dur"} else v for k, v in event.items()}
        if (own.get("pid"), own.get("tid")) in rows:
            # Of transfers that end together XProf's sort decides which row they get.
            if own["ph"] == "M":
                continue
            own["tid"] = 0
        if own.get("ph") in {"X", "i"}:
            # Numbers of flows differ from run to run; what is eager is left out.
            arguments = dict(own.get("args", {}))
            arguments.pop("is_eager", None)
            own["args"] = arguments | ({"flow": 0} if "flow" in arguments else {})
        result[json.dumps(own, sort_keys=True)] += 1
    return result


def _same(xprof, paths):
    assert paths
    for path in paths:
        theirs = _told(xprof.ask("trace_viewer", path))
        with peakline.open(str(path)) as profile:
            ours = _told(profile.tool("trace_viewer", compatible="xprof").content)
        assert theirs, path
        assert not theirs - ours, (path, list(theirs - ours)[:3])
        assert not ours - theirs, (path, list(ours - theirs)[:3])


def test_every_sample_has_xprofs_events_and_arguments(xprof):
    _same(xprof, xprof.traces)


@pytest.mark.conformance
@pytest.mark.parametrize("kind", MAKERS)
def test_random_spaces_of_trace_viewer_peers(live_xprof, kind, tmp_path):
    made = [written(tmp_path, f"{kind}{seed}", MAKERS[kind](seed)) for seed in range(SEEDS)]
    _same(live_xprof, made)


def test_the_default_shows_every_host_event_of_xprof(xprof):
    """Thread, start and duration of each, but for regions, which XProf adds."""
    for path in xprof.traces:
        theirs = _host_events(json.loads(xprof.ask("trace_viewer", path)))
        with peakline.open(str(path)) as profile:
            shift = profile.zero_ps
            ours = _host_events(json.loads(profile.tool("trace_viewer", show_args=False).content))
        assert theirs, path
        missing = Counter(theirs) - Counter((tid, at + shift, length) for tid, at, length in ours)
        assert not missing, (path, sum(missing.values()), list(missing)[:3])


def _host_events(trace, host_pid=701):
    return [
        (event["tid"], round(event["ts"] * 1e6), round(event.get("dur", 0) * 1e6))
        for event in trace["traceEvents"]
        if event.get("ph") in {"X", "i"}
        and event["pid"] == host_pid
        and event["name"] != "ThreadpoolListener::Region"
    ]


def test_the_compact_form(xprof):
    for path in xprof.traces:
        if "tpu" not in path.name:
            with peakline.open(str(path)) as profile:
                ours = profile.tool("trace_viewer", format="pb", compatible="xprof").content
            theirs = xprof.ask("trace_viewer", path, options={"format": "pb"})
            assert of_pb(theirs) == of_pb(ours), path


OPTIONS = [
    {"show_dataflow": True, "show_memory": True, "op_time": "schedule"},
    {"show_dataflow": True, "show_memory": False, "op_time": "gpu"},
    {"show_dataflow": False, "show_memory": True, "op_time": "all"},
]


def check_of_timeline_peers(tensorflow, path, options):
    with peakline.open(path) as profile:
        ours = profile.tool("trace_viewer", **options).content.decode()
    assert ours == tensorflow.timeline(path, options), (path, options)


def test_every_sample(tensorflow):
    runs = [
        path
        for folder in tensorflow.folders
        for path in sorted(folder.rglob("*"))
        if "run_metadata" in str(path.relative_to(folder.parent))
        and path.name.endswith((".pb", ".pb.gz"))
        # Those have no recorded answers: what they are for is their findings.
        and "diagnosis" not in path.parts
    ]
    assert len(runs) >= 3
    for path in runs:
        for options in OPTIONS:
            check_of_timeline_peers(tensorflow, path, options)


@pytest.mark.conformance
def test_random_runs(live_tensorflow, tmp_path):
    for seed in range(SEEDS):
        path = tmp_path / f"seed {seed}.pb"
        path.write_bytes(random_run_metadata(seed).SerializeToString())
        if path.stat().st_size:
            check_of_timeline_peers(live_tensorflow, path, OPTIONS[seed % len(OPTIONS)])
