"""Steps over time: envelope, series and breakdown, against plain loops over their rows."""

import csv
import io
import json
from collections import defaultdict
from itertools import pairwise
from statistics import mean, median_low

import pytest
from tests.each_row import each_row
from tests.engine.ending import DATA, session_of
from tests.tools.plain_steps import DATA_OF_STEPS, Events

import peakline
from peakline.engine import Engine
from peakline.errors import NotFoundError, UsageError
from reference.xspace_builder import SpaceBuilder

US = 10**6
MANY = 20_000


def envelope(profile, **parameters):
    return json.loads(profile.tool("step_envelope", **parameters).content)


def steps_of(profile, device):
    rows = [row for row in profile.table("step_breakdown").to_pylist() if row["device"] == device]
    return sorted(rows, key=lambda row: row["start_ps"])


@pytest.mark.parametrize("width", [1, 3, 5, 2048])
@pytest.mark.parametrize("name", DATA_OF_STEPS)
def test_columns_are_those_of_a_straight_loop(name, width):
    with peakline.open(DATA / name) as profile:
        result = envelope(profile, width=width)
        steps = steps_of(profile, result["device"])
    columns = result["columns"]
    assert result["steps"] == len(steps)
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
        result = envelope(profile, limit=2048)
        steps = steps_of(profile, result["device"])
        assert [{name: row[name] for name in steps[0]} for row in result["rows"]] == steps
        assert [row["place"] for row in result["rows"]] == list(range(len(steps)))
        longest = envelope(profile, sort="-wall_ps", limit=3, offset=1, width=0)
        wall = sorted((step["wall_ps"] for step in steps), reverse=True)
        assert [row["wall_ps"] for row in longest["rows"]] == wall[1:4]
        assert (longest["rows_total"], longest["columns"]["first"]) == (len(steps), [])
        part = envelope(profile, first=1, last=3, limit=2048)
        assert [row["place"] for row in part["rows"]] == list(range(1, min(3, len(steps))))
        whole = [step for step in steps if not step["is_cut_off"]] or steps
        assert result["shortest"] in {
            step["step_id"]
            for step in whole
            if step["wall_ps"] == min(one["wall_ps"] for one in whole)
        }


@pytest.mark.parametrize("name", DATA_OF_STEPS)
def test_slow_steps_and_those_that_warm_up(name):
    """Twice the median of their name; of each name the first two warm up."""
    with peakline.open(DATA / name) as profile:
        result = envelope(profile, limit=2048)
        answer = json.loads(profile.tool("step_breakdown").content)["variation"]
    slow = {(one["device"], s["step_id"]): s for one in answer for s in one["slow"]}
    seen = {}
    for row in result["rows"]:
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
    assert sum(result["columns"]["slow"]) == sum(row["is_slow"] for row in result["rows"])
    for new, old in zip(result["variation"], answer, strict=True):
        first = [one for one in old["slow"] if one["is_first"]]
        assert (new["warm_up"], new["slow"]) == (len(first), len(old["slow"]) - len(first))
        assert new | {"slow": 0, "warm_up": 0} == old | {"slow": 0, "warm_up": 0}


@pytest.mark.parametrize("name", DATA_OF_STEPS)
def test_the_mean_step_is_of_the_whole_steps_of_the_main_name(name):
    with peakline.open(DATA / name) as profile:
        result = envelope(profile)
        steps = steps_of(profile, result["device"])
    most = next(one for one in result["variation"] if one["device"] == result["device"])
    whole = [step for step in steps if not step["is_cut_off"]] or steps
    own = [step for step in whole if step["name"].rstrip("0123456789 #;:_-") == most["name"]]
    assert result["mean"]["steps"] == len(own)
    for part, value in result["mean"]["parts"].items():
        assert value == pytest.approx(mean(step[f"{part}_ps"] for step in own))


