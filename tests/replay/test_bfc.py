"""The best-fit allocator with coalescing against a plain one, and the limits that fit."""

import os
import subprocess
import sys
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.ending import EndingAt

from peakline.deadline import within
from peakline.errors import DeadlineError
from peakline.kernels import bfc_layout, caching_layout
from peakline.replay.bfc import BfcMachine, BfcSettings, prove
from peakline.replay.limits import scan
from peakline.replay.requests import MIB, NO_LIMIT, Requests
from reference import bfc as reference

SIZES = (
    [1, 256, 257, 5000],
    [100_000, 300_000, 700_000, 1_000_000],
    [64, 4096, 70_000, 1_500_000, 4_000_000],
    [MIB, 2 * MIB, 3 * MIB, 5 * MIB],
    [90 * MIB, 130 * MIB, 200 * MIB, 500],
)


def test_chunks_begin_with_the_fields_of_the_tree():
    names = ("SIZE", "ORDER", "ADDRESS", "LEFT", "RIGHT", "PRIORITY")
    tree = ("B_KEY", "B_ORDER", "B_ADDRESS", "B_LEFT", "B_RIGHT", "B_PRIORITY")
    own = [getattr(bfc_layout, name) for name in names]
    assert own == [getattr(caching_layout, name) for name in tree]


def random_requests(seed, count, sizes, lifetime):
    rng = Random(seed)
    events, size, live = [], [], []
    for number in range(count):
        events.append(number)
        size.append(rng.randint(1, rng.choice(sizes)))
        live.append(number)
        while live and rng.random() * lifetime < len(live):
            events.append(~live.pop(rng.randrange(len(live))))
    return Requests(np.array(events), np.array(size))


def replayed(requests, limit, chosen):
    """Addresses, the event that failed or -1, pool and bytes in use, by the plain allocator."""
    plain = reference.Bfc(
        limit,
        growth=chosen.allow_growth,
        fraction=chosen.internal_fragmentation_fraction,
        collect=chosen.garbage_collection,
        descending=chosen.descending,
    )
    chunks, placed, peak = {}, {}, 0
    for at, event in enumerate(requests.events.tolist()):
        if event < 0:
            plain.free(chunks.pop(~event))
            continue
        chunk = plain.allocate(int(requests.size[event]))
        if chunk is None:
            return placed, at, plain, peak
        chunks[event], placed[event] = chunk, (chunk.address, chunk.size)
        peak = max(peak, plain.in_use)
    return placed, -1, plain, peak


def run(requests, limit, chosen):
    machine = BfcMachine(requests, chosen, limit, detailed=True)
    stopped = machine.advance(len(requests))
    placed = {
        n: (int(machine.placed[n]), int(machine.granted[n]))
        for n in np.flatnonzero(machine.placed >= 0).tolist()
    }
    return placed, (stopped if stopped < len(requests) else -1), machine


