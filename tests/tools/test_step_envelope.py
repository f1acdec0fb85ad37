"""step_envelope: every column and row against plain loops over the breakdown, and its bounds."""

import json
from statistics import mean, median, median_low

import pytest
from tests.engine.ending import DATA
from tests.tools.plain_steps import DATA_OF_STEPS

import peakline
from peakline.errors import NotFoundError, UsageError
from reference.xspace_builder import SpaceBuilder

US = 10**6
MANY = 100_000


def envelope(profile, **parameters):
    return json.loads(profile.tool("step_envelope", **parameters).content)


def steps_of(profile, device):
    rows = [row for row in profile.table("step_breakdown").to_pylist() if row["device"] == device]
    return sorted(rows, key=lambda row: row["start_ps"])


@pytest.mark.parametrize("width", [1, 3, 5, 2048])
@pytest.mark.parametrize("name", DATA_OF_STEPS)
def test_columns_are_those_of_a_straight_loop(name, width):
    with peakline.open(DATA / name) as profile:
        found = envelope(profile, width=width)
        steps = steps_of(profile, found["device"])
    columns = found["columns"]
    assert found["steps"] == len(steps)
    assert len(columns["first"]) == min(width, len(steps))
    assert columns["first"][0] == 0
    assert columns["first"][1:] == columns["last"][:-1]
    assert columns["last"][-1] == len(steps)
    for k, (first, last) in enumerate(zip(columns["first"], columns["last"], strict=True)):
        own = steps[first:last]
        wall = [step["wall_ps"] for step in own]
        assert columns["min_ps"][k] == min(wall)
        assert columns["median_ps"][k] == median_low(wall)
        assert columns["mean_ps"][k] == sum(wall) // len(wall)
        assert columns["max_ps"][k] == max(wall)
        assert columns["longest"][k] == first + wall.index(max(wall))
        longest = steps[columns["longest"][k]]
        for column in ("step_id", "name", "is_cut_off"):
            assert columns[column][k] == longest[column]
        for part, values in columns["parts"].items():
            assert values[k] == sum(step[f"{part}_ps"] for step in own) // len(own)
    widths = [last - first for first, last in zip(columns["first"], columns["last"], strict=True)]
    assert max(widths) - min(widths) <= 1


@pytest.mark.parametrize("name", DATA_OF_STEPS)
def test_rows_are_those_of_the_breakdown(name):
    with peakline.open(DATA / name) as profile:
        found = envelope(profile, limit=2048)
        steps = steps_of(profile, found["device"])
        assert [{name: row[name] for name in steps[0]} for row in found["rows"]] == steps
        assert [row["place"] for row in found["rows"]] == list(range(len(steps)))
        longest = envelope(profile, sort="-wall_ps", limit=3, offset=1, width=0)
        wall = sorted((step["wall_ps"] for step in steps), reverse=True)
        assert [row["wall_ps"] for row in longest["rows"]] == wall[1:4]
        assert (longest["rows_total"], longest["columns"]["first"]) == (len(steps), [])
        part = envelope(profile, first=1, last=3, limit=2048)
        assert [row["place"] for row in part["rows"]] == list(range(1, min(3, len(steps))))
        whole = [step for step in steps if not step["is_cut_off"]] or steps
        assert found["shortest"] in {
            step["step_id"]
            for step in whole
            if step["wall_ps"] == min(one["wall_ps"] for one in whole)
        }


@pytest.mark.parametrize("name", DATA_OF_STEPS)
def test_slow_steps_and_those_that_warm_up(name):
    """Twice the median of their name; of each name the first two warm up."""
    with peakline.open(DATA / name) as profile:
        found = envelope(profile, limit=2048)
        told = json.loads(profile.tool("step_breakdown").content)["variation"]
    slow = {(one["device"], s["step_id"]): s for one in told for s in one["slow"]}
    seen = {}
    for row in found["rows"]:
        if row["is_cut_off"]:
            assert row["says"] is None
            continue
        title = row["name"].rstrip("0123456789 #")
        seen[title] = seen.get(title, 0) + 1
        own = slow.get((row["device"], row["step_id"]))
        assert row["is_slow"] == (own is not None and seen[title] > 2)
        assert row["is_warm_up"] == (own is not None and seen[title] <= 2)
        assert (row["says"] is None) == (own is None)
        if own is not None:
            assert own["is_first"] == row["is_warm_up"]
    assert sum(found["columns"]["slow"]) == sum(row["is_slow"] for row in found["rows"])
    for new, old in zip(found["variation"], told, strict=True):
        first = [one for one in old["slow"] if one["is_first"]]
        assert (new["warm_up"], new["slow"]) == (len(first), len(old["slow"]) - len(first))
        assert new | {"slow": 0, "warm_up": 0} == old | {"slow": 0, "warm_up": 0}


