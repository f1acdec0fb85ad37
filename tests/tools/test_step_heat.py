"""step_heat: every cell against a plain group-by, and its bounds with very many steps."""

import json
from collections import defaultdict

import pytest
from tests.engine.ending import DATA
from tests.tools.plain_steps import DATA_OF_STEPS, Events

import peakline
from reference.xspace_builder import SpaceBuilder

US = 10**6
MANY = 100_000


def heat(profile, **parameters):
    return json.loads(profile.tool("step_heat", **parameters).content)


def windows_of(profile, device):
    rows = [row for row in profile.table("step_breakdown").to_pylist() if row["device"] == device]
    return sorted(rows, key=lambda row: row["start_ps"])


@pytest.mark.parametrize("name", DATA_OF_STEPS)
def test_parts_are_those_of_the_breakdown(name):
    with peakline.open(DATA / name) as profile:
        found = heat(profile, by="part", width=2048)
        steps = windows_of(profile, found["device"])
    assert found["steps"] == len(steps) == len(found["columns"]["first"])
    named = {str(step["step_id"]): step["name"] for step in steps}
    assert found["names"].items() <= named.items()
    assert {str(step) for row in found["rows"] for step in row["step_id"]} == set(found["names"])
    for row in found["rows"]:
        assert row["most_ps"] == [step[f"{row['name']}_ps"] for step in steps]
        assert row["mean_ps"] == row["most_ps"]
        assert row["total_ps"] == sum(row["most_ps"])


@pytest.mark.parametrize("name", DATA_OF_STEPS)
def test_ops_are_a_plain_group_by(name):
    with peakline.open(DATA / name) as profile:
        events = Events(profile)
        found = heat(profile, width=2048, limit=100)
        steps = windows_of(profile, found["device"])
        single = {row["name"]: events.lines_of(row["name"]) for row in found["rows"]}
        plain = defaultdict(list)
        for line in {next(iter(own)) for own in single.values() if len(own) == 1}:
            for step in steps:
                plain[line].append(events.self_times(line, step["start_ps"], step["end_ps"]))
    for row in found["rows"]:
        if len(single[row["name"]]) == 1:
            (line,) = single[row["name"]]
            assert row["most_ps"] == [times[row["name"]] for times in plain[line]]


@pytest.mark.parametrize("name", DATA_OF_STEPS)
def test_a_cell_is_the_self_time_that_a_comparison_names(name):
    with peakline.open(DATA / name) as profile:
        found = heat(profile, width=2048, limit=100)
        cells = {row["name"]: row["most_ps"] for row in found["rows"]}
        for place, step in enumerate(windows_of(profile, found["device"])[:3]):
            answer = profile.tool(
                "step_difference", step=str(step["step_id"]), device=found["device"], limit=500
            )
            own = defaultdict(dict)
            for op in json.loads(answer.content)["ops"]:
                own[op["name"]][op["side"]] = op["self_ps"]
            for op, sides in own.items():
                if op in cells and len(sides) == 1:
                    assert cells[op][place] == next(iter(sides.values()))


@pytest.mark.parametrize("name", DATA_OF_STEPS)
def test_columns_merge_steps(name):
    with peakline.open(DATA / name) as profile:
        every, few = heat(profile, width=2048), heat(profile, width=3)
    ids = {name: every["columns"]["longest"][k] for k, name in enumerate(every["columns"]["first"])}
    for one, merged in zip(every["rows"], few["rows"], strict=True):
        assert one["name"] == merged["name"]
        for column, (first, last) in enumerate(
            zip(few["columns"]["first"], few["columns"]["last"], strict=True)
        ):
            cells = one["most_ps"][first:last]
            assert merged["most_ps"][column] == max(cells)
            assert merged["mean_ps"][column] == sum(cells) // len(cells)
            assert merged["step_id"][column] == ids[first + cells.index(max(cells))]


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """100,000 steps of ten ops in turn, one of which is long once."""
    builder = SpaceBuilder()
    line = builder.host().line("python")
    for step in range(MANY):
        at = step * 20 * US
        line.event("train", at, 20 * US, {"_r": 1, "step_num": step})
        line.event(f"op{step % 10}:MatMul", at, 5 * US)
        line.event("once:Relu" if step == 77_777 else "often:Relu", at + 6 * US, 9 * US)
    path = tmp_path_factory.mktemp("many") / "many.xplane.pb"
    path.write_bytes(builder.space.SerializeToString())
    with peakline.open(path) as profile:
        yield profile


def test_many_steps_make_a_small_answer(many):
    answer = many.tool("step_heat", width=400, limit=40)
    assert len(answer.content) < 1_500_000
    found = json.loads(answer.content)
    assert found["steps"] == MANY
    assert {len(row["most_ps"]) for row in found["rows"]} == {400}
    often, once = (
        next(r for r in found["rows"] if r["name"] == f"{name}:Relu") for name in ("often", "once")
    )
    assert often["total_ps"] == (MANY - 1) * 9 * US
    column = next(k for k, last in enumerate(found["columns"]["last"]) if last > 77_777)
    assert (once["most_ps"][column], once["step_id"][column]) == (9 * US, 77_777)
    assert sum(once["most_ps"]) == 9 * US


def test_a_part_of_the_steps_is_finer(many):
    found = heat(many, first=77_700, last=77_800, width=400, sort="variance")
    assert found["columns"]["first"] == list(range(77_700, 77_800))
    once = next(row for row in found["rows"] if row["name"] == "once:Relu")
    assert once["most_ps"][77] == once["total_ps"] == 9 * US


def test_one_of_many_steps_is_explained(many):
    found = json.loads(many.tool("step_difference", step="train 77777").content)
    assert found["difference_ps"] == 0
    assert {op["name"] for op in found["ops"]} >= {"once:Relu", "often:Relu"}


def test_without_steps_there_are_no_rows(tmp_path):
    path = tmp_path / "g.pbtxt"
    path.write_text('node { name: "a" op: "NoOp" }\n')
    with peakline.open(path) as profile:
        assert heat(profile)["rows"] == []
