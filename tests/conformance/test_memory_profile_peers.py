"""memory_profile and step grouping against the real XProf, field by field and event by event.

Inputs: the sample sessions, more folders of them named in PEAKLINE_SAMPLES (separated by colons),
every named case, and PEAKLINE_CONFORMANCE_SEEDS (200) random XSpaces.
"""

from __future__ import annotations

import gzip
import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from google.protobuf.message import DecodeError

import peakline
from peakline.schema import XSpace
from reference.cases import CASES, random_xspace
from reference.grouping import group_events
from reference.memory_profile import memory_profile
from tests.conformance.compare import compare_memory_profiles, describe
from tests.conformance.oracle import (
    Answer,
    Question,
    ask_xprof,
    groups_by_tag,
    step_names_by_tag,
    tag_events,
)

pytestmark = pytest.mark.conformance

SESSIONS = Path(__file__).parent.parent / "data" / "sessions"


@dataclass(frozen=True)
class Input:
    """A file, its message, and what XProf says of it."""

    path: Path
    space: XSpace
    profile: Answer
    grouped: Answer


def sample_files():
    """Sample files by name: the root's name and the path below it."""
    roots = [SESSIONS, *map(Path, filter(None, os.environ.get("PEAKLINE_SAMPLES", "").split(":")))]
    return {
        f"{root.name}/{path.relative_to(root)}": path
        for root in roots
        for path in sorted(root.glob("**/*.xplane.pb*"))
    }


SAMPLES = sample_files()
SEEDS = range(int(os.environ.get("PEAKLINE_CONFORMANCE_SEEDS", "200")))
NAMES = [*SAMPLES, *CASES, *(f"seed {seed}" for seed in SEEDS)]


def read_space(path):
    """The message in a file, or None where its bytes are not one."""
    content = path.read_bytes()
    if content.startswith(b"\x1f\x8b"):
        content = gzip.decompress(content)
    try:
        return XSpace.FromString(content)
    except DecodeError:
        return None


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Every input, with XProf's answers to all of them from one process."""
    python = os.environ.get("PEAKLINE_PEERS_PYTHON")
    if not python:
        pytest.skip("PEAKLINE_PEERS_PYTHON does not name the peers' interpreter")
    folder = tmp_path_factory.mktemp("inputs")
    found = {name: (path, read_space(path)) for name, path in SAMPLES.items()}
    built = {name: case.build() for name, case in CASES.items()}
    built |= {f"seed {seed}": random_xspace(seed) for seed in SEEDS}
    for number, (name, space) in enumerate(built.items()):
        path = folder / f"{number}.xplane.pb"
        path.write_bytes(space.SerializeToString())
        found[name] = (path, space)
    questions = []
    for number, (path, space) in enumerate(found.values()):
        questions.append(Question(path))
        tagged = folder / f"{number}.tagged.pb"
        tagged.write_bytes(b"" if space is None else tag_events(space).SerializeToString())
        questions.append(Question(tagged, memory_profile=False, groups=True))
    answers = ask_xprof(python, questions)
    return {
        name: Input(path, space, answers[2 * number], answers[2 * number + 1])
        for number, (name, (path, space)) in enumerate(found.items())
    }


@pytest.fixture(params=NAMES)
def item(request, inputs):
    """One input that XProf can read."""
    chosen = inputs[request.param]
    if chosen.space is None:
        assert chosen.profile.error is not None
        pytest.skip("not an XSpace; XProf refuses it too")
    assert chosen.profile.error is None
    assert chosen.grouped.error is None
    return chosen


@pytest.fixture
def readable(item):
    """One input that Peakline answers: an empty file is an XSpace for XProf, an error for us."""
    if not item.path.stat().st_size:
        pytest.skip("Peakline refuses an empty file")
    return item


def event_keys(space):
    """Plane, line and event number of every event, in the order of the file."""
    return [
        (plane_number, line_number, event_number)
        for plane_number, plane in enumerate(space.planes)
        for line_number, line in enumerate(plane.lines)
        for event_number in range(len(line.events))
    ]


def wrong_groups(item, groups):
    """Events whose group in ``groups`` (by key) is not XProf's, with both.

    XProf drops some step events, which are not compared, and in this answer, unlike in the
    memory profile, gives every event of a GPU a group, so the ungrouped ones there are not either.
    """
    keys = event_keys(item.space)
    wrong = []
    for number, expected in groups_by_tag(item.grouped.xspace).items():
        key = keys[number]
        got = groups.get(key)
        on_gpu = item.space.planes[key[0]].name.startswith("/device:GPU")
        if got != expected and not (on_gpu and got is None):
            wrong.append((key, expected, got))
    return wrong


def test_memory_profile(readable):
    with peakline.open(str(readable.path)) as profile:
        content = profile.tool("memory_profile").content
    differences = compare_memory_profiles(readable.profile.memory_profile, content)
    assert not differences, describe(differences)


def test_step_of_every_event(readable):
    with peakline.open(str(readable.path)) as profile:
        events = profile.columns("events")
    keys = event_keys(readable.space)
    lines = [len(line.events) for plane in readable.space.planes for line in plane.lines]
    expected_lines = [number for number, count in enumerate(lines) for _ in range(count)]
    assert events.array("line_id").tolist() == expected_lines
    steps = zip(
        keys,
        events.array("step_id").tolist(),
        events.is_valid("step_id").tolist(),
        strict=True,
    )
    assert not wrong_groups(readable, {key: step for key, step, valid in steps if valid})


def test_reference_memory_profile(item):
    differences = compare_memory_profiles(item.profile.memory_profile, memory_profile(item.space))
    assert not differences, describe(differences)


def test_reference_grouping(item):
    grouping = group_events(item.space)
    assert not wrong_groups(item, grouping.groups)
    keys = event_keys(item.space)
    expected = {keys[n]: name for n, name in step_names_by_tag(item.grouped.xspace).items()}
    assert grouping.step_names == expected
