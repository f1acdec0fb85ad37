"""The tool `collectives`: against the truth of simulated jobs, of one rank, chosen and sorted."""

import csv
import io
import json
import statistics

import pytest
from tests.each_row import each_row
from tests.jobs.simulated import SCENARIOS

from peakline.engine import Engine
from peakline.repository import resolve_hosts

NEAR_PS = 2_000_000
"""What clocks are sure to, and files are written to, together."""


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """A job of two machines with clocks apart: its session and its truth."""
    folder = tmp_path_factory.mktemp("job")
    truth = SCENARIOS["skewed_clocks"](16, 4, seed=3).write(folder)
    return resolve_hosts(str(folder)), truth


@pytest.fixture(scope="module")
def engine():
    with Engine() as result:
        yield result


@pytest.fixture(scope="module")
def answer(engine, job):
    """The tool's answer as a document."""

    def ask(host="", **parameters):
        return json.loads(
            engine.tool(job[0], "collectives", host=host, parameters=parameters).content
        )

    return ask


def test_each_rank_of_each_is_a_row_with_what_is_true(answer, job):
    document = answer(limit=1 << 20)
    rows = document["rows"]
    assert len(rows) == document["rows_total"]
    assert document["kinds"] == ["all-reduce"]
    assert document["clocks"]["aligned_by"] == "collectives"
    by_collective = {}
    for row in rows:
        by_collective.setdefault(row["collective"], {})[row["rank"]] = row
    truth = [one for one in job[1].collectives if 1 <= one.step <= 4]
    assert len(by_collective) == len(truth)
    # All are of all ranks: they are the same in order of time.
    mine = sorted(by_collective.values(), key=lambda own: min(r["arrive_ps"] for r in own.values()))
    for own, true in zip(mine, truth, strict=True):
        last = max(true.arrive_ps.values())
        assert own.keys() == true.arrive_ps.keys()
        for rank, row in own.items():
            others = [at for other, at in true.arrive_ps.items() if other != rank]
            arrived = true.arrive_ps[rank]
            assert row["late_ps"] == pytest.approx(arrived - statistics.median(others), abs=NEAR_PS)
            assert row["wait_ps"] == pytest.approx(last - arrived, abs=NEAR_PS)
            assert row["transfer_ps"] == pytest.approx(true.end_ps[rank] - last, abs=NEAR_PS)
            assert row["step"] == f"ProfilerStep#{true.step}"
            assert row["size_bytes"] == 4 * true.elements[rank][0]
            assert (row["group"], row["members"]) == ("0-15", 16)
            rate = 2 * 15 / 16 * row["size_bytes"] / (true.transfer_ps / 1e12)
            assert row["bus_bytes_per_second"] == pytest.approx(rate, rel=2e-3)


def test_of_one_rank_nobody_knows_who_was_waited_for(answer, job):
    host = job[0].hosts()[3].host
    document = answer(host=host, limit=1 << 20)
    assert {f"rank{row['rank']}" for row in document["rows"]} == {host}
    assert {row["wait_ps"] for row in document["rows"]} == {None}
    assert {row["late_ps"] for row in document["rows"]} == {None}
    of_all = answer(rank=document["rows"][0]["rank"])
    assert document["rows_total"] == of_all["rows_total"]


@each_row(
    "parameters, test",
    [
        ({"rank": 5}, lambda row: row["rank"] == 5),
        ({"step": "ProfilerStep#2"}, lambda row: row["step"] == "ProfilerStep#2"),
        ({"step": "none"}, lambda _: False),
        ({"kind": "all-reduce"}, lambda _: True),
        ({"kind": "broadcast"}, lambda _: False),
        ({"collective": 7}, lambda row: row["collective"] == 7),
        (
            {"from_ps": 60 * 10**9, "to_ps": 90 * 10**9},
            lambda row: row["end_ps"] >= 60 * 10**9 and row["arrive_ps"] <= 90 * 10**9,
        ),
    ],
)
def test_rows_are_chosen(answer, parameters, test):
    every = answer(limit=1 << 20)["rows"]
    chosen = [row for row in every if test(row)]
    assert answer(limit=1 << 20, **parameters)["rows"] == chosen
    assert bool(chosen) == (parameters not in ({"step": "none"}, {"kind": "broadcast"}))


