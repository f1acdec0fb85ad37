"""trace_viewer against XProf's: every event and what is said of it."""

import json
from collections import Counter

import pytest

import peakline
from tests.conformance.oracle import SEEDS
from tests.conformance.test_streaming_trace_peers import MAKERS, of_pb, written


def _told(content):
    """Every event and what XProf says of it, but for what it makes of hashes and of its sort."""
    told = Counter()
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
        told[json.dumps(own, sort_keys=True)] += 1
    return told


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
def test_random_spaces(live_xprof, kind, tmp_path):
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
