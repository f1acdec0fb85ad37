"""Findings of time on recorded programs."""

import gzip
import json
import re
from pathlib import Path

from tests.each_row import each_row
from tests.shared import shared

from peakline.schema import XSpace

DATA = Path(__file__).resolve().parents[2] / "data"
PROGRAMS = DATA / "programs" / "time"
TRUTH = json.loads((DATA.parent / "programs" / "time_truth.json").read_text())
GPU = "/device:GPU:0"


@each_row("name", TRUTH)
def test_a_recorded_program_has_its_fault_and_no_other(name):
    answer = shared(PROGRAMS / TRUTH[name]["file"]).time()
    assert answer.times.count == TRUTH[name]["steps"]
    assert [f.kind for f in answer.findings] == [f["kind"] for f in TRUTH[name]["faults"]]


@each_row("name", TRUTH)
def test_a_recording_is_small_and_names_no_machine(name):
    packed = (PROGRAMS / TRUTH[name]["file"]).read_bytes()
    content = gzip.decompress(packed)
    assert len(packed) <= 150_000
    assert XSpace.FromString(content).hostnames == ["host"]
    assert not re.search(rb"/(?:root|home|tmp|usr|var|mnt|work)/", content)
    assert f"`{name.removesuffix('_healthy')}`" in (PROGRAMS / "README.md").read_text()


# What the other samples' owners would be told.

BETWEEN = {"tf2_multihost": ["idle_between_steps"]}
"""Its programs sleep for 20 and 40 ms after each step of 1 ms."""
TELLING = {
    # Slow reads, the first evaluation is traced in step 5, and step 24 was held up by others.
    "busy_pipeline": {"step_variation", "input_bound", "recompilation"},
    # A function is traced in step 9, and in step 7.
    "huge_temporary_once": {"recompilation"},
    "late_slot": {"recompilation"},
}
MEMORY = sorted((DATA / "programs").glob("*.xplane.pb.gz"))


def test_sessions(sample):
    found = shared(sample).time().findings
    session = sample.parts[sample.parts.index("sessions") + 1]
    assert [finding.kind for finding in found] == BETWEEN.get(session, [])
    assert {finding.severity for finding in found} <= {"info"}


@each_row("path", MEMORY)
def test_programs_with_faults_of_memory_are_healthy_in_time(path):
    found = {finding.kind for finding in shared(path).time().findings}
    assert found == TELLING.get(path.name.partition(".")[0], set())