@each_row(
    "sort, column",
    [
        ("late", "late_ps"), ("wait", "wait_ps"), ("transfer", "transfer_ps"),
        ("size", "size_bytes"), ("bandwidth", "bus_bytes_per_second"),
    ],
)  # fmt: skip
def test_rows_are_sorted_and_come_in_pages(answer, sort, column):
    every = answer(limit=1 << 20)["rows"]
    result = answer(sort=sort, limit=1 << 20)["rows"]
    assert [row[column] for row in result] == sorted((row[column] for row in every), reverse=True)
    page = answer(sort=sort, offset=7, limit=5)
    assert (page["rows"], page["rows_total"]) == (result[7:12], len(every))


def test_a_collective_is_a_row_of_all_its_ranks(answer):
    document = answer(by="collective", arrivals=True, sort="wait", limit=1 << 20)
    every = {}
    for row in answer(limit=1 << 20)["rows"]:
        every.setdefault(row["collective"], []).append(row)
    assert document["rows_total"] == len(document["rows"]) == len(every)
    waits = [row["wait_ps"] for row in document["rows"]]
    assert waits == sorted(waits, reverse=True)
    for row in document["rows"]:
        own = every[row["collective"]]
        last = max(own, key=lambda one: one["arrive_ps"])
        begin = min(one["arrive_ps"] for one in own)
        assert (row["arrive_ps"], row["last_ps"]) == (begin, last["arrive_ps"])
        assert row["last_rank"] == f"rank {last['rank']}"
        assert row["end_ps"] == max(one["end_ps"] for one in own)
        assert row["wait_ps"] == max(one["wait_ps"] for one in own)
        middle = statistics.median(one["transfer_ps"] for one in own)
        assert row["transfer_ps"] == pytest.approx(middle, abs=1)
        for name in ("kind", "group", "members", "size_bytes", "step", "bus_bytes_per_second"):
            assert {one[name] for one in own} == {row[name]}
        spans = zip(row["ranks"], row["arrive_after_ps"], row["end_after_ps"], strict=True)
        assert {rank: (begin + a, begin + b) for rank, a, b in spans} == {
            one["rank"]: (one["arrive_ps"], one["end_ps"]) for one in own
        }
    assert answer(by="collective", step="ProfilerStep#2", limit=2)["rows_total"] < len(every)
    assert "ranks" not in answer(by="collective", limit=1)["rows"][0]


def test_kinds_and_groups_add_up(answer):
    (row,) = answer(by="group")["rows"]
    own = answer(by="collective", limit=1 << 20)["rows"]
    assert (row["kind"], row["group"], row["members"]) == ("all-reduce", "0-15", 16)
    assert row["count"] == len(own)
    assert row["size_bytes"] == sum(one["size_bytes"] for one in own)
    for name in ("wait_ps", "transfer_ps", "bus_bytes_per_second"):
        assert row[name] == pytest.approx(statistics.median(one[name] for one in own), abs=1)


def test_csv_has_the_same_rows(engine, answer, job):
    content = engine.tool(job[0], "collectives", format="csv", parameters={"limit": 9}).content
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    assert rows == [
        {name: "" if value is None else str(value) for name, value in row.items()}
        for row in answer(limit=9)["rows"]
    ]


def test_nothing_is_read_that_the_job_read(engine, answer, job):
    engine.tool(job[0], "job")
    read = engine.cache.stats().misses
    engine.cache.clear()
    assert answer(sort="wait", limit=3)["rows"] != answer(rank=1, limit=3)["rows"]
    assert engine.cache.stats().misses == read
