"""The replay of what TensorFlow recorded, against what TensorFlow did under limits."""

import itertools
import json
from functools import cache

import peakline
from peakline.memory.fit.bfc import BfcFit
from peakline.memory.fit.replayed import recording_of
from peakline.memory.signatures import read_history
from peakline.replay.bfc import BfcMachine
from peakline.replay.requests import MIB
from tests.each_row import each_row
from tests.fit.record import DATA, OUTCOMES, WITHOUT_LIMIT

KNOWN = json.loads(OUTCOMES.read_text())
FILES = [(name, file) for name in KNOWN for file in KNOWN[name]["recordings"]]
STEADY = [name for name, known in KNOWN.items() if known.get("orders", {}).get("different") == 1]
"""Programs of one thread that allocated in the same order each time."""
LAST = 450
THREADED = [name for name, known in KNOWN.items() if known["threads"] > 1]


@cache
def replayed(name, file):
    with peakline.open(DATA / name / f"{file}.xplane.pb.gz") as profile:
        history = read_history(profile.columns("allocator_events"))
    return BfcFit(recording_of(history, 0), history.capacities[0], is_gpu=False)


def recordings(name):
    """Those without a limit that was felt."""
    return [file for file in KNOWN[name]["recordings"] if file.startswith(str(WITHOUT_LIMIT))]


def rounded(replay, outcome):
    """What the request that failed needed."""
    return -(-int(replay.requests.size[replay.requests.events[outcome.stopped_at]]) // 256) * 256


@each_row(("name", "file"), FILES)
def test_every_address_is_what_the_model_says(name, file):
    replay = replayed(name, file)
    assert replay.is_proved, replay.stated.reason
    assert replay.stated.equal_addresses == replay.stated.allocations > 50
    assert replay.proof.sizes_equal == replay.stated.allocations


@each_row("name", STEADY)
def test_every_limit_is_predicted_where_the_order_is_always_the_same(name):
    replay = replayed(name, str(WITHOUT_LIMIT))
    limits = replay.limits()
    assert limits.is_whole
    for limit, runs in KNOWN[name]["runs"].items():
        size = int(limit) * MIB
        outcome = replay.under(size)
        fits = any(low <= size <= (high or size) for low, high in limits.fits)
        assert {run["fits"] for run in runs} == {fits}, limit
        assert (outcome.stopped_at < 0) == fits
        if not fits:
            assert {run["failing_bytes"] for run in runs} == {rounded(replay, outcome)}, limit


def test_most_limits_are_predicted_of_all_programs():
    """Also where the order of requests differs from run to run."""
    right = wrong = undecided = 0
    for name, known in KNOWN.items():
        if known["threads"] > 1:
            continue
        replay = replayed(name, recordings(name)[0])
        for limit, runs in known["runs"].items():
            fits = replay.fits(int(limit) * MIB)
            undecided += len(runs) * (fits is None)
            right += sum(run["fits"] is fits for run in runs)
            wrong += sum(fits is not None and run["fits"] is not fits for run in runs)
    assert right > 15 * wrong
    assert right > 10 * undecided


@each_row("name", THREADED)
def test_with_several_threads_the_limit_is_in_the_range_that_was_seen(name):
    """Each limit was run five times: it is the smallest at which one ran, or lies between that and
    the smallest from which on all did.
    """
    runs = {
        int(limit): [run["fits"] for run in tried] for limit, tried in KNOWN[name]["runs"].items()
    }
    assert min(map(len, runs.values())) >= 5
    some = min(limit for limit, fits in runs.items() if any(fits))
    every = min(limit for limit in runs if all(all(runs[n]) for n in runs if n >= limit))
    safe = [replayed(name, file).limits().safe_from // MIB for file in recordings(name)]
    assert all(some <= limit <= every for limit in safe), (some, every, safe)


def test_some_programs_fit_below_limits_at_which_they_fail():
    holes = [name for name in STEADY if len(replayed(name, str(WITHOUT_LIMIT)).limits().fits) > 1]
    assert len(holes) >= 4


@each_row(("name", "file"), [(n, f) for n, f in FILES if not KNOWN[n]["recordings"][f]["fits"]])
def test_a_failing_run_is_in_the_state_of_its_own_dump(name, file):
    """All chunks, in the order of the regions: what TensorFlow wrote when it failed."""
    replay = replayed(name, file)
    with peakline.open(DATA / name / f"failed_{file}.log.gz") as profile:
        blocks = profile.columns("blocks")
        known = [
            (int(size), state == "in_use")
            for size, state in zip(
                blocks.array("bytes").tolist(), blocks.names("state").to_list(), strict=True
            )
        ]
        regions = blocks.array("segment_id").tolist()
    dumped = [
        [one for _, one in group]
        for _, group in itertools.groupby(zip(regions, known, strict=True), key=lambda row: row[0])
    ]
    expected = sorted(map(tuple, dumped))
    assert any(sorted(map(tuple, state)) == expected for state in states(replay))
    assert replay.proof.learned == len(dumped)


def states(replay):
    """The chunks by region after each of the last events: behind the failure the program frees what
    it held.
    """
    requests, proof = replay.recording.requests, replay.proof
    machine = BfcMachine(
        requests, proof.settings, replay.capacity, recorded=replay.recording.address
    )
    machine.advance(max(len(requests) - LAST, 0))
    while machine.position < len(requests):
        machine.advance(machine.position + 1)
        chunks = machine.chunks().tolist()
        yield [
            [(size, bool(used)) for _, _, size, used, _ in group]
            for _, group in itertools.groupby(chunks, key=lambda row: row[0])
        ]
