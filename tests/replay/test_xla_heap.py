from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.ending import EndingAt

from kernels import uncompiled
from peakline.deadline import within
from peakline.errors import DeadlineError
from peakline.replay import xla_heap
from peakline.replay.xla_heap import MOST_BYTES, Pieces, pack, read_trace
from reference import xla_heap as reference
from reference.xla_heap import ALLOCATE, FREE, SHARE


def random_events(rng, count, sizes, lifetime):
    """A heap's events: values come, some in the memory of others, and go, not all of them."""
    live, events, used = [], [], []
    for value in range(count):
        if live and rng.random() < 0.3:
            other = rng.choice(live if rng.random() < 0.5 else used)
            if rng.random() < 0.5 and other in live:
                # In place: the operand is given free just before.
                live.remove(other)
                events.append((FREE, other, -1))
            events.append((SHARE, value, other))
        else:
            events.append((ALLOCATE, value, -1))
        live.append(value)
        used.append(value)
        while live and rng.random() * lifetime < len(live):
            events.append((FREE, live.pop(rng.randrange(len(live))), -1))
    return events, [rng.choice(sizes) for _ in range(count)]


def read(events, sizes):
    kind, value, other = (np.array(column) for column in zip(*events, strict=True))
    return read_trace(kind, value, other, np.array(sizes))


def offsets(trace, packed):
    """By value, of those that take memory."""
    rows = np.flatnonzero(trace.piece >= 0).tolist()
    return dict(zip(rows, packed.offset[trace.piece[rows]].tolist(), strict=True))


SIZES = ([0, 1, 64, 100], [4096], list(range(1, 5000, 7)), [0, 8, 2**20, 2**40])


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 2**32), st.integers(1, 90), st.sampled_from(SIZES),
    st.sampled_from([1, 4, 40, 1000]), st.sampled_from([1, 64, 96, 256]),
)  # fmt: skip
def test_it_is_what_the_rules_say(seed, count, sizes, lifetime, alignment):
    events, sizes = random_events(Random(seed), count, sizes, lifetime)
    trace = read(events, sizes)
    packed = pack(trace.pieces, alignment)
    expected, heap, order = reference.best(reference.values_of(events, sizes), alignment)
    assert offsets(trace, packed) == expected
    assert (packed.heap_bytes, packed.order) == (heap, order)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 1200), st.sampled_from([3, 60, 2000]))
def test_what_lives_at_the_same_time_never_overlaps(seed, count, lifetime):
    trace = read(*random_events(Random(seed), count, SIZES[2], lifetime))
    pieces, packed = trace.pieces, pack(trace.pieces, 64)
    assert packed.heap_bytes >= pieces.live_peak()
    assert (packed.offset % 64 == 0).all()
    of = np.repeat(np.arange(len(pieces)), np.diff(pieces.first))
    at, stop = packed.offset[of], (packed.offset + pieces.size)[of]
    in_time = (pieces.begin[:, None] <= pieces.end) & (pieces.begin <= pieces.end[:, None])
    assert not (in_time & ((at[:, None] < stop) & (at < stop[:, None])) & (of[:, None] != of)).any()


@pytest.mark.parametrize("lifetime", [5, 200])
def test_the_source_run_by_python_places_the_same(monkeypatch, lifetime):
    # More pieces than wait for the list by address.
    trace = read(*random_events(Random(lifetime), 500, SIZES[2], lifetime))
    compiled = pack(trace.pieces, 64)
    monkeypatch.setattr(xla_heap, "place", uncompiled.load("best_fit").place)
    assert pack(trace.pieces, 64).offset.tolist() == compiled.offset.tolist()


def test_live_bytes_are_counted_once_per_piece():
    events = [(ALLOCATE, 0, -1), (SHARE, 1, 0), (ALLOCATE, 2, -1), (FREE, 0, -1), (FREE, 1, -1)]
    trace = read(events, [100, 300, 7])
    assert trace.pieces.size.tolist() == [300, 7]
    assert trace.pieces.live_peak() == 307
    assert trace.begin.tolist() == [0, 1, 2]
    assert trace.end.tolist() == [3, 4, 5]


@pytest.mark.parametrize(
    "events",
    [
        [(FREE, 0, -1), (FREE, 0, -1), (ALLOCATE, 0, -1)],
        [(ALLOCATE, 0, -1), (ALLOCATE, 0, -1), (FREE, 0, -1), (ALLOCATE, 0, -1)],
        [(SHARE, 0, 0), (SHARE, 1, 0), (SHARE, 0, 1), (FREE, 1, -1)],
        [(SHARE, 0, 1), (SHARE, 1, 2), (SHARE, 2, 0)],
        [(ALLOCATE, -1, -1), (SHARE, 0, -1), (FREE, -1, 0), (FREE, 2, -1)],
    ],
)
def test_events_that_fit_none_before_do_no_harm(events):
    trace = read(events, [10, 20, 30])
    packed = pack(trace.pieces, 64)
    assert packed.heap_bytes <= 64 * 3
    assert packed.heap_bytes >= trace.pieces.live_peak() > 0


def test_nothing_takes_no_heap():
    none = np.zeros(0, np.int64)
    packed = pack(read_trace(none, none, none, none).pieces, 64)
    assert (packed.heap_bytes, packed.offset.size) == (0, 0)
    zero = read([(ALLOCATE, 0, -1), (FREE, 0, -1)], [0])
    assert (len(zero.pieces), pack(zero.pieces, 64).heap_bytes) == (0, 0)


def test_sizes_beyond_all_memory_do_not_overflow():
    packed = pack(read([(ALLOCATE, value, -1) for value in range(9)], [2**63 - 1] * 9).pieces, 1024)
    assert MOST_BYTES // 2 < packed.heap_bytes <= MOST_BYTES + 9 * 1024
    assert (packed.offset >= 0).all()


def random_pieces(count, longest, seed=1):
    rng = np.random.default_rng(seed)
    begin = rng.integers(0, 2 * count, count)
    end = np.minimum(begin + rng.integers(1, longest, count), 2 * count)
    number, size = np.arange(count), rng.integers(1, 2**20, count)
    return Pieces.of_spans(number, size, end - begin, number, begin, end)


def test_a_packing_ends_at_its_deadline():
    deadline = EndingAt(3)
    with within(deadline), pytest.raises(DeadlineError):
        pack(random_pieces(30_000, 60_000), 64)
    assert deadline.looks == 3


def test_too_much_work_is_given_up(monkeypatch):
    monkeypatch.setattr(xla_heap, "MOST_WORK", 1_000_000)
    assert pack(random_pieces(5000, 10_000), 64) is None
    assert pack(random_pieces(5000, 20), 64) is not None


@pytest.mark.soak
def test_a_million_pieces_are_packed():
    pieces = random_pieces(1_000_000, 40)
    packed = pack(pieces, 64)
    assert pieces.live_peak() <= packed.heap_bytes < 1.1 * pieces.live_peak()
