"""Hosts on one axis: by their own clocks, and put right by what happens on all at once."""

import numpy as np
import pytest
from tests.each_row import each_row
from tests.engine.ending import DATA

import peakline
from peakline.trace.clocks import HostClock, align, clock_of

MS = 10**9
STEP = 10 * MS
S2026 = 1_795_000_000 * 10**9


def host(name, zero_ns, shift_ps=0, *, steps=8, jitter=(), collectives=False, first=0):
    """A host whose steps begin every 10 ms from ``shift_ps`` on, by its profile's clock."""
    begin = np.arange(steps, dtype=np.int64) * STEP + shift_ps
    begin[: len(jitter)] += np.array(jitter, np.int64)
    end = begin + STEP // 2
    names = tuple(f"train {first + number}" for number in range(steps))
    last = end - MS if collectives else np.full(steps, -1, np.int64)
    return HostClock(name, zero_ns, names, begin, end, last)


def test_clocks_that_agree_are_believed():
    result = align([host("a", S2026 + 5), host("b", S2026, 5000)])
    assert (result.reference, result.zero_ns) == ("a", S2026)
    assert [(own.offset_ps, own.source) for own in result.hosts] == [(5000, "clock"), (0, "clock")]
    assert result.hosts[1].skew_ps == 0
    assert result.of("a").offset_ps == 5000


def test_ends_of_collectives_put_a_clock_right():
    # The clock of b is 3 ms ahead of that of a.
    result = align([host("a", S2026, collectives=True), host("b", S2026, 3 * MS, collectives=True)])
    b = result.hosts[1]
    assert (b.source, b.matched, b.matches, b.skew_ps) == ("collectives", "collectives", 8, 3 * MS)
    assert result.hosts[0].offset_ps - b.offset_ps == 3 * MS
    assert b.uncertainty_ps < MS


def test_steps_that_begin_late_do_not_move_a_clock():
    # Late by less than a step: that is what stragglers look like.
    result = align([host("a", S2026), host("b", S2026, 3 * MS)])
    assert [own.source for own in result.hosts] == ["clock", "clock"]
    assert result.hosts[1].skew_ps == 3 * MS
    assert [own.offset_ps for own in result.hosts] == [0, 0]


def test_steps_put_a_clock_right_that_is_wrong_by_more_than_a_step():
    a, b = align([host("a", S2026), host("b", S2026 + 3_600 * 10**9, 2 * MS)]).hosts
    assert b.source == "steps"
    assert a.offset_ps - b.offset_ps == 2 * MS
    assert b.skew_ps == 3_600 * 10**12 + 2 * MS


def test_a_host_without_a_clock_is_put_where_its_steps_match():
    result = align([host("x", None, 7 * MS), host("a", S2026)])
    x, a = result.hosts
    assert (result.reference, x.source, x.skew_ps) == ("a", "steps", None)
    assert a.offset_ps - x.offset_ps == 7 * MS


def test_nothing_in_common_is_told():
    result = align([host("a", S2026), host("b", None, first=100)])
    assert (result.hosts[1].source, result.hosts[1].matches) == ("none", 0)
    assert result.hosts[1].skew_ps is None


@each_row("steps", [1, 2])
def test_few_matches_say_nothing(steps):
    result = align([host("a", S2026), host("b", S2026 + 10**12, steps=steps)])
    assert (result.hosts[1].source, result.hosts[1].skew_ps) == ("clock", None)


def test_steps_that_were_not_run_together_say_nothing():
    drift = [number * 3 * MS for number in range(8)]
    b = align([host("a", S2026), host("b", S2026 + 10**12, jitter=drift)]).hosts[1]
    assert (b.source, b.skew_ps) == ("clock", None)
    assert b.spread_ps > MS


def test_no_hosts_and_one():
    assert align([]).hosts == ()
    one = align([host("a", None)])
    assert (one.zero_ns, one.hosts[0].source, one.hosts[0].offset_ps) == (None, "none", 0)
    with pytest.raises(KeyError):
        one.of("b")


class TestProfiles:
    def test_two_processes_of_one_machine(self):
        """Their clock is one: what the profiles say of it must agree with the profilers' starts."""
        folder = DATA / "sessions/tf2_multihost/plugins/profile/2026_11_20_17_33_46"
        clocks = []
        for path in sorted(folder.glob("*.xplane.pb")):
            with peakline.open(path) as profile:
                stats = profile.table("plane_stats").to_pylist()
                (started,) = (int(s["value"]) for s in stats if s["name"] == "profile_start_time")
                clock = clock_of(profile)
                assert 0 <= clock.zero_ns - started < 10**6
                clocks.append(clock)
        assert [len(clock.names) for clock in clocks] == [36, 71]
        result = align(clocks)
        assert [own.source for own in result.hosts] == ["clock", "clock"]
        assert result.hosts[1].offset_ps == (clocks[1].zero_ns - clocks[0].zero_ns) * 1000

    def test_a_run_of_step_stats_has_the_time_of_its_executions(self):
        with peakline.open(DATA / "run_metadata/tf1_grpc.pb.gz") as profile:
            row = profile.sql(
                "select all_start_micros m, start_ps p from op_times join op_runs using (op_run_id)"
                " where all_start_micros > 0 order by op_run_id limit 1"
            ).to_pylist()[0]
            assert abs(clock_of(profile).zero_ns - (row["m"] * 1000 - row["p"] // 1000)) < 1000

    def test_a_chrome_trace_says_it_itself(self, tmp_path):
        path = tmp_path / "t.json"
        path.write_text(
            '{"baseTimeNanoseconds": 1700000000000000000, "traceEvents": ['
            '{"ph":"X","pid":1,"tid":1,"ts":5,"dur":2,"name":"a"},'
            '{"ph":"X","pid":1,"tid":1,"ts":9,"dur":2,"name":"b"}]}'
        )
        with peakline.open(path) as profile:
            assert clock_of(profile).zero_ns == 1_700_000_000_000_005_000

    def test_a_profile_without_time_has_none(self, tmp_path):
        path = tmp_path / "g.pbtxt"
        path.write_text('node { name: "a" op: "NoOp" }\n')
        with peakline.open(path) as profile:
            assert (clock_of(profile, "h").host, clock_of(profile).zero_ns) == ("h", None)
