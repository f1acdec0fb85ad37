"""Exported RunMetadata is read by TensorFlow's own timeline and tfprof."""

import pytest

from peakline.schema import RunMetadata
from tests.export.written import DATA, SESSION, written_file

pytestmark = pytest.mark.conformance

SOURCES = [SESSION, DATA / "sessions" / "jax_captured", DATA / "run_metadata" / "tf1_cnn_2.pb.gz"]


@pytest.fixture(scope="module")
def answers(live_tensorflow):
    """Per source: what was written, and what TensorFlow made of it."""
    files = [written_file(source, "run-metadata") for source in SOURCES]
    return [(RunMetadata.FromString(file), live_tensorflow.exported(file)) for file in files]


def test_the_timeline_shows_every_execution_on_its_device(answers):
    for metadata, answer in answers:
        devices = metadata.step_stats.dev_stats
        assert answer["executions"] == sum(len(device.node_stats) for device in devices) > 0
        assert {f"{device.device} Compute" for device in devices} <= set(answer["processes"])


def test_tfprof_counts_time_and_memory(answers):
    for _, answer in answers[::2]:
        assert answer["counted"] > 0
        assert answer["micros"] > 0
        assert answer["bytes"] > 0
