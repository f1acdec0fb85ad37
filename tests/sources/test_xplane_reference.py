"""The fast reader against the slow reference: every case, random files, any way of cutting them."""

from __future__ import annotations

import functools

import pytest
from tests.conformance.compare import compare_memory_profiles

import peakline
from peakline.sources.xplane import lines
from reference.cases import CASES, random_xspace
from reference.grouping import group_events
from reference.memory_profile import memory_profile

SEEDS = (*range(12), 194)
SPACES = {name: case.build for name, case in CASES.items()} | {
    f"seed {seed}": functools.partial(random_xspace, seed) for seed in SEEDS
}


@pytest.fixture(params=SPACES)
def space(request):
    """One XSpace that is not an empty file."""
    built = SPACES[request.param]()
    if not built.ByteSize():
        pytest.skip("an empty file is an error, not a profile")
    return built


@pytest.fixture(params=[False, True], ids=["whole", "in tiny pieces"])
def profile(request, space, tmp_path, monkeypatch):
    """The space as a profile, read as it is or in pieces of a few events."""
    if request.param:
        cut = functools.partial(lines.stream, piece_bytes=max(64, space.ByteSize() // 200))
        monkeypatch.setattr(lines, "stream", cut)
    path = tmp_path / "vm.xplane.pb"
    path.write_bytes(space.SerializeToString())
    with peakline.open(str(path)) as opened:
        yield opened


def test_memory_profile_is_that_of_the_reference(space, profile):
    expected = memory_profile(space)
    got = profile.tool("memory_profile").content
    assert compare_memory_profiles(expected, got) == []


def test_steps_are_those_of_the_reference(space, profile):
    expected = group_events(space)
    steps = profile.columns("steps").to_pylist()
    assert {step["step_id"]: step["name"] for step in steps} == expected.names
    events = profile.columns("events")
    places = [
        (plane, line, event)
        for plane, plane_message in enumerate(space.planes)
        for line, line_message in enumerate(plane_message.lines)
        for event in range(len(line_message.events))
    ]
    valid, step_ids = events.is_valid("step_id").tolist(), events.array("step_id").tolist()
    rows = zip(places, step_ids, valid, strict=True)
    assert {place: step for place, step, known in rows if known} == expected.groups
