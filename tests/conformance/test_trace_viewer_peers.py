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


def _host_events(trace, host_pid=701):
    return [
        (event["tid"], round(event["ts"] * 1e6), round(event.get("dur", 0) * 1e6))
        for event in trace["traceEvents"]
        if event.get("ph") in {"X", "i"}
        and event["pid"] == host_pid
        and event["name"] != "ThreadpoolListener::Region"
    ]


def test_every_host_event_of_xprof_is_there():
    """Thread, start and duration of each; XProf shortens names, and adds lines and regions."""
    questions = [Question(path, memory_profile=False, trace=True) for path in XSPACES]
    answers = ask_xprof(os.environ["PEAKLINE_PEERS_PYTHON"], questions)
    for path, answer in zip(XSPACES, answers, strict=True):
        theirs = _host_events(json.loads(answer.trace))
        with peakline.open(str(path)) as profile:
            ours = _host_events(json.loads(profile.tool("trace_viewer", show_args=False).content))
        lines = {tid for tid, *_ in ours}
        theirs = [event for event in theirs if event[0] in lines]
        assert theirs, path
        # The zero of the clock is another one: the shift that fits the most of some events.
        shifts = Counter(
            a[1] - b[1] for a in theirs[:50] for b in ours if a[0] == b[0] and a[2] == b[2]
        )
        shift = shifts.most_common(1)[0][0]
        missing = Counter(theirs) - Counter((tid, at + shift, length) for tid, at, length in ours)
        assert not missing, (path, sum(missing.values()), list(missing)[:3])
