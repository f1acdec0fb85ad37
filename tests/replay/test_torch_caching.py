"""PyTorch's caching allocator against a plain model and real recordings, with its settings."""

import gzip
import json
import re
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.ending import EndingAt
from tests.replay.caching_sequences import (
    SIZES,
    caching_events,
    random_events,
    random_settings,
    replayed,
)
from tests.replay.real_sequences import Sequence

from kernels import uncompiled
from peakline.deadline import within
from peakline.errors import DeadlineError, UsageError
from peakline.kernels import caching_layout as layout
from peakline.replay import torch_caching
from peakline.replay.torch_caching import UNLIMITED, CachingMachine
from peakline.replay.torch_events import CachingEvents
from peakline.replay.torch_settings import MIB, CachingSettings

STATES = {layout.IS_FREE: "free", layout.IS_LIVE: "live", layout.IS_AWAITING: "awaiting",
          layout.IS_UNMAPPED: "unmapped"}  # fmt: skip


def layout_of(machine):
    """As the plain model gives it."""
    result = machine.blocks()
    rows = [[] for _ in result.base]
    for n, at, size, state, buffer in zip(
        result.segment.tolist(), result.address.tolist(), result.bytes.tolist(),
        result.state.tolist(), result.buffer.tolist(), strict=True,
    ):  # fmt: skip
        rows[n].append((at, size, STATES[state], None if buffer < 0 else buffer))
    return [
        (base, size, large, expandable, blocks)
        for base, size, large, expandable, blocks in zip(
            result.base.tolist(), result.size.tolist(), result.is_large.tolist(),
            result.is_expandable.tolist(), rows, strict=True,
        )
    ]  # fmt: skip


def same(machine, plain, addresses, failed):
    assert machine.failed == failed
    assert layout_of(machine) == plain.layout()
    assert machine.reserved == plain.reserved()
    assert machine.in_use == plain.in_use()
    assert machine.strange == plain.strange
    assert (machine.taken, machine.returned) == (plain.taken, plain.returned)
    assert (machine.peak_reserved, machine.peak_in_use) == (plain.peak_reserved, plain.peak_in_use)
    if machine.address.size:
        assert {b: int(machine.address[b]) for b in addresses} == addresses


def random_case(seed, count, sizes, most_live, lanes, bad):
    rng = Random(seed)
    sequence = random_events(rng, count, SIZES[sizes], most_live, lanes=lanes, bad=bad)
    limit = rng.choice([6, 30, 64, 100, 260, 700]) * MIB
    return rng, sequence, random_settings(rng), limit


