"""Work that steps only launch: the marks of a recorded job, made to end before its programs run."""

import gzip

import pytest
from tests.shared import DATA

import peakline
from peakline.check.time import time_limits, time_state_of
from peakline.check.verdict import Limits
from peakline.schema import XSpace

RECORDED = DATA / "sessions/jax_cpu/plugins/profile/2026_11_20_17_20_28/vm.xplane.pb.gz"
US = 10**6


@pytest.fixture
def job(tmp_path):
    """Write the job with marks that end when the last call of a program in them has begun, of all
    steps but the first ``whole``; a path.
    """

    def write(whole=0):
        space = XSpace.FromString(gzip.decompress(RECORDED.read_bytes()))
        for plane in space.planes:
            names = {key: one.name for key, one in plane.event_metadata.items()}
            for line in plane.lines:
                marks = [one for one in line.events if names[one.metadata_id] == "train"]
                for mark in sorted(marks, key=lambda one: one.offset_ps)[whole:]:
                    end = mark.offset_ps + mark.duration_ps
                    calls = [
                        one.offset_ps
                        for one in line.events
                        if names[one.metadata_id].startswith("PjitFunction(")
                        and mark.offset_ps <= one.offset_ps < end
                    ]
                    mark.duration_ps = max(calls) + US - mark.offset_ps
        path = tmp_path / f"{whole}.xplane.pb"
        path.write_bytes(space.SerializeToString())
        return path

    return write


def finding_of(path):
    with peakline.open(path) as profile:
        found = [one for one in profile.time().findings if one.kind == "work_after_steps"]
        steps = profile.steps()
    return (found or [None])[0], steps


def test_work_that_ends_in_the_steps_is_not_late():
    assert finding_of(RECORDED)[0] is None


def test_work_that_the_steps_only_launch(job):
    path = job()
    finding, steps = finding_of(path)
    evidence = finding.evidence
    assert finding.severity == "warning"
    assert "jit_train_step" in evidence["programs"]
    assert evidence["late_ps"] > max(0.75 * evidence["work_ps"], steps.wall_ps)
    assert evidence["share"] == evidence["late_ps"] / evidence["work_ps"]
    assert finding.title.startswith("the steps only launch their work: ")
    # A limit on what the marks say would hold of any program.
    with peakline.open(path) as profile:
        state = time_state_of(profile.time())
    (check,) = time_limits(state, Limits(max_step_ps=10**12))
    assert not check.passed
    assert check.reason.startswith("cannot be measured: the steps only launch their work: wait for")


def test_work_of_which_some_ends_in_the_steps(job):
    finding, _ = finding_of(job(whole=9))
    assert finding is None
