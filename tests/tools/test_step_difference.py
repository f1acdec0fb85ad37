"""step_difference: every difference against straight loops, and what is said of made-up steps."""

import csv
import io
import json

import pytest
from tests.engine.ending import DATA
from tests.tools.plain_steps import DATA_OF_STEPS, Events

import peakline
from peakline.errors import NotFoundError
from reference.xspace_builder import SpaceBuilder

MS = 10**9
STEPS = 8
PARTS = {"start_ps", "end_ps", "wall_ps", "gap_before_ps", "communication_total_ps"}


def difference(profile, **parameters):
    return json.loads(profile.tool("step_difference", **parameters).content)


def rows_of(profile):
    return profile.table("step_breakdown").to_pylist()


def loop(slow: int = 5) -> bytes:
    """A loop of 10 ms steps, of which one waits for three elements of 30 ms instead of one of 2 ms,
    and sleeps 5 ms in a function of the program.
    """
    builder = SpaceBuilder()
    line = builder.host().line("python")
    at = 0
    for step in range(STEPS):
        waits = [30, 30, 30] if step == slow else [2]
        sleep = 5 if step == slow else 0
        line.event("train", at * MS, (sum(waits) + sleep + 8) * MS, {"_r": 1, "step_num": step})
        for wait in waits:
            line.event("Iterator::Root::Prefetch", at * MS, wait * MS)
            at += wait
        if sleep:
            line.event("$train.py:30 augment", at * MS, sleep * MS)
            line.event("$time sleep", at * MS, sleep * MS)
            at += sleep
        line.event("MatMul:MatMul", at * MS, 7 * MS)
        at += 8
    return builder.space.SerializeToString()


@pytest.fixture
def made_up(tmp_path):
    path = tmp_path / "loop.xplane.pb"
    path.write_bytes(loop())
    with peakline.open(path) as profile:
        yield profile


@pytest.mark.parametrize("name", DATA_OF_STEPS)
def test_the_differences_of_every_step_add_up(name):
    with peakline.open(DATA / name) as profile:
        for row in rows_of(profile):
            where = {"step": str(row["step_id"]), "device": row["device"]}
            result = difference(profile, **where, limit=500)
            usual = difference(profile, **where, against=str(result["against"]["step_id"]))
            assert result["parts"] == usual["parts"]
            assert result["wall_ps"] == row["wall_ps"]
            assert sum(part["difference_ps"] for part in result["parts"]) == result["difference_ps"]
            for part in result["parts"]:
                assert part["ps"] == row[f"{part['part']}_ps"]
                own = [op for op in result["ops"] if op["part"] == part["part"]]
                for kind in ("ps", "usual_ps", "difference_ps"):
                    explained = sum(op[kind] for op in own)
                    head, _, _ = kind.rpartition("ps")
                    assert (
                        explained
                        + part[
                            f"{head}unattributed_ps".replace(
                                "difference_unattributed_ps", "unattributed_difference_ps"
                            )
                        ]
                        == part[kind]
                    )
                assert part["unattributed_ps"] >= 0
                assert part["usual_unattributed_ps"] >= 0