cases = given(
    st.integers(0, 2**32), st.integers(0, 150), st.sampled_from(sorted(SIZES)),
    st.sampled_from([2, 8, 40]), st.sampled_from([1, 2, 4]), st.sampled_from([0.0, 0.1]),
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@cases
def test_it_is_what_the_rules_say(seed, count, sizes, most_live, lanes, bad):
    rng, sequence, chosen, limit = random_case(seed, count, sizes, most_live, lanes, bad)
    by_age, captured = rng.random() < 0.5, rng.random() < 0.5
    placement = rng.choice(sorted(torch_caching.PLACEMENTS))
    events = caching_events(sequence)
    machine = CachingMachine(
        events, chosen, limit, placement=placement, is_by_age=by_age, are_pools_captured=captured
    )
    machine.advance()
    same(machine, *replayed(sequence, chosen, limit, limit, placement=placement, by_age=by_age,
                            captured=captured))  # fmt: skip


@settings(max_examples=100, deadline=None)
@cases
def test_every_limit_within_the_slack_decides_the_same(seed, count, sizes, most_live, lanes, bad):
    rng, sequence, chosen, limit = random_case(seed, count, sizes, most_live, lanes, bad)
    if rng.random() < 0.5:
        limit += rng.randrange(20 * MIB)
    events = caching_events(sequence)
    stop = rng.randrange(len(events) + 1)
    machine = CachingMachine(events, chosen, limit)
    machine.advance(stop)
    slack = machine.slack
    assert 0 <= slack <= limit
    before = layout_of(machine)
    for less in {slack, rng.randrange(slack + 1)}:
        other = CachingMachine(events, chosen, limit - less, device_bytes=limit)
        other.advance(stop)
        assert layout_of(other) == before
        assert (other.failed, other.peak_reserved) == (machine.failed, machine.peak_reserved)
        assert other.slack == slack - less
        # And it goes on from here as if it had begun with that limit.
        resumed = machine.with_limit(limit - less)
        assert resumed.slack == other.slack
        resumed.advance()
        other.advance()
        assert layout_of(resumed) == layout_of(other)
        assert resumed.failed == other.failed
    machine.advance()
    plain, addresses, failed = replayed(sequence, chosen, limit, limit)
    same(machine, plain, addresses, failed)


def test_the_slack_is_what_the_largest_total_leaves():
    sequence = [(layout.ALLOCATE, 0), (layout.ALLOCATE, 1)], [30 * MIB, 20 * MIB], [0, 0], [0, 0]
    machine = CachingMachine(caching_events(sequence), CachingSettings(), 64 * MIB)
    assert machine.slack == 64 * MIB
    machine.advance(1)
    assert machine.slack == 34 * MIB
    machine.advance()
    assert machine.slack == 14 * MIB
    assert machine.with_limit(50 * MIB).slack == 0
    with pytest.raises(UsageError, match="would not have gone the same"):
        machine.with_limit(50 * MIB - 1)


@settings(max_examples=60, deadline=None)
@cases
def test_a_copy_goes_on_by_itself(seed, count, sizes, most_live, lanes, bad):
    rng, sequence, chosen, limit = random_case(seed, count, sizes, most_live, lanes, bad)
    events = caching_events(sequence)
    machine = CachingMachine(events, chosen, limit)
    machine.advance(rng.randrange(len(events) + 1))
    saved = machine.copy().copy()
    then, position = layout_of(machine), machine.position
    machine.advance()
    assert layout_of(saved) == then
    assert saved.position == position
    saved.advance()
    plain, addresses, failed = replayed(sequence, chosen, limit, limit)
    same(machine, plain, addresses, failed)
    same(saved, plain, addresses, failed)


def test_a_limit_that_is_too_small_fails_and_names_the_request():
    sequence = (
        [(layout.ALLOCATE, 0), (layout.FREE, 0), (layout.ALLOCATE, 1)],
        [5, 40 * MIB],
        [0] * 2,
        [0] * 2,
    )
    events = caching_events(sequence)
    assert CachingMachine(events, CachingSettings(), 40 * MIB).advance() == 3
    failing = CachingMachine(events, CachingSettings(), 40 * MIB - 1)
    assert failing.advance() == failing.failed == failing.position == 2
    assert failing.advance() == 2


@pytest.mark.parametrize(
    "bad",
    [
        [(layout.FREE, 0)],
        [(layout.ALLOCATE, 0), (layout.FREE, 0), (layout.FREE, 0)],
        [(layout.ALLOCATE, 0), (layout.ALLOCATE, 0)],
        [(layout.ALLOCATE, -1)],
        [(layout.ALLOCATE, 2**40)],
        [(layout.FREE_COMPLETED, 0)],
        [(layout.ALLOCATE, 0), (layout.FREE_COMPLETED, 0)],
        [(layout.ALLOCATE, 0), (layout.FREE_REQUESTED, 0), (layout.FREE, 0)],
        [(layout.RELEASE, 0)],
        [(layout.UNMAP, -5)],
        [(layout.POOL_IS_LEFT, 9)],
        [(200, 0)],
    ],
)
def test_events_that_fit_none_before_are_counted(bad):
    events = caching_events((bad, [100, 0], [0, 3], [0, 0]))
    machine = CachingMachine(events, CachingSettings(), 64 * MIB)
    assert machine.advance() == len(bad)
    assert machine.strange == 1


def test_lanes_that_do_not_exist_are_counted():
    events = caching_events(([(layout.ALLOCATE, 0)], [100], [0], [0]))
    for lane in (-1, 5):
        odd = replace(events, lane=np.array([lane], np.int32))
        machine = CachingMachine(odd, CachingSettings(), 64 * MIB)
        machine.advance()
        assert (machine.strange, machine.reserved) == (1, 0)


@pytest.mark.parametrize("expandable", [False, True])
def test_no_size_is_too_large_to_fail(expandable):
    chosen = CachingSettings(expandable_segments=expandable)
    for size in (2**40, 2**59, 2**60 + 1, 2**62, 2**63 - 1):
        events = caching_events(([(layout.ALLOCATE, 0)] * 2, [size], [0], [0]))
        for limit in (0, 2**35, None):
            machine = CachingMachine(events, chosen, limit)
            machine.advance()
            fits = limit is None and size < (2**40 if expandable else UNLIMITED)
            fits |= limit is None and size == 2**40
            assert (machine.failed < 0) == fits
            assert machine.reserved <= machine.limit


def test_placements_are_named():
    with pytest.raises(UsageError, match="ascending, descending, lowest"):
        CachingMachine(caching_events(([], [], [], [])), CachingSettings(), placement="random")


@pytest.fixture
def plain_kernels(monkeypatch):
    """The kernels' source, run by Python."""
    parts = ("blocks", "pages", "release", "search", "allocator")
    for name in ("block_tree", *(f"caching_{part}" for part in parts)):
        module = uncompiled.load(name)
        monkeypatch.setitem(sys.modules, f"peakline.kernels.{name}", module)
    monkeypatch.setattr(torch_caching, "caching_allocator", module)


@pytest.mark.parametrize("seed", range(24))
def test_the_source_run_by_python_does_the_same(plain_kernels, seed):
    del plain_kernels
    sizes = sorted(SIZES)[seed % len(SIZES)]
    rng, sequence, chosen, limit = random_case(seed, 200, sizes, 12, 1 + seed % 3, 0.05)
    machine = CachingMachine(caching_events(sequence), chosen, limit)
    machine.advance(rng.randrange(200))
    machine = machine.copy()
    machine.advance()
    same(machine, *replayed(sequence, chosen, limit, limit))


def many_events(count, seed=0, most_live=2000):
    """Requests and frees in turn, of sizes that repeat."""
    rng = np.random.default_rng(seed)
    half = count // 2
    kind = np.full(count, layout.FREE, np.uint8)
    subject = np.empty(count, np.int64)
    # Buffer n is requested at 2 n, and freed a random while later.
    lifetime = rng.integers(1, most_live, half) * 2 + 1
    moments = np.concatenate([np.arange(half) * 2, np.arange(half) * 2 + lifetime])
    buffers = np.tile(np.arange(half), 2)
    order = np.argsort(moments, kind="stable")
    subject[:] = buffers[order]
    kind[order < half] = layout.ALLOCATE
    sizes = rng.choice(rng.integers(512, 64 * MIB, 300) >> rng.integers(0, 16, 300), half)
    return CachingEvents.of(kind, subject, sizes, np.zeros(half))


def test_a_replay_ends_at_its_deadline():
    deadline = EndingAt(2)
    machine = CachingMachine(many_events(20_000), CachingSettings())
    with within(deadline):
        machine.advance(20)
        with pytest.raises(DeadlineError):
            machine.advance()
    assert machine.position == 20


def test_a_copy_is_as_small_as_the_state():
    machine = CachingMachine(many_events(200_000, most_live=50), CachingSettings())
    machine.advance(100_000)
    saved = machine.copy()
    assert saved.nbytes < 60_000 < machine.nbytes
    saved.advance()
    machine.advance()
    assert saved.peak_reserved == machine.peak_reserved


@pytest.mark.soak
def test_ten_million_events_take_seconds():
    machine = CachingMachine(many_events(10_000_000), CachingSettings())
    machine.advance()
    assert machine.failed < 0
    assert machine.nbytes < 200_000_000


FOLDER = Path(__file__).parents[1] / "fit" / "torch" / "truth_of"
NAMES = sorted(path.parent.name for path in FOLDER.glob("*/truth.json.gz"))
PLACEMENTS = {"lowest": "lowest", "rising": "ascending", "falling": "descending"}


@cache
def sequence_of(name):
    return Sequence(FOLDER / name / "requests.txt.gz")


def content(name, file):
    return json.loads(gzip.decompress((FOLDER / name / file).read_bytes()))


def replayed_of_torch_real(name, run, capacity_mib):
    sequence = sequence_of(name)
    chosen = CachingSettings.parse(run["settings"])
    if run["fraction"]:
        chosen = replace(chosen, memory_fraction=run["fraction"])
    machine = CachingMachine(
        sequence.events,
        chosen,
        capacity_mib * MIB,
        placement=PLACEMENTS[run["placement"]],
        are_pools_captured=False,
    )
    for place, fraction in sequence.fractions:
        machine.advance(place)
        machine.set_memory_fraction(fraction)
    machine.advance()
    return machine


def outcome(name, machine):
    failed = -1 if machine.failed < 0 else int(sequence_of(name).request[machine.failed])
    return [failed, machine.peak_in_use, machine.peak_reserved, machine.taken, machine.returned]


def differing(name, every):
    result = []
    for run in content(name, "truth.json.gz")["runs"]:
        for capacity, *recorded in run["rows"][::every]:
            made = outcome(name, replayed_of_torch_real(name, run, capacity))
            if made != recorded[:5]:
                result.append((run["settings"], run["placement"], capacity, made, recorded[:5]))
    return result


@pytest.mark.parametrize("name", NAMES)
def test_it_fails_where_the_real_one_fails_and_takes_as_much(name):
    assert differing(name, 12) == []


@pytest.mark.soak
@pytest.mark.parametrize("name", NAMES)
def test_so_it_does_under_every_recorded_capacity(name):
    assert differing(name, 1) == []


@pytest.mark.parametrize("name", NAMES)
def test_every_address_is_the_real_ones(name):
    for run in content(name, "addresses.json.gz"):
        real = np.cumsum(np.array(run["addresses"], np.int64)) * 512
        machine = replayed_of_torch_real(name, run, run["capacity_mib"])
        # The fake device begins at an address of its own.
        assert np.unique(real - machine.address[: real.size]).size == 1, run["settings"]


def test_a_fraction_that_changes_keeps_the_slack():
    run = {"settings": "", "fraction": 0.9, "placement": "lowest"}
    machine = replayed_of_torch_real("limited", run, 500)
    assert machine.failed < 0
    assert 0 <= machine.slack <= 500 * MIB


def test_the_default_is_pytorchs():
    assert CachingSettings.parse("") == CachingSettings()
    assert CachingSettings().rounding_bytes == 20 * MIB


def test_a_text_is_read():
    result = CachingSettings.parse(
        "max_split_size_mb:64, max_non_split_rounding_mb:40,garbage_collection_threshold:0.8,"
        "expandable_segments:True,large_segment_size_mb:32,per_process_memory_fraction:0.5,"
        "roundup_power2_divisions:[2:8,16:4,>:2],pinned_num_register_threads:4,backend:native"
    )
    assert result.max_split_bytes == 64 * MIB
    assert result.rounding_bytes == 40 * MIB
    assert result.garbage_collection_threshold == 0.8
    assert result.expandable_segments
    assert result.large_segment_bytes == 32 * MIB
    assert result.memory_fraction == 0.5
    assert result.roundup_power2_divisions == (8, 8, 0, 0, 4) + (2,) * 11
    assert CachingSettings.parse("roundup_power2_divisions:4").roundup_power2_divisions == (4,) * 16
    # Its own least is the large segment, wherever that stands.
    assert CachingSettings.parse("max_split_size_mb:12,large_segment_size_mb:11").max_split_bytes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("max_split:5", "no setting 'max_split'; did you mean 'max_split_size_mb'?"),
        ("max_split_size_mb", "has no value"),
        ("max_split_size_mb:", "has no value"),
        ("max_split_size_mb:19", "too small, PyTorch takes 20 or more"),
        ("max_split_size_mb:-1", "no whole number"),
        ("max_split_size_mb:many", "no whole number"),
        ("large_segment_size_mb:10", "too small"),
        ("large_segment_size_mb:32,max_non_split_rounding_mb:20", "takes 32 or more"),
        ("garbage_collection_threshold:1.0", "not below 1"),
        ("garbage_collection_threshold:nan", "no part"),
        ("garbage_collection_threshold:x", "no part"),
        ("per_process_memory_fraction:1.5", "no part"),
        ("expandable_segments:yes", "neither True nor False"),
        ("roundup_power2_divisions:3", "no power of 2"),
        ("roundup_power2_divisions:[2:8", "no closing bracket"),
        ("roundup_power2_divisions:[3:8]", "3 MiB is no power of 2"),
        ("roundup_power2_divisions:[8]", "not written SIZE:DIVISIONS"),
        ("backend:cudaMallocAsync", "only native is modelled"),
    ],
)
def test_what_pytorch_does_not_know_is_named(text, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        CachingSettings.parse(text)


def test_the_settings_of_a_snapshot_are_read():
    result = CachingSettings.of_snapshot(
        {
            "PYTORCH_CUDA_ALLOC_CONF": "large_segment_size_mb:48",
            "max_split_size": 64 * MIB,
            "garbage_collection_threshold": 0.5,
            "expandable_segments": True,
            "roundup_power2_divisions": {"1": 4, "2": 0, "64": 2, "4": "x"},
        }
    )
    assert result == CachingSettings(
        max_split_bytes=64 * MIB,
        roundup_power2_divisions=(4, 0, 0, 0, 0, 0, 2) + (0,) * 9,
        garbage_collection_threshold=0.5,
        expandable_segments=True,
        large_segment_bytes=48 * MIB,
    )
    assert CachingSettings.of_snapshot({"max_split_size": -1}) == CachingSettings()
    assert CachingSettings.of_snapshot({"max_split_size": "x", 5: None}) == CachingSettings()


def test_a_fraction_of_one_limits_nothing():
    whole = CachingSettings(memory_fraction=1.0, garbage_collection_threshold=0.8)
    assert whole.allowed(100) is None
    assert whole.threshold(100) is None
    part = CachingSettings(memory_fraction=0.5, garbage_collection_threshold=0.8)
    assert (part.allowed(1000), part.threshold(1000)) == (500, 400)
    assert CachingSettings(garbage_collection_threshold=0.8).threshold(1000) is None
