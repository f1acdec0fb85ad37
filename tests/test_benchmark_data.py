"""The benchmark's files are what they claim to be: one real run, repeated in time."""

import gzip
import subprocess
import sys
from collections import Counter
from functools import cache
from itertools import combinations, pairwise

import pytest

import peakline
from peakline.schema import XSpace
from reference.grouping import group_events
from reference.memory_profile import memory_profile
from tests.conformance.compare import compare_memory_profiles

_RUN_IDS = {"_p", "_c", "id", "element_id", "step_num"}
_MEMORY = {"MemoryAllocation": 1, "MemoryDeallocation": -1}


@pytest.fixture(scope="module")
def scaled(root, tmp_path_factory):
    """Make the file with that many repetitions, once; returns its bytes."""
    folder = tmp_path_factory.mktemp("scaled")

    @cache
    def make(repetitions: int, *options: str) -> bytes:
        path = folder / f"{repetitions}{'-'.join(options)}.xplane.pb"
        subprocess.run(
            [
                sys.executable,
                root / "benchmarks" / "scale.py",
                "--repetitions",
                str(repetitions),
                *options,
                path,
            ],
            env={"PATH": ""},
            check=True,
            capture_output=True,
        )
        return path.read_bytes()

    return make


@pytest.fixture(scope="module")
def source(sessions):
    path = sessions / "tf2_cnn/plugins/profile/2026_11_20_16_57_05/vm.xplane.pb.gz"
    return gzip.decompress(path.read_bytes())


@pytest.fixture(scope="module")
def three(scaled):
    return XSpace.FromString(scaled(3))


def _events(space):
    """``(line, name, offset, {stat: value})`` of every event of the host's threads."""
    plane = space.planes[0]
    names = {key: each.name for key, each in plane.event_metadata.items()}
    stats = {key: each.name for key, each in plane.stat_metadata.items()}
    for number, line in enumerate(plane.lines):
        for event in line.events:
            values = {
                stats[stat.metadata_id]: getattr(stat, stat.WhichOneof("value"))
                for stat in event.stats
            }
            yield number, names[event.metadata_id], event.offset_ps, values


def test_one_repetition_is_the_source_byte_for_byte(scaled, source):
    assert scaled(1) == source


def test_every_event_is_repeated(three, source):
    once = Counter((line, name) for line, name, _, _ in _events(XSpace.FromString(source)))
    thrice = Counter((line, name) for line, name, _, _ in _events(three))
    extra = {key: count - 3 * once[key] for key, count in thrice.items() if count != 3 * once[key]}
    assert {name for _, name in extra} == set(_MEMORY)
    # Five buffers live at the end are freed and three of before are allocated again, twice.
    assert sum(extra.values()) == 2 * (5 + 3)


def test_bytes_are_as_a_serialiser_writes_them(three, scaled):
    assert three.ByteSize() == len(scaled(3))


def test_times_go_on(three):
    for line in three.planes[0].lines:
        offsets = [event.offset_ps for event in line.events]
        assert offsets == sorted(offsets)


def test_contexts_and_steps_are_distinct_in_every_repetition(three, source):
    def producers(space):
        return [(e["_pt"], e["_p"]) for *_, e in _events(space) if "_p" in e]

    def steps(space):
        return [e["step_num"] for *_, e in _events(space) if "step_num" in e]

    assert len(set(producers(three))) == len(producers(three))
    assert len(producers(three)) == 3 * len(producers(XSpace.FromString(source)))
    assert steps(three) == list(range(48))


def test_no_id_of_a_run_comes_again_in_another_repetition(three):
    steps = {e["step_num"]: offset for _, _, offset, e in _events(three) if "step_num" in e}
    period = steps[16] - steps[0]
    seen = [set(), set(), set()]
    for _, name, offset, values in _events(three):
        for stat in _RUN_IDS & values.keys():
            if not name.startswith("Iterator::") and values[stat]:
                seen[offset // period].add((stat, values[stat]))
    steps_of_one = {("step_num", step) for step in range(16)}
    assert not any(one & other for one, other in combinations(seen, 2))
    assert seen[0] >= steps_of_one - {("step_num", 0)}
    assert min(map(len, seen)) > 5000


def test_the_profile_has_no_other_ids(three):
    stats = {stat for *_, values in _events(three) for stat in values}
    likely = {stat for stat in stats if stat.endswith(("id", "_num")) or "flow" in stat}
    assert likely == _RUN_IDS - {"_p", "_c"} | {"parent_id", "iter_num"}


def test_repeated_ids_are_those_of_the_first_repetition(scaled, source):
    def ids(content):
        events = _events(XSpace.FromString(content))
        return {(stat, e[stat]) for *_, e in events for stat in _RUN_IDS & e.keys()}

    assert ids(scaled(2, "--repeated-ids")) == ids(source)
    assert scaled(1, "--repeated-ids") == source


def test_answers_about_repeated_ids_are_those_of_the_reference(scaled, tmp_path):
    content = scaled(2, "--repeated-ids")
    path = tmp_path / "vm.xplane.pb"
    path.write_bytes(content)
    space = XSpace.FromString(content)
    with peakline.open(str(path)) as profile:
        steps = {step["step_id"]: step["name"] for step in profile.columns("steps").to_pylist()}
        memory = profile.tool("memory_profile").content
    assert steps == group_events(space).names
    assert compare_memory_profiles(memory_profile(space), memory) == []


def test_producers_and_consumers_still_meet(three):
    produced = {(e["_pt"], e["_p"]) for *_, e in _events(three) if "_p" in e}
    assert produced == {(e["_ct"], e["_c"]) for *_, e in _events(three) if "_c" in e}


def test_the_allocator_s_account_is_consistent_across_the_seams(three):
    """Every record changes the bytes in use by exactly its own size."""
    events = [event[1:] for event in _events(three) if event[1] in _MEMORY]
    records = sorted(events, key=lambda record: record[1])
    live: set[int] = set()
    unmatched = 0
    for (_, _, before), (name, _, values) in pairwise(records):
        change = _MEMORY[name] * values["allocation_bytes"]
        assert values["bytes_allocated"] - before["bytes_allocated"] == change
    for name, _, values in records:
        if name == "MemoryAllocation":
            assert values["addr"] not in live
            live.add(values["addr"])
        elif values["addr"] in live:
            live.remove(values["addr"])
        else:
            unmatched += 1
    assert (unmatched, len(live)) == (3, 5)
