import gzip
import pickle
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.replay.caching_sequences import SIZES, random_events, random_settings
from tests.replay.caching_snapshots import Recorded

import peakline
from peakline.errors import NotFoundError
from peakline.kernels import caching_layout as layout
from peakline.memory.fit.answer import held_segments
from peakline.memory.fit.caching import CachingFit
from peakline.replay.requests import NO_LIMIT
from peakline.replay.torch_proof import prove
from peakline.replay.torch_recording import read_recording
from peakline.replay.torch_settings import MIB, CachingSettings

REAL = Path(__file__).parents[1] / "data" / "fit" / "torch"


def load_plain_snapshot(content):
    return pickle.loads(content)  # noqa: S301  (our own)


def recording_of(folder, content, chosen, allocator="cuda:0", name="s.pickle"):
    path = folder / name
    path.write_bytes(content)
    with peakline.open(str(path)) as profile:
        return read_recording(profile, allocator, chosen)


def random_recording(rng, *, lanes=1, has_cache=True, **options):
    """Sequences that end well: what is recorded has no request that fails."""
    events, *buffers = random_events(rng, 150, SIZES["mixed"], 12, lanes=lanes)
    if not has_cache:
        events = [one for one in events if one[0] != layout.EMPTY_CACHE]
    chosen = random_settings(rng)
    chosen = CachingSettings(
        max_split_bytes=chosen.max_split_bytes,
        roundup_power2_divisions=chosen.roundup_power2_divisions,
        expandable_segments=chosen.expandable_segments,
    )
    return Recorded((events, *buffers), chosen, **options), chosen


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([1, 2]), st.booleans())
def test_a_whole_history_is_proved(tmp_path_factory, seed, lanes, by_age):
    made, chosen = random_recording(Random(seed), lanes=lanes, by_age=by_age)
    recording = recording_of(tmp_path_factory.mktemp("s"), made.snapshot(), chosen)
    proof = prove(recording)
    assert recording.is_whole
    assert proof.reason == ""
    assert proof.is_proved
    assert proof.equal == proof.allocations == len(made.where)
    assert proof.segments_equal
    assert proof.end_equal


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_a_history_that_begins_late_is_proved_from_its_end(tmp_path_factory, seed, has_stacks):
    rng = Random(seed)
    made, chosen = random_recording(rng, by_age=False)
    skipped = rng.randrange(len(made.entries))
    folder = tmp_path_factory.mktemp("s")
    proof = prove(recording_of(folder, made.snapshot(skipped, has_stacks=has_stacks), chosen))
    # A block that was handed out whole and is freed later is shorter in the recording.
    assert proof.equal >= proof.allocations * 0.8
    assert proof.end_equal or proof.equal < proof.allocations or proof.strange
    if skipped == 0:
        assert proof.is_proved


def test_what_was_live_before_is_there_at_the_begin(tmp_path):
    events = [(layout.ALLOCATE, 0), (layout.ALLOCATE, 1), (layout.ALLOCATE, 2), (layout.FREE, 1),
              (layout.ALLOCATE, 3)]  # fmt: skip
    sequence = events, [MIB, 3 * MIB, 5 * MIB, 2 * MIB], [0] * 4, [0] * 4
    made = Recorded(sequence, CachingSettings())
    # The first three allocations and their two segments.
    recording = recording_of(tmp_path, made.snapshot(5), CachingSettings())
    assert recording.start.size.tolist() == [2 * MIB, 20 * MIB]
    assert recording.before.size == 3
    assert not recording.is_whole
    proof = prove(recording)
    assert (proof.allocations, proof.equal, proof.is_proved) == (1, 1, True)
    machine, lead, is_estimate = recording.machine(CachingSettings())
    machine.advance()
    assert (lead, is_estimate, machine.reserved) == (0, False, 22 * MIB)
    # Under other settings it is placed afresh.
    machine, lead, is_estimate = recording.machine(CachingSettings(expandable_segments=True))
    machine.advance()
    assert (lead, is_estimate) == (3, True)
    assert machine.in_use == 8 * MIB
    assert recording.row_of_event.size == len(recording.events) == 2


def test_blocks_that_wait_for_another_stream_go_when_they_are_returned(tmp_path):
    events = [(layout.ALLOCATE, 0), (layout.FREE_REQUESTED, 0), (layout.ALLOCATE, 1)]
    events += [(layout.FREE_COMPLETED, 0), (layout.ALLOCATE, 2), (layout.FREE_REQUESTED, 2)]
    sequence = events, [30 * MIB] * 3, [0] * 3, [0] * 3
    made = Recorded(sequence, CachingSettings())
    recording = recording_of(tmp_path, made.snapshot(), CachingSettings())
    assert recording.events.kind.tolist() == [kind for kind, _ in events]
    assert prove(recording).is_proved
    machine, *_ = recording.machine(CachingSettings())
    machine.advance()
    assert (machine.reserved, machine.in_use, machine.awaiting) == (60 * MIB, 30 * MIB, 30 * MIB)
    # One that waits from begin to end waits at the begin.
    late = recording_of(tmp_path, made.snapshot(len(made.entries)), CachingSettings())
    assert late.start.state.tolist() == [layout.IS_AWAITING, layout.IS_LIVE]


