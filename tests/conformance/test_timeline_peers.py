"""trace_viewer of RunMetadata against TensorFlow's own timeline, byte for byte."""

import pytest

import peakline
from tests.conformance.oracle import SEEDS
from tests.tools.step_stats import random_run_metadata

OPTIONS = [
    {"show_dataflow": True, "show_memory": True, "op_time": "schedule"},
    {"show_dataflow": True, "show_memory": False, "op_time": "gpu"},
    {"show_dataflow": False, "show_memory": True, "op_time": "all"},
]


def check(tensorflow, path, options):
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
            check(tensorflow, path, options)


@pytest.mark.conformance
def test_random_runs(live_tensorflow, tmp_path):
    for seed in range(SEEDS):
        path = tmp_path / f"seed {seed}.pb"
        path.write_bytes(random_run_metadata(seed).SerializeToString())
        if path.stat().st_size:
            check(live_tensorflow, path, OPTIONS[seed % len(OPTIONS)])