@pytest.mark.parametrize("name", DATA_OF_STEPS)
def test_the_median_step_is_the_one_in_the_middle(name):
    with peakline.open(DATA / name) as profile:
        rows = rows_of(profile)
        for row in rows:
            alike = [
                other["wall_ps"]
                for other in rows
                if other["name"].rstrip("0123456789 #") == row["name"].rstrip("0123456789 #")
                and other["device"] == row["device"]
                and not other["is_cut_off"]
            ]
            result = difference(profile, step=str(row["step_id"]), device=row["device"])
            assert result["usual_wall_ps"] == sorted(alike)[(len(alike) - 1) // 2]
            assert result["against"]["of_steps"] == len(alike)


@pytest.mark.parametrize("name", DATA_OF_STEPS)
def test_runs_and_self_times_are_those_of_a_straight_loop(name):
    with peakline.open(DATA / name) as profile:
        events = Events(profile)
        result = difference(profile, limit=500)
        step = result["step"]
        window = step["start_ps"], step["end_ps"]
        lines = profile.table("lines").to_pylist()
        checked = 0
        for op in result["ops"]:
            where = events.lines_of(op["name"])
            line = lines[op["events"][0]["line"]]["line_id"] if op["events"] else None
            if len(where) != 1 or line not in where:
                continue
            assert op["count"] == events.runs(line, *window)[op["name"]]
            assert op["self_ps"] == events.self_times(line, *window)[op["name"]]
            checked += 1
        assert checked


@pytest.mark.parametrize("name", DATA_OF_STEPS)
def test_the_events_of_a_row_are_in_the_step_and_have_its_name(name):
    with peakline.open(DATA / name) as profile:
        table = {row["event_id"]: row for row in profile.table("events").to_pylist()}
        result = difference(profile, limit=500)
        for op in result["ops"]:
            for kind, step in (("events", result["step"]), ("usual_events", result["against"])):
                for event in op[kind]:
                    row = table[event["event"]]
                    assert row["name"] == op["name"]
                    assert row["start_ps"] == event["start_ps"] < step["end_ps"]
                    assert row["start_ps"] + row["duration_ps"] > step["start_ps"]


def test_what_a_slow_step_does_is_said_in_sentences(made_up):
    result = difference(made_up)
    assert (result["step"]["name"], result["against"]["name"]) == ("train 5", "train 3")
    assert result["is_slow"]
    headline, cause = result["sentences"]
    assert headline == (
        "train 5 took 103.000 ms, 10.3 times the median step (train 3, 10.000 ms): "
        "+88.000 ms in waiting for input."
    )
    assert cause == (
        "Of +88.000 ms (waiting for input): +88.000 ms in Iterator::Root::Prefetch "
        "(3 calls instead of 1)."
    )
    op = result["ops"][0]
    assert (op["part"], op["count"], op["usual_count"]) == ("input_wait", 3, 1)
    assert (op["ps"], op["usual_ps"]) == (90 * MS, 2 * MS)


def test_functions_of_the_program_are_named(made_up):
    result = difference(made_up, limit=500)
    functions = {one["title"]: one["difference_ps"] for one in result["frames"]}
    assert functions["augment (train.py:30)"] == 5 * MS


def test_the_first_steps_warm_up_without_alarm(tmp_path):
    path = tmp_path / "first.xplane.pb"
    path.write_bytes(loop(slow=0))
    with peakline.open(path) as profile:
        result = difference(profile)
    assert (result["is_slow"], result["is_warm_up"]) == (False, True)
    assert result["sentences"][0].startswith(
        "train 0, one of the first steps of its name, which warm up, took 103.000 ms, 10.3 times"
    )


def test_the_median_step_itself_differs_in_nothing(made_up):
    result = difference(made_up, step="train 3")
    assert result["sentences"] == ["train 3 is the median step of 8: 10.000 ms."]
    assert {part["difference_ps"] for part in result["parts"]} == {0}


def test_a_range_is_compared_by_its_mean(made_up):
    result = difference(made_up, step="train 4", last="train 7", limit=500)
    assert result["step"]["steps"] == 4
    assert result["wall_ps"] == (103 + 3 * 10) * MS // 4
    assert sum(part["difference_ps"] for part in result["parts"]) == result["difference_ps"]
    for part in result["parts"]:
        explained = sum(o["ps"] for o in result["ops"] if o["part"] == part["part"])
        assert explained + part["unattributed_ps"] == part["ps"]
    assert result["ops"][0]["count"] == 6 / 4
    assert difference(made_up, step="train 7", last="train 4", limit=500) == result


def a_thousand_steps(tmp_path):
    """Each of 1 ms, its MatMul of as many microseconds as its number; every 100th runs Save too."""
    builder = SpaceBuilder()
    line = builder.host().line("python")
    for step in range(1000):
        line.event("train", step * MS, MS, {"_r": 1, "step_num": step})
        line.event("MatMul:MatMul", step * MS, step * MS // 1000)
        if step % 100 == 7:
            line.event("Save:Save", step * MS + MS * 999 // 1000, MS // 1000)
    path = tmp_path / "many.xplane.pb"
    path.write_bytes(builder.space.SerializeToString())
    return path


def test_a_long_range_is_exact(tmp_path):
    with peakline.open(a_thousand_steps(tmp_path)) as profile:
        result = difference(profile, step="100", last="899", against="500")
    assert (result["step"]["steps"], result["step"]["examined"]) == (800, 800)
    ops = {op["name"]: op for op in result["ops"]}
    assert ops["Save:Save"]["count"] == 8 / 800
    assert ops["Save:Save"]["ps"] == 8 * (MS // 1000) // 800
    assert ops["MatMul:MatMul"]["ps"] == sum(range(100, 900)) * (MS // 1000) // 800
    assert ops["MatMul:MatMul"]["usual_ps"] == MS // 2


def test_a_range_of_very_many_events_is_an_even_choice_of_steps(tmp_path, monkeypatch):
    monkeypatch.setattr("peakline.timing.steps.difference.MOST_EVENTS", 603)
    with peakline.open(a_thousand_steps(tmp_path)) as profile:
        result = difference(profile, step="0", last="999")
    assert (result["step"]["steps"], result["step"]["examined"]) == (1000, 300)
    assert result["difference_ps"] == 0


def test_any_step_may_be_compared_with(made_up):
    result = difference(made_up, step="train 4", against="train 5")
    assert result["difference_ps"] == -93 * MS
    assert result["sentences"][0].startswith("train 4 took 10.000 ms, 0.1 times train 5")


@pytest.mark.parametrize("where", [{"step": "99"}, {"against": "x"}, {"device": "gpu"}])
def test_what_there_is_not_is_an_error(made_up, where):
    with pytest.raises(NotFoundError):
        difference(made_up, **where)


def test_csv_has_the_ops(made_up):
    content = made_up.tool("step_difference", format="csv").content.decode()
    rows = list(csv.DictReader(io.StringIO(content)))
    assert rows[0]["title"] == "Iterator::Root::Prefetch"
    assert int(rows[0]["difference_ps"]) == 88 * MS


def test_without_steps_there_is_nothing(tmp_path):
    path = tmp_path / "g.pbtxt"
    path.write_text('node { name: "a" op: "NoOp" }\n')
    with peakline.open(path) as profile:
        result = difference(profile)
    assert (result["step"], result["parts"], result["sentences"]) == (None, [], [])