def test_a_step_is_found_with_its_neighbours():
    with peakline.open(DATA / DATA_OF_STEPS[0]) as profile:
        steps = steps_of(profile, envelope(profile)["device"])
        for request in (str(steps[3]["step_id"]), steps[3]["name"]):
            result = envelope(profile, step=request)["step"]
            assert {name: result[name] for name in steps[3]} == steps[3]
            assert (result["place"], result["previous_id"], result["next_id"]) == (
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
    result = json.loads(content)
    assert (result["steps"], len(result["columns"]["first"]), len(result["rows"])) == (
        MANY,
        1000,
        100,
    )
    assert result["variation"][0]["slow"] == sum(result["columns"]["slow"]) == 20
    assert result["columns"]["is_warm_up"].count(True) == 1
    assert result["rows"][0]["says"].startswith("10.0 times the median: +")
    assert result["variation"][0]["median_ps"] == 10 * US
    inside = envelope(many, first=10_000, last=10_500, width=2048, limit=2048)
    assert len(inside["columns"]["first"]) == len(inside["rows"]) == 500


def test_names_are_in_natural_order(many):
    result = envelope(many, sort="name", limit=2048, width=0)
    assert [int(row["name"].split()[-1]) for row in result["rows"]] == list(range(2048))


def test_what_there_is_not_is_an_error(many):
    with pytest.raises(UsageError, match="no column 'x'"):
        envelope(many, sort="x")
    with pytest.raises(NotFoundError):
        envelope(many, device="gpu")


def test_without_steps_there_is_nothing(tmp_path):
    path = tmp_path / "g.pbtxt"
    path.write_text('node { name: "a" op: "NoOp" }\n')
    with peakline.open(path) as profile:
        result = envelope(profile)
    assert (result["steps"], result["rows"], result["columns"]["first"]) == (0, [], [])


SAMPLES = (
    "programs/leak_list.xplane.pb.gz",
    "programs/leak_list_healthy.xplane.pb.gz",
    "programs/time/slow_step.xplane.pb.gz",
    "memory_log/session_default_allocator.log.gz",
    "memory_log/tf1_control_flow.log.gz",
    "run_metadata/tf1_cnn_2.pb.gz",
    "chrome_trace/noleak.pt.trace.json.gz",
)


@pytest.fixture(scope="module", params=SAMPLES)
def profile(request, root):
    with peakline.open(root / "tests" / "data" / request.param) as opened:
        yield opened


def series(profile, **request):
    return json.loads(profile.tool("step_series", **request).content)["series"]


def rows_of(profile, table):
    return profile.table(table).to_pylist() if table in profile.tables else []


def steps_of_step_series(profile):
    """Begin, end, longest time and name of every step by its id, in order of time."""
    longest = {}
    for row in rows_of(profile, "step_breakdown"):
        if row["is_cut_off"]:
            continue
        known = longest.get(row["step_id"])
        if known is None or row["wall_ps"] > known["wall_ps"]:
            longest[row["step_id"]] = row
    if longest:
        return sorted(longest.values(), key=lambda row: row["start_ps"])
    return sorted(rows_of(profile, "steps"), key=lambda row: row["start_ps"])


def expected_memory(profile, allocator, edges):
    """Least, most and last value from each edge to the next, by walking the records; None where
    the allocator does not report what is in use.
    """
    used = [
        (row["time_ps"], row["in_use_bytes"] + (row["reserved_bytes"] or 0))
        for row in rows_of(profile, "allocator_events")
        if row["allocator"] == allocator and row["in_use_bytes"] is not None
    ]
    if not used:
        return None
    result = []
    for begin, until in pairwise(edges):
        before = [value for time, value in used if time < begin][-1:]
        within = before + [value for time, value in used if begin <= time < until]
        result.append((min(within), max(within), within[-1]) if within else (None, None, None))
    return result


@pytest.mark.parametrize("width", [800, 5, 1])
def test_bins_are_those_of_a_plain_loop(profile, width):
    answer, steps = series(profile, width=width), steps_of_step_series(profile)
    assert answer["steps"] == len(steps)
    assert len(answer["start_ps"]) <= width
    if steps:
        assert sum(answer["count"]) == len(steps)
        parts = [
            steps[at : at + many] for at, many in zip(answer["first"], answer["count"], strict=True)
        ]
        assert answer["start_ps"] == [part[0]["start_ps"] for part in parts]
        assert answer["name"] == [part[0]["name"] or str(part[0]["step_id"]) for part in parts]
        if "wall_ps" in steps[0]:
            assert answer["wall_low_ps"] == [min(row["wall_ps"] for row in part) for part in parts]
            assert answer["wall_high_ps"] == [max(row["wall_ps"] for row in part) for part in parts]
    edges = [*answer["start_ps"], answer["end_ps"]]
    assert edges == sorted(edges)
    for one in answer["allocators"]:
        result = list(zip(one["low"], one["high"], one["end"], strict=True))
        expected = expected_memory(profile, one["allocator"], edges)
        if expected is not None:
            assert result == expected, one["allocator"]
        assert max(high for _, high, _ in result if high is not None) == one["peak_bytes"]


def test_by_time_bins_are_even_parts_of_the_records(root):
    with peakline.open(root / "tests/data/programs/leak_list.xplane.pb.gz") as opened:
        answer = series(opened, by="time", width=50)
        times = [row["time_ps"] for row in rows_of(opened, "allocator_events")]
        assert (answer["steps"], answer["name"], answer["wall_high_ps"]) == (0, [], None)
        edges = [*answer["start_ps"], answer["end_ps"]]
        assert (edges[0], edges[-1]) == (min(times), max(times) + 1)
        assert {
            int((other - one) / (edges[1] - edges[0]) + 0.5) for one, other in pairwise(edges)
        } == {1}
        (one,) = answer["allocators"]
        result = list(zip(one["low"], one["high"], one["end"], strict=True))
        assert result == expected_memory(opened, one["allocator"], edges)


@each_row(("name", "leaks"), [("leak_list", True), ("leak_list_healthy", False)])
def test_a_leak_rises_from_step_to_step(root, name, leaks):
    with peakline.open(root / "tests" / "data" / "programs" / f"{name}.xplane.pb.gz") as opened:
        low = series(opened)["allocators"][0]["low"]
    rises = sum(one < other for one, other in pairwise(low))
    assert (rises > 0.7 * len(low)) == (low[-1] > 2 * low[0]) == leaks


def test_a_profile_of_neither_steps_nor_memory_has_no_series(root):
    with peakline.open(root / "tests" / "data" / "graph_def" / "frozen.pb") as opened:
        assert series(opened) is None


CNN = DATA / "sessions/tf2_cnn/plugins/profile/2026_11_20_16_57_05/vm.xplane.pb.gz"
MS = 10**9
S2026 = 1_795_000_000 * 10**9


def job(start_ns: int, waits_ms: int = 0, compute_ms: int = 4, first: int = 0) -> bytes:
    """A host of four steps of 10 ms, one each 20 ms, which ends each with a collective."""
    builder = SpaceBuilder()
    line = builder.host().line("python", timestamp_ns=start_ns)
    for step in range(4):
        at = step * 20 * MS
        line.event(f"train {step + first}", at, 10 * MS, {"_r": 1, "step_num": step + first})
        line.event("MatMul:MatMul", at, compute_ms * MS)
        line.event("CollectiveReduceV2:CollectiveReduceV2", at + compute_ms * MS, waits_ms * MS)
    return builder.space.SerializeToString()


@pytest.fixture
def two(tmp_path):
    """The clock of b is 3 ms ahead; a computes longer, and b waits for it."""
    files = {"a.xplane.pb": job(S2026, 1, 8), "b.xplane.pb": job(S2026 + 3 * 10**6, 5, 4)}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    return session_of(tmp_path / "log", {name: tmp_path / name for name in files})


def test_one_host_is_the_table():
    with peakline.open(CNN) as profile:
        table = profile.table("step_breakdown").to_pylist()
        result = json.loads(profile.tool("step_breakdown").content)
        rows = list(
            csv.DictReader(
                io.StringIO(profile.tool("step_breakdown", format="csv").content.decode())
            )
        )
    assert result["steps"] == table
    assert [int(row["wall_ps"]) for row in rows] == [row["wall_ps"] for row in table]
    assert result["variation"][0]["steps"] == len(table) == 16
    assert result["straggler"] is None


def test_the_parts_add_up():
    with peakline.open(CNN) as profile:
        for step in json.loads(profile.tool("step_breakdown").content)["steps"]:
            parts = [v for k, v in step.items() if k.endswith("_ps") and k not in _NO_PARTS]
            assert sum(parts) == step["wall_ps"]


_NO_PARTS = {"start_ps", "end_ps", "wall_ps", "gap_before_ps", "communication_total_ps"}


def test_several_hosts_are_on_one_axis(two):
    result = json.loads(Engine().tool(two, "step_breakdown").content)
    starts = {host: [s["start_ps"] for s in result["steps"] if s["host"] == host] for host in "ab"}
    # The collectives end together, 9 ms into the steps of both.
    assert starts["a"] == starts["b"]
    assert result["clocks"]["hosts"][1]["skew_ps"] == 3 * MS
    assert result["clocks"]["zero_ns"] == S2026
    apart = Engine().tool(two, "step_breakdown", parameters={"align": "false"})
    assert {s["start_ps"] for s in json.loads(apart.content)["steps"] if s["step_id"] == 0} == {0}


def test_who_keeps_the_others_waiting(two):
    result = json.loads(Engine().tool(two, "step_breakdown").content)
    straggler = result["straggler"]
    assert (straggler["title"], straggler["excess_ps"]) == ("a", 4 * MS)
    assert result["straggler_text"].startswith("a keeps 1 other rank waiting: ")
    assert [result["host"] for result in result["variation"]] == ["a", "b"]


def test_a_host_whose_clock_is_late_keeps_nobody_waiting(tmp_path):
    files = {"a.xplane.pb": job(S2026), "b.xplane.pb": job(S2026 + 10**6)}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    session = session_of(tmp_path / "log", {name: tmp_path / name for name in files})
    assert json.loads(Engine().tool(session, "step_breakdown").content)["straggler"] is None


def test_csv_of_several_has_the_host(two):
    content = Engine().tool(two, "step_breakdown", format="csv").content.decode()
    rows = list(csv.DictReader(io.StringIO(content)))
    assert [row["host"] for row in rows] == ["a"] * 4 + ["b"] * 4


def test_formats_share_what_the_hosts_gave(two):
    engine = Engine()
    engine.tool(two, "step_breakdown")
    misses = engine.cache.stats()
    engine.tool(two, "step_breakdown", format="csv")
    assert engine.cache.stats() == misses


@pytest.mark.parametrize("limit", [0, 3])
def test_the_first_rows_come_with_the_figures_of_all(two, limit):
    whole = json.loads(Engine().tool(two, "step_breakdown").content)
    some = json.loads(Engine().tool(two, "step_breakdown", parameters={"limit": limit}).content)
    assert some.pop("steps") == whole.pop("steps")[:limit]
    assert some == whole


def test_without_steps_there_are_no_rows(tmp_path):
    path = tmp_path / "g.pbtxt"
    path.write_text('node { name: "a" op: "NoOp" }\n')
    with peakline.open(path) as profile:
        result = json.loads(profile.tool("step_breakdown").content)
        assert result == {
            "number_of_steps": 0, "steps": [], "variation": [], "straggler": None,
        }  # fmt: skip


def heat(profile, **parameters):
    return json.loads(profile.tool("step_heat", **parameters).content)


def windows_of(profile, device):
    rows = [row for row in profile.table("step_breakdown").to_pylist() if row["device"] == device]
    return sorted(rows, key=lambda row: row["start_ps"])


@pytest.mark.parametrize("name", DATA_OF_STEPS)
def test_parts_are_those_of_the_breakdown(name):
    with peakline.open(DATA / name) as profile:
        result = heat(profile, by="part", width=2048)
        steps = windows_of(profile, result["device"])
    assert result["steps"] == len(steps) == len(result["columns"]["first"])
    named = {str(step["step_id"]): step["name"] for step in steps}
    assert result["names"].items() <= named.items()
    assert {str(step) for row in result["rows"] for step in row["step_id"]} == set(result["names"])
    for row in result["rows"]:
        assert row["most_ps"] == [step[f"{row['name']}_ps"] for step in steps]
        assert row["mean_ps"] == row["most_ps"]
        assert row["total_ps"] == sum(row["most_ps"])


@pytest.mark.parametrize("name", DATA_OF_STEPS)
def test_ops_are_a_plain_group_by(name):
    with peakline.open(DATA / name) as profile:
        events = Events(profile)
        result = heat(profile, width=2048, limit=100)
        steps = windows_of(profile, result["device"])
        single = {row["name"]: events.lines_of(row["name"]) for row in result["rows"]}
        plain = defaultdict(list)
        for line in {next(iter(own)) for own in single.values() if len(own) == 1}:
            for step in steps:
                plain[line].append(events.self_times(line, step["start_ps"], step["end_ps"]))
    for row in result["rows"]:
        if len(single[row["name"]]) == 1:
            (line,) = single[row["name"]]
            assert row["most_ps"] == [times[row["name"]] for times in plain[line]]


@pytest.mark.parametrize("name", DATA_OF_STEPS)
def test_a_cell_is_the_self_time_that_a_comparison_names(name):
    with peakline.open(DATA / name) as profile:
        result = heat(profile, width=2048, limit=100)
        cells = {row["name"]: row["most_ps"] for row in result["rows"]}
        for place, step in enumerate(windows_of(profile, result["device"])[:3]):
            answer = profile.tool(
                "step_difference", step=str(step["step_id"]), device=result["device"], limit=500
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


def test_no_step_is_slow_where_most_took_no_time(tmp_path):
    builder = SpaceBuilder()
    line = builder.host().line("python")
    for step, length in enumerate((0, 0, 0, 0, 0, 9 * US)):
        line.event("train", step * 20 * US, length, {"_r": 1, "step_num": step})
    path = tmp_path / "still.xplane.pb"
    path.write_bytes(builder.space.SerializeToString())
    with peakline.open(path) as profile:
        assert [row["is_slow"] for row in envelope(profile, limit=9)["rows"]] == [False] * 6


@pytest.fixture(scope="module")
def many_of_step_heat(tmp_path_factory):
    """20,000 steps of ten ops in turn, one of which is long once."""
    builder = SpaceBuilder()
    line = builder.host().line("python")
    for step in range(MANY):
        at = step * 20 * US
        line.event("train", at, 20 * US, {"_r": 1, "step_num": step})
        line.event(f"op{step % 10}:MatMul", at, 5 * US)
        line.event("once:Relu" if step == 7_777 else "often:Relu", at + 6 * US, 9 * US)
    path = tmp_path_factory.mktemp("many") / "many.xplane.pb"
    path.write_bytes(builder.space.SerializeToString())
    with peakline.open(path) as profile:
        yield profile


def test_many_steps_make_a_small_answer(many_of_step_heat):
    answer = many_of_step_heat.tool("step_heat", width=400, limit=40)
    assert len(answer.content) < 1_500_000
    result = json.loads(answer.content)
    assert result["steps"] == MANY
    assert {len(row["most_ps"]) for row in result["rows"]} == {400}
    often, once = (
        next(r for r in result["rows"] if r["name"] == f"{name}:Relu") for name in ("often", "once")
    )
    assert often["total_ps"] == (MANY - 1) * 9 * US
    column = next(k for k, last in enumerate(result["columns"]["last"]) if last > 7_777)
    assert (once["most_ps"][column], once["step_id"][column]) == (9 * US, 7_777)
    assert sum(once["most_ps"]) == 9 * US


def test_a_part_of_the_steps_is_finer(many_of_step_heat):
    result = heat(many_of_step_heat, first=7_700, last=7_800, width=400, sort="variance")
    assert result["columns"]["first"] == list(range(7_700, 7_800))
    once = next(row for row in result["rows"] if row["name"] == "once:Relu")
    assert once["most_ps"][77] == once["total_ps"] == 9 * US


def test_one_of_many_steps_is_explained(many_of_step_heat):
    result = json.loads(many_of_step_heat.tool("step_difference", step="train 7777").content)
    assert result["difference_ps"] == 0
    assert {op["name"] for op in result["ops"]} >= {"once:Relu", "often:Relu"}


def test_without_steps_there_are_no_rows_of_step_heat(tmp_path):
    path = tmp_path / "g.pbtxt"
    path.write_text('node { name: "a" op: "NoOp" }\n')
    with peakline.open(path) as profile:
        assert heat(profile)["rows"] == []


def test_one_session_has_one_number_of_steps(tmp_path):
    """A core of a TPU ran more programs than the other: a step of all is the k-th run of each."""
    space = SpaceBuilder()
    for core, runs in enumerate((6, 4)):
        line = space.plane(f"/device:TPU:{core}").line("XLA Modules")
        for run in range(runs):
            line.event("jit_f(7)", (100 + 50 * run) * US, 40 * US)
    path = tmp_path / "tpu.xplane.pb"
    path.write_bytes(space.space.SerializeToString())
    with peakline.open(path) as profile:
        counts = {
            "steps": profile.time().as_json()["number_of_steps"],
            "envelope": envelope(profile)["number_of_steps"],
            "breakdown": json.loads(profile.tool("step_breakdown").content)["number_of_steps"],
            "table": len({row["step_id"] for row in profile.table("step_breakdown").to_pylist()}),
        }
    assert counts == dict.fromkeys(counts, 6)