def test_why_memory_was_returned_decides_what_is_replayed(tmp_path):
    emptied = [
        (layout.ALLOCATE, 0),
        (layout.FREE, 0),
        (layout.EMPTY_CACHE, 0),
        (layout.ALLOCATE, 1),
    ]
    short = [(layout.ALLOCATE, 0), (layout.FREE, 0), (layout.ALLOCATE, 1)]
    for events, returns in ((emptied, 1), (short, 0)):
        sequence = events, [30 * MIB, 40 * MIB], [0, 0], [0, 0]
        made = Recorded(sequence, CachingSettings(), 60 * MIB)
        recording = recording_of(tmp_path, made.snapshot(), CachingSettings())
        assert (recording.events.kind == layout.RELEASE).sum() == 1
        assert (recording.what_if.kind == layout.EMPTY_CACHE).sum() == returns
        assert recording.guessed_returns == 0
        assert prove(recording).is_proved
        bare = recording_of(tmp_path, made.snapshot(has_stacks=False), CachingSettings())
        assert bare.guessed_returns == 1
        assert not bare.is_known


def test_private_pools_stay_apart(tmp_path):
    events = [(layout.ALLOCATE, 0), (layout.FREE, 0), (layout.ALLOCATE, 1), (layout.ALLOCATE, 2)]
    made = Recorded((events, [30 * MIB] * 3, [0] * 3, [1, 1, 0]), CachingSettings())
    recording = recording_of(tmp_path, made.snapshot(), CachingSettings())
    assert recording.events.lane_pool[recording.events.lane].tolist() == [1, 1, 0]
    assert prove(recording).is_proved
    assert recording.is_known
    # Where some of theirs are gone it is not known which.
    again = [*events, (layout.EMPTY_CACHE, 0), (layout.FREE, 2), (layout.EMPTY_CACHE, 0)]
    made = Recorded((again, [30 * MIB] * 3, [0] * 3, [1, 1, 0]), CachingSettings())
    gone = recording_of(tmp_path, made.snapshot(), CachingSettings())
    assert gone.gap.startswith("It has private pools")
    assert not gone.is_known
    assert prove(gone).is_proved


def test_a_profilers_trace_is_proved_where_it_begins_with_nothing(tmp_path):
    rng = Random(4)
    made, chosen = random_recording(rng, has_cache=False)
    chosen = CachingSettings()
    made = Recorded(
        (made_events(rng), *[[1 * MIB, 3 * MIB, 12 * MIB] * 40, [0] * 120, [0] * 120]), chosen
    )
    recording = recording_of(tmp_path, made.trace(), chosen, "CUDA:0", "t.pt.trace.json")
    assert recording.is_whole
    assert recording.final is None
    proof = prove(recording)
    assert proof.reason == ""
    assert proof.equal == proof.allocations
    assert proof.end_equal is None
    late = recording_of(tmp_path, made.trace(30), chosen, "CUDA:0", "t.pt.trace.json")
    assert late.before.size > 0
    assert prove(late).reason == (
        "It begins after the first allocation, and does not say which segments there were."
    )
    machine, lead, is_estimate = late.machine(chosen)
    machine.advance()
    assert machine.strange == 0
    assert (lead, is_estimate) == (late.before.size, True)


def made_events(rng):
    events, live = [], []
    for buffer in range(120):
        events.append((layout.ALLOCATE, buffer))
        live.append(buffer)
        while len(live) > 10:
            events.append((layout.FREE, live.pop(rng.randrange(len(live)))))
    return events


def test_an_allocator_without_records_is_named(tmp_path):
    made = Recorded(([(layout.ALLOCATE, 0)], [5], [0], [0]), CachingSettings())
    with pytest.raises(NotFoundError, match="there are cuda:0"):
        recording_of(tmp_path, made.snapshot(), None, "cuda:7")


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_damaged_histories_are_replayed_to_their_end(tmp_path_factory, seed):
    rng = Random(seed)
    made, chosen = random_recording(rng, lanes=2)
    content = load_plain_snapshot(made.snapshot())
    entries = content["device_traces"][0]
    for _ in range(rng.randrange(1, 20)):
        one = rng.choice(entries)
        what = rng.randrange(5)
        if what == 0:
            entries.remove(one)
        elif what == 1:
            one["addr"] = rng.choice(entries)["addr"] + rng.choice([0, 512, -512])
        elif what == 2:
            one["size"] = rng.choice([0, 1, 2**55, 2**58])
        elif what == 3:
            one["action"] = rng.choice(entries)["action"]
        elif content["segments"]:
            segment = rng.choice(content["segments"])
            segment[rng.choice(["address", "total_size", "stream"])] = rng.choice([0, 5, 2**60])
    recording = recording_of(tmp_path_factory.mktemp("s"), pickle.dumps(content), chosen)
    proof = prove(recording)
    assert proof.equal + proof.unplaced <= proof.allocations
    for limit in (None, 64 * MIB):
        machine, *_ = recording.machine(CachingSettings(), limit)
        machine.advance()
        assert machine.failed >= 0 or machine.reserved <= machine.limit