@pytest.mark.parametrize("name", DATA_OF_STEPS)
def test_the_mean_step_is_of_the_whole_steps_of_the_main_name(name):
    with peakline.open(DATA / name) as profile:
        found = envelope(profile)
        steps = steps_of(profile, found["device"])
    most = next(one for one in found["variation"] if one["device"] == found["device"])
    whole = [step for step in steps if not step["is_cut_off"]] or steps
    own = [step for step in whole if step["name"].rstrip("0123456789 #;:_-") == most["name"]]
    assert found["mean"]["steps"] == len(own)
    for part, value in found["mean"]["parts"].items():
        assert value == pytest.approx(mean(step[f"{part}_ps"] for step in own))


def test_a_step_is_found_with_its_neighbours():
    with peakline.open(DATA / DATA_OF_STEPS[0]) as profile:
        steps = steps_of(profile, envelope(profile)["device"])
        for asked in (str(steps[3]["step_id"]), steps[3]["name"]):
            found = envelope(profile, step=asked)["step"]
            assert {name: found[name] for name in steps[3]} == steps[3]
            assert (found["place"], found["previous_id"], found["next_id"]) == (
                3,
                steps[2]["step_id"],
                steps[4]["step_id"],
            )
        assert envelope(profile, step=str(steps[0]["step_id"]))["step"]["previous_id"] is None
        assert envelope(profile, step="no such step")["step"] is None


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """The first step takes ten times the median, every thousandth three times."""
    builder = SpaceBuilder()
    line = builder.host().line("python")
    at = 0
    for step in range(MANY):
        length = 100 if step == 0 else 30 if step % 1000 == 999 else 9 + step % 3
        line.event("train", at * US, length * US, {"_r": 1, "step_num": step})
        line.event("MatMul:MatMul", at * US, length * US // 2)
        at += length
    path = tmp_path_factory.mktemp("many") / "many.xplane.pb"
    path.write_bytes(builder.space.SerializeToString())
    with peakline.open(path) as profile:
        yield profile


def test_an_answer_about_very_many_steps_is_small(many):
    content = many.tool("step_envelope", width=1000, limit=100).content
    assert len(content) < 250_000
    found = json.loads(content)
    assert (found["steps"], len(found["columns"]["first"]), len(found["rows"])) == (MANY, 1000, 100)
    assert found["variation"][0]["slow"] == sum(found["columns"]["slow"]) == 100
    assert found["columns"]["is_warm_up"].count(True) == 1
    assert found["rows"][0]["says"].startswith("10.0 times the median: +")
    assert found["variation"][0]["median_ps"] == median(
        [9 * US] * 33_333 + [10 * US] * 33_334 + [11 * US] * 33_333
    )
    inside = envelope(many, first=50_000, last=50_500, width=2048, limit=2048)
    assert len(inside["columns"]["first"]) == len(inside["rows"]) == 500


def test_names_are_in_natural_order(many):
    found = envelope(many, sort="name", limit=2048, width=0)
    assert [int(row["name"].split()[-1]) for row in found["rows"]] == list(range(2048))


def test_what_there_is_not_is_an_error(many):
    with pytest.raises(UsageError, match="no column 'x'"):
        envelope(many, sort="x")
    with pytest.raises(NotFoundError):
        envelope(many, device="gpu")


def test_without_steps_there_is_nothing(tmp_path):
    path = tmp_path / "g.pbtxt"
    path.write_text('node { name: "a" op: "NoOp" }\n')
    with peakline.open(path) as profile:
        found = envelope(profile)
    assert (found["steps"], found["rows"], found["columns"]["first"]) == (0, [], [])
