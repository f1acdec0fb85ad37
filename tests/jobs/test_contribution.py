"""What a profile gives to a job's answer: small, whatever the size of the job, and read once."""

import gzip
import json
import pickle
from collections import Counter

import numpy as np
import pytest
from tests.each_row import each_row
from tests.engine.ending import DATA
from tests.jobs.simulated import SCENARIOS
from tests.jobs.xspace_hosts import CORES, xspace_hosts

import peakline
from peakline import jobs
from peakline.engine import Engine
from peakline.jobs import excess
from peakline.repository import resolve_hosts
from peakline.timing import collectives

MOST_BYTES = 200_000
"""Of a hundred steps."""
RECORDED = DATA / "sessions/tf2_multihost/plugins/profile/2026_11_20_17_33_46"


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    """Two hosts of a hundred steps."""
    folder = tmp_path_factory.mktemp("hosts")
    truth = xspace_hosts(folder, 2, steps=100)
    return [folder / name for name in truth.files.values()]


def contribution(path):
    with peakline.open(path) as profile:
        return jobs.contribution_of(profile)


def simulated(tmp_path):
    SCENARIOS["tensor_data"](4, 12).write(tmp_path)
    return resolve_hosts(str(tmp_path)).hosts()[0].path


@each_row("which", ["hosts", "recorded", "simulated"])
def test_it_is_small(hosts, tmp_path, which):
    path = {
        "hosts": lambda: hosts[0],
        "recorded": lambda: RECORDED / "localhost_56665.xplane.pb",
        "simulated": lambda: simulated(tmp_path),
    }[which]()
    one = contribution(path)
    steps = len(one.participants[0].steps.name)
    assert steps > 10
    assert len(pickle.dumps(one, protocol=5)) < MOST_BYTES * max(steps, 10) / 100


def test_sent_it_is_the_same_and_shares_its_names(hosts):
    one, other = (contribution(path) for path in hosts)
    sent, beside = pickle.loads(pickle.dumps((one, other), protocol=5))  # noqa: S301 (our own)
    assert len(sent.participants) == CORES
    for before, after in zip(one.participants, sent.participants, strict=True):
        for part in ("steps", "calls", "work"):
            for name, value in vars(getattr(before, part)).items():
                own = getattr(getattr(after, part), name)
                assert np.array_equal(own, value)
                assert getattr(own, "dtype", None) == getattr(value, "dtype", None)
    mine, theirs = ({n: n for n in each.participants[0].work.names} for each in (sent, beside))
    both = mine.keys() & theirs.keys()
    assert len(both) > 20
    assert all(mine[name] is theirs[name] for name in both), "a thousand ranks hold each once"


def test_the_ranks_of_a_group_are_written_once_for_an_instruction(hosts, monkeypatch):
    written = []
    monkeypatch.setattr(
        collectives.json,
        "dumps",
        lambda group: (written.append(group), json.JSONEncoder().encode(group))[1],
    )
    with peakline.open(hosts[0]) as profile:
        rows = collectives.collective_rows(profile)
    whole = [group for group in written if len(group) == 2 * CORES]
    assert len(whole) == 4, "a group of thousands takes long to write"
    assert rows.arrive.size > 100 * len(written)


def test_the_usual_value_of_each_row():
    values = np.random.default_rng(7).integers(0, 4, (200, 9)).astype(np.uint64)
    for row, usual in zip(values.tolist(), excess._usual(values).tolist(), strict=True):
        often = Counter(row)
        assert usual == min(value for value in often if often[value] == max(often.values()))


def test_a_second_question_reads_nothing(tmp_path):
    xspace_hosts(tmp_path, 3, steps=2)
    session = resolve_hosts(str(tmp_path))
    with Engine() as engine:
        first = engine.tool(session, "job")
        opened = engine.cache.stats().misses
        assert engine.tool(session, "job") == first
        assert len(engine.contributions(session, "job").parts) == 3
        engine.cache.clear()
        engine.contributions(session, "job")
        assert engine.cache.stats().misses == opened


def test_the_most_in_use_in_each_step():
    """As the records of the file say it, read again in the plainest way."""
    for path in sorted((DATA / "jobs" / "ddp_fat" / "faulty").rglob("*.json.gz")):
        events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
        steps = sorted(
            (one["ts"], one["ts"] + one["dur"])
            for one in events
            if one.get("cat") == "user_annotation" and one["name"].startswith("ProfilerStep#")
        )
        used = sorted(
            (one["ts"], one["args"]["Total Allocated"])
            for one in events
            if one["name"] == "[memory]" and one["args"]["Device Type"] == 0
        )
        ends = [*(begin for begin, _ in steps[1:]), steps[-1][1]]
        expected = []
        for (begin, _), end in zip(steps, ends, strict=True):
            before = [size for at, size in used if at <= begin][-1:]
            expected.append(max([*before, *(size for at, size in used if begin <= at < end)]))
        own = contribution(path)
        assert own.memory_by_step.tolist() == expected
        assert max(expected) == max(one.peak_bytes for one in own.memory)
