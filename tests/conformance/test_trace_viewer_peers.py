"""trace_viewer against TensorFlow's own timeline, byte for byte, and against XProf's events."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import peakline
from tests.conformance.oracle import Question, ask_xprof
from tests.conformance.test_streaming_trace_peers import MAKERS, of_pb, written
from tests.tools.step_stats import random_run_metadata

pytestmark = pytest.mark.conformance

DATA = Path(__file__).parent.parent / "data"
ROOTS = [DATA, *map(Path, filter(None, os.environ.get("PEAKLINE_SAMPLES", "").split(":")))]
METADATA = sorted(
    path
    for root in ROOTS
    for path in root.glob("**/*.pb*")
    if "run_metadata" in str(path) and path.name.endswith((".pb", ".pb.gz"))
)
SEEDS = range(int(os.environ.get("PEAKLINE_CONFORMANCE_SEEDS", "200")))
SPACE_SEEDS = range(min(100, len(SEEDS)))
OPTIONS = [
    {"show_dataflow": True, "show_memory": True, "op_time": "schedule"},
    {"show_dataflow": True, "show_memory": False, "op_time": "gpu"},
    {"show_dataflow": False, "show_memory": True, "op_time": "all"},
]


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Per input: the file, the options, and what TensorFlow made of it."""
    folder = tmp_path_factory.mktemp("timeline")
    jobs = []
    for number, path in enumerate(METADATA):
        content = path.read_bytes()
        plain = folder / f"sample {number}.pb"
        plain.write_bytes(gzip.decompress(content) if path.suffix == ".gz" else content)
        jobs += [(plain, options) for options in OPTIONS]
    for seed in SEEDS:
        path = folder / f"seed {seed}.pb"
        path.write_bytes(random_run_metadata(seed).SerializeToString())
        if path.stat().st_size:
            jobs += [(path, OPTIONS[seed % len(OPTIONS)])]
    asked = [
        (str(path), options, str(folder / f"{number}.json"))
        for number, (path, options) in enumerate(jobs)
    ]
    (folder / "jobs.json").write_text(json.dumps(asked))
    script = Path(__file__).parent / "peers" / "run_timeline.py"
    python = os.environ["PEAKLINE_PEERS_PYTHON"]
    subprocess.run([python, script, folder / "jobs.json"], check=True, capture_output=True)
    return [(path, options, Path(answer)) for path, options, answer in asked]


def test_the_timeline_is_tensorflows(answers):
    assert len(answers) > 3 * len(METADATA)
    for path, options, answer in answers:
        with peakline.open(path) as profile:
            ours = profile.tool("trace_viewer", **options).content.decode()
        assert ours == answer.read_text(), (path, options)


XSPACES = sorted(
    path
    for root in ROOTS
    for path in root.glob("**/*.xplane.pb*")
    if not path.name.startswith("CORRUPT")
)


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


def _same(paths):
    questions = [Question(path, memory_profile=False, trace=True) for path in paths]
    answers = ask_xprof(os.environ["PEAKLINE_PEERS_PYTHON"], questions)
    for path, answer in zip(paths, answers, strict=True):
        theirs = _told(answer.trace)
        with peakline.open(str(path)) as profile:
            ours = _told(profile.tool("trace_viewer", compatible="xprof").content)
        assert theirs, path
        assert not theirs - ours, (path, list(theirs - ours)[:3])
        assert not ours - theirs, (path, list(ours - theirs)[:3])


def test_every_sample_has_xprofs_events_and_arguments():
    _same(XSPACES)


@pytest.mark.parametrize("kind", MAKERS)
def test_random_spaces(kind, tmp_path):
    _same([written(tmp_path, f"{kind}{seed}", MAKERS[kind](seed)) for seed in SPACE_SEEDS])


def test_the_default_shows_every_host_event_of_xprof():
    """Thread, start and duration of each, but for regions, which XProf adds."""
    questions = [Question(path, memory_profile=False, trace=True) for path in XSPACES]
    answers = ask_xprof(os.environ["PEAKLINE_PEERS_PYTHON"], questions)
    for path, answer in zip(XSPACES, answers, strict=True):
        theirs = _host_events(json.loads(answer.trace))
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


def test_the_compact_form():
    paths = [path for path in XSPACES if "tpu" not in path.name]
    questions = [
        Question(path, memory_profile=False, tools={"trace_viewer": {"format": "pb"}})
        for path in paths
    ]
    answers = ask_xprof(os.environ["PEAKLINE_PEERS_PYTHON"], questions)
    for path, answer in zip(paths, answers, strict=True):
        with peakline.open(str(path)) as profile:
            ours = profile.tool("trace_viewer", format="pb", compatible="xprof").content
        assert of_pb(answer.tools["trace_viewer"]) == of_pb(ours), path