CHOSEN = st.builds(
    BfcSettings,
    allow_growth=st.booleans(),
    internal_fragmentation_fraction=st.sampled_from([0.0, 0.0, 0.01, 0.2]),
    garbage_collection=st.booleans(),
    descending=st.booleans(),
)
PROGRAMS = st.builds(
    random_requests, st.integers(0, 2**32), st.integers(1, 120), st.sampled_from(SIZES),
    st.sampled_from([1, 5, 20, 60]),
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(PROGRAMS, CHOSEN, st.integers(1, 120))
def test_it_is_what_the_rules_say(requests, chosen, percent):
    limit = max(int(requests.live_bytes(256).max()) * percent // 60 // MIB, 1) * MIB
    placed, fails_at, machine = run(requests, limit, chosen)
    expected, expected_fails, plain, peak = replayed(requests, limit, chosen)
    assert fails_at == expected_fails
    assert placed == expected
    assert machine.reserved == plain.pool
    assert machine.in_use == plain.in_use
    assert machine.peak == peak
    chunks = {(c[1], c[2], c[3]) for c in machine.chunks().tolist()}
    assert chunks == {(c.address, c.size, int(c.used)) for r in plain.regions for c in r}


@settings(max_examples=150, deadline=None)
@given(PROGRAMS, CHOSEN)
def test_every_limit_is_decided_as_by_a_replay_of_its_own(requests, chosen):
    live = int(requests.live_bytes(256).max())
    result = scan(
        lambda limit: BfcMachine(requests, chosen, limit), len(requests), live, most_events=10**9
    )
    assert result.is_whole
    assert result.spans[0].high == NO_LIMIT
    assert [span.low - MIB for span in result.spans[:-1]] == [s.high for s in result.spans[1:]]
    for span in result.spans:
        for limit in {span.low, span.high, (span.low + span.high) // 2 // MIB * MIB}:
            assert run(requests, limit, chosen)[1] == span.fails_at, limit


def of_events(events, sizes):
    return Requests(np.array(events, np.int64), np.array(sizes, np.int64))


HOLED = of_events(
    [0, 1, ~1, 2, 3, 4, ~3, ~2, 5, 6, ~4, 7, ~6],
    [2_075_637, 3_054_474, 1_864_601, 1_984_043, 791_552, 530_636, 2_509_868, 881_955],
)
"""Fits in 7 MiB, not in 8, and from 9 on."""


def test_fitting_is_not_monotone_and_the_answer_says_so():
    result = scan(
        lambda limit: BfcMachine(HOLED, BfcSettings(), limit), len(HOLED), MIB, most_events=10**6
    )
    assert result.ranges() == ((7 * MIB, 7 * MIB), (9 * MIB, None))
    assert (result.smallest, result.safe_from) == (7 * MIB, 9 * MIB)
    assert [result.fits(n * MIB) for n in range(6, 12)] == [False, True, False, True, True, True]
    assert [run(HOLED, n * MIB, BfcSettings())[1] < 0 for n in (6, 7, 8, 9)] == [
        False, True, False, True,
    ]  # fmt: skip


def test_a_search_that_is_too_much_says_where_it_ended():
    requests = random_requests(3, 120, SIZES[2], 20)
    live = int(requests.live_bytes(256).max())

    def search(most):
        return scan(
            lambda limit: BfcMachine(requests, BfcSettings(), limit), len(requests), live,
            most_events=most,
        )  # fmt: skip

    whole, part = search(10**9), search(1)
    assert whole.is_whole
    assert not part.is_whole
    assert part.lowest > whole.lowest
    assert part.spans == whole.spans[: len(part.spans)]


def test_the_size_of_regions_is_doubled_and_capped():
    requests = of_events([0, 1, 2], [1000, 2 * MIB, 9 * MIB])
    _, failed, machine = run(requests, 64 * MIB, BfcSettings())
    assert failed == -1
    # 2, then 4, then doubled from 8 to 16: what doubling gave is not doubled again.
    assert [one.bytes // MIB for one in machine.regions()] == [2, 4, 16]
    _, failed, machine = run(requests, 16 * MIB, BfcSettings())
    assert [one.bytes // MIB for one in machine.regions()] == [2, 4, 10]
    assert run(requests, 14 * MIB, BfcSettings())[1] == 2
    _, failed, machine = run(requests, 16 * MIB, BfcSettings(allow_growth=False))
    assert [one.bytes // MIB for one in machine.regions()] == [16]


def test_free_regions_are_returned_before_a_request_fails():
    requests = of_events([0, ~0, 1, 2, ~2, 3], [3 * MIB, 100, 5 * MIB, 13 * MIB])
    plain = run(requests, 20 * MIB, BfcSettings())
    collected = run(requests, 20 * MIB, BfcSettings(garbage_collection=True))
    assert (plain[1], collected[1]) == (5, -1)
    assert collected[2].reserved <= 20 * MIB < collected[2].peak_reserved + 13 * MIB


@pytest.mark.parametrize("events", [[~0, 0, ~0, ~0], [0, 0, ~0], [~3, 0, 7, ~7], [0, ~5]])
def test_events_that_fit_none_before_are_counted_and_do_no_harm(events):
    machine = BfcMachine(of_events(events, [1000, 1000]), BfcSettings(), 4 * MIB)
    assert machine.advance(len(events)) == len(events)
    assert machine.unmatched > 0
    assert machine.in_use in {0, 1024}


@pytest.mark.parametrize("size", [2**63 - 1, 2**62, 2**60 + 1, 2**44])
def test_sizes_beyond_all_memory_fail(size):
    requests = of_events([0, 1], [1000, size])
    for limit in (MIB, 2**40, NO_LIMIT):
        for chosen in (BfcSettings(), BfcSettings(allow_growth=False)):
            machine = BfcMachine(requests, chosen, limit)
            stopped = machine.advance(2)
            assert machine.in_use >= 0
            assert machine.reserved <= limit
            assert stopped == 1 or limit >= size


def test_nothing_is_allocated_for_nothing():
    machine = BfcMachine(of_events([0, ~0, 1], [0, 5]), BfcSettings(), MIB)
    assert machine.advance(3) == 3
    assert machine.in_use == 256


def recorded(requests, limit, chosen):
    """What the plain allocator did, as a recording has it: addresses, and the bytes of chunks."""
    placed, failed, _, _ = replayed(requests, limit, chosen)
    count = requests.size.size
    address, granted = np.full(count, -1, np.int64), np.zeros(count, np.int64)
    for number, (where, size) in placed.items():
        address[number], granted[number] = where, size
    done = len(requests) if failed < 0 else failed
    return Requests(requests.events[:done], requests.size), address, granted


@settings(max_examples=60, deadline=None)
@given(PROGRAMS, st.booleans(), st.booleans())
def test_a_recording_proves_itself(requests, growing, collect):
    chosen = BfcSettings(allow_growth=growing, garbage_collection=collect)
    limit = -(-2 * int(requests.live_bytes(256).max()) // MIB) * MIB
    requests, address, granted = recorded(requests, limit, chosen)
    result = prove(requests, address, granted, limit)
    assert result.stopped_at == -1
    assert result.equal == result.compared == result.sizes_equal == result.allocations


@settings(max_examples=60, deadline=None)
@given(PROGRAMS, st.integers(0, 2**32))
def test_a_recording_that_lacks_events_is_replayed_by_hand_where_it_differs(requests, seed):
    requests, address, granted = recorded(requests, NO_LIMIT, BfcSettings())
    rng = Random(seed)
    lost = {number for number in range(requests.size.size) if rng.random() < 0.2}
    events = [e for e in requests.events.tolist() if (e if e >= 0 else ~e) not in lost]
    result = prove(of_events(events, requests.size), address, granted, NO_LIMIT)
    allocated = [e for e in events if e >= 0]
    assert result.stopped_at == -1
    assert 0 <= result.equal <= result.compared <= result.allocations
    placed = result.machine.placed
    # It went on from where the recording says.
    assert placed[allocated].tolist() == address[allocated].tolist()


def test_an_allocator_that_is_another_is_not_proved():
    requests = random_requests(5, 200, SIZES[0], 20)
    address = np.cumsum(requests.size + 4096)
    result = prove(requests, address, np.zeros_like(address), 2**30)
    assert not result.is_same
    assert result.equal < result.allocations / 2


def answers():
    """What replays of some programs give, as text."""
    kinds = [
        BfcSettings(), BfcSettings(allow_growth=False), BfcSettings(garbage_collection=True),
        BfcSettings(internal_fragmentation_fraction=0.05),
    ]  # fmt: skip
    result = []
    for number, chosen in enumerate(kinds):
        requests = random_requests(number, 60, SIZES[number + 1], 12)
        live = int(requests.live_bytes(256).max())
        limits = scan(
            lambda limit, r=requests, c=chosen: BfcMachine(r, c, limit), len(requests), live,
            most_events=10**6,
        )  # fmt: skip
        proof = prove(*recorded(requests, NO_LIMIT, BfcSettings()), NO_LIMIT)
        lost = prove(*recorded(requests, NO_LIMIT, BfcSettings(descending=False)), live)
        result.append((limits, run(requests, -(-live // MIB) * MIB, chosen)[:2]))
        result.append([(one.equal, one.learned, one.machine.in_use) for one in (proof, lost)])
    return repr(result)


_UNCOMPILED = """
from kernels import uncompiled
uncompiled.install()
from replay.test_bfc import answers
print(answers())
"""


def test_compiled_and_uncompiled_replays_are_the_same():
    done = subprocess.run(
        [sys.executable, "-c", _UNCOMPILED],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == answers()


def test_a_replay_ends_at_its_deadline():
    requests = random_requests(1, 400_000, SIZES[0], 50)
    with within(EndingAt(2)), pytest.raises(DeadlineError):
        BfcMachine(requests, BfcSettings(), NO_LIMIT).advance(len(requests))