class TestPins:
    def test_the_segment_that_holds_most_free_memory_comes_first(self, tmp_path):
        events = [(layout.ALLOCATE, n) for n in range(5)] + [(layout.FREE, 0), (layout.FREE, 3)]
        sequence = events, [15 * MIB, 512, 3 * MIB, 9 * MIB, 2 * MIB], [0] * 5, [0] * 5
        made = Recorded(sequence, CachingSettings())
        recording = recording_of(tmp_path, made.snapshot(), CachingSettings())
        result = held_segments(CachingFit(recording).under(NO_LIMIT), 9)
        # The 16 MiB of the first buffer are wholly free: nothing pins them.
        assert [one.live_bytes for one in result] == [5 * MIB, 512]
        assert [one.free_bytes for one in result] == [15 * MIB, 2 * MIB - 512]
        assert [one.bytes for one in result] == [20 * MIB, 2 * MIB]
        assert [one.blocks for one in result] == [2, 1]
        assert [one.largest for one in result] == [2, 1]
        assert len(held_segments(CachingFit(recording).under(NO_LIMIT), 1)) == 1

    def test_the_start_can_be_looked_at(self, tmp_path):
        made = Recorded(([(layout.ALLOCATE, 0)], [512], [0], [0]), CachingSettings())
        recording = recording_of(tmp_path, made.snapshot(2), CachingSettings())
        (one,) = held_segments(CachingFit(recording).under(NO_LIMIT), 9)
        assert one.live_bytes == 512


def real_snapshots():
    return sorted(REAL.glob("*/snapshot_start.pickle.gz"))


@pytest.mark.parametrize("path", real_snapshots(), ids=lambda path: path.parent.name)
def test_the_real_allocators_history_is_proved(tmp_path, path):
    content = gzip.decompress(path.read_bytes())
    snapshot = load_plain_snapshot(content)
    chosen = CachingSettings.of_snapshot(snapshot["allocator_settings"])
    recording = recording_of(tmp_path, content, chosen)
    proof = prove(recording)
    assert recording.is_whole
    assert proof.is_by_age
    pools = {one.get("pool_id") for one in snapshot["device_traces"][0]}
    gone = pools - {one["segment_pool_id"] for one in snapshot["segments"]}
    if not gone - {(0, 0)}:
        # Which pool a segment was of that is gone is not in the tables.
        assert proof.reason == ""
        assert proof.equal == proof.allocations
    assert np.unique(recording.row_of_buffer).size == recording.row_of_buffer.size


def needed_by(made, failures):
    """What the failed requests need: by what was requested, and by the plain model's blocks, which
    may be larger than what was requested of them.
    """
    least = most = 0
    for place, size in failures:
        live, served = {}, 0
        for one in made.entries[:place]:
            if one["action"] == "alloc":
                live[one["addr"]] = -(-max(one["size"], 1) // 512) * 512
            elif one["action"] == "free_requested":
                del live[one["addr"]]
            served += one["action"] in {"alloc", "free_requested"}
        rounded = -(-max(size, 1) // 512) * 512
        least = max(least, sum(live.values()) + rounded)
        most = max(most, (made.profiled[served - 1][2] if served else 0) + rounded)
    return least, most


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 3))
def test_a_failed_request_makes_it_a_lower_bound(tmp_path_factory, seed, count):
    rng = Random(seed)
    events, *buffers = random_events(rng, 60, SIZES["mixed"], 8, lanes=1)
    made = Recorded((events, *buffers), CachingSettings())
    places = sorted(rng.randrange(len(made.entries) + 1) for _ in range(count))
    failures = [(place, rng.choice([1, 513, 3 * MIB, 77 * MIB + 5])) for place in places]
    path = tmp_path_factory.mktemp("s") / "s.pickle"
    least, most = needed_by(made, failures)
    path.write_bytes(made.snapshot(failures=failures))
    with peakline.open(str(path)) as profile:
        [fit] = profile.fit(limits=[max(least // 2, 1), least - 1, 1 << 45])
    path.write_bytes(made.snapshot())
    with peakline.open(str(path)) as profile:
        [without] = profile.fit()
    needed = fit.failed.needed_bytes
    assert least <= needed <= most
    assert not fit.exact
    assert fit.reason
    assert fit.limits.safe_from is None
    needed = -(-needed // MIB) * MIB
    assert fit.limits.smallest == max(needed, without.limits.smallest)
    assert [one.fits for one in fit.under] == [False, False, None]
    assert all(one.safe_from_bytes is None for one in fit.alternatives)
    assert all(one.smallest_limit_bytes >= needed for one in fit.alternatives)
    assert without.failed is None
    assert without.limits.safe_from is not None
