"""memory_profile and step grouping against the real XProf, field by field and event by event.

Inputs: the samples, every named case, and random XSpaces.
"""

import pytest

import peakline
from peakline.errors import InputError
from peakline.schema import XSpace
from reference.cases import CASES
from reference.grouping import group_events
from reference.memory_profile import memory_profile
from reference.random_xspace import random_xspace
from tests.conformance.compare import compare_memory_profiles, describe
from tests.conformance.oracle import SEEDS, space_of
from tests.conformance.peer import Refused
from tests.conformance.stats_tables import written


@pytest.fixture
def made(tmp_path):
    """The named cases and random XSpaces as files."""
    spaces = {name: case.build() for name, case in CASES.items()}
    spaces |= {f"seed {seed}": random_xspace(seed) for seed in range(SEEDS)}
    return written(tmp_path, spaces)


def event_keys(space):
    """Plane, line and event number of every event, in the order of the file."""
    return [
        (plane_number, line_number, event_number)
        for plane_number, plane in enumerate(space.planes)
        for line_number, line in enumerate(plane.lines)
        for event_number in range(len(line.events))
    ]


def wrong_groups(space, expected, groups):
    """Events whose group in ``groups`` (by key) is not the ``expected`` one, with both.

    XProf drops some step events, which are not compared, and in this answer, unlike in the
    memory profile, gives every event of a GPU a group, so the ungrouped ones there are not either.
    """
    keys = event_keys(space)
    wrong = []
    for number, group in expected.items():
        key = keys[number]
        got = groups.get(key)
        on_gpu = space.planes[key[0]].name.startswith("/device:GPU")
        if got != group and not (on_gpu and got is None):
            wrong.append((key, group, got))
    return wrong


def steps_of_events(space, path):
    """The group of every event that has one, by key, as the runtime's profiler makes them."""
    with peakline.open(str(path)) as profile:
        events = profile.with_runtime_steps().columns("events")
    lines = [len(line.events) for plane in space.planes for line in plane.lines]
    expected_lines = [number for number, count in enumerate(lines) for _ in range(count)]
    assert events.array("line_id").tolist() == expected_lines
    steps = zip(
        event_keys(space),
        events.array("step_id").tolist(),
        events.is_valid("step_id").tolist(),
        strict=True,
    )
    return {key: step for key, step, valid in steps if valid}


def check(xprof, path, *, reference):
    """Ours, and with ``reference`` the slow one, against the peer; returns what differs."""
    space, profile = space_of(path), xprof.ask("memory_profile", path)
    grouping = xprof.grouping(path)
    wrong = []
    # An empty file is an XSpace for XProf, an error for us.
    if path.stat().st_size:
        with peakline.open(str(path)) as opened:
            content = opened.tool("memory_profile").content
        wrong.append(describe(compare_memory_profiles(profile, content)))
        wrong.append(wrong_groups(space, grouping.groups, steps_of_events(space, path)))
    if reference:
        wrong.append(describe(compare_memory_profiles(profile, memory_profile(space))))
        slow = group_events(space)
        wrong.append(wrong_groups(space, grouping.groups, slow.groups))
        keys = event_keys(space)
        expected = {keys[number]: name for number, name in grouping.step_names.items()}
        if slow.step_names != expected:
            wrong.append((slow.step_names, expected))
    return [one for one in wrong if one]


def differences(xprof, paths, *, reference):
    result = {path.name: check(xprof, path, reference=reference) for path in paths}
    return {name: wrong for name, wrong in result.items() if wrong}


def test_every_sample(xprof):
    assert len(xprof.spaces) > (20 if xprof.is_recorded and xprof.is_whole else 5)
    assert differences(xprof, xprof.spaces, reference=False) == {}


@pytest.mark.soak
def test_the_reference_on_every_sample(live_xprof):
    assert differences(live_xprof, live_xprof.spaces, reference=True) == {}


@pytest.mark.conformance
def test_cases_and_random_spaces(live_xprof, made):
    assert differences(live_xprof, made, reference=True) == {}


@pytest.mark.conformance
def test_what_is_no_message_is_refused_by_both(live_xprof, tmp_path):
    path = tmp_path / "damaged.xplane.pb"
    space = XSpace(hostnames=["host"]).SerializeToString()
    path.write_bytes(space[:-1] + b"\xef\xbf\xbd" + space)
    with pytest.raises(Refused):
        live_xprof.ask("memory_profile", path)
    with pytest.raises(InputError), peakline.open(str(path)) as profile:
        profile.tool("memory_profile")
