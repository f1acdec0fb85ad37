"""The recordings hold what the programs said of themselves, to the byte.

Only plain SQL over the tables is used here, so that what the analyses are tested against does not
come from the analyses. Bytes are those asked for: what the allocator hands out beyond them depends
on what was free.
"""

import functools
import gzip
import itertools
import re

from tests.each_row import each_row
from tests.programs.known import DATA, FAULTY, HEALTHY, RECORDINGS, TRUTH, fault, opened

import peakline
from peakline.schema import XSpace

MARKED = [name for name in RECORDINGS if TRUTH[name]["marked"]]
UNMARKED = [name for name in RECORDINGS if not TRUTH[name]["marked"]]
WITH_OP = [name for name in RECORDINGS if "twin" in TRUTH[name] and "op" in fault(name)]
# What else is in memory at the end of a step changes with the length of the batch.
NOISY = ("leak_slow", "leak_slow_healthy", "busy_pipeline")
JAX = [name for name in TRUTH if "moments" in TRUTH[name]]
# Bytes in the table `live` are of buffers that live when the step ends.
LIVE = """
    with live as (
        select s.step_id, s.name as step, b.op, b.shape, b.requested_bytes as bytes
        from steps s join buffers b
        on coalesce(b.start_ps, -1) <= s.end_ps and (b.end_ps is null or b.end_ps > s.end_ps)
        where s.name like 'train %'
    )
"""


def rows(name: str, query: str) -> list[tuple]:
    return [tuple(row.values()) for row in opened(name).sql(query).to_pylist()]


def is_fault(name: str) -> str:
    """The SQL condition that a buffer is one that the fault, or its healthy twin, makes."""
    known = fault(name)
    same_shape = f" and shape = '{known['shape']}'" if known["shape"] else ""
    return f"op = '{known['op']}'" + same_shape


@functools.cache
def live_at_ends(name: str, condition: str) -> list[int]:
    """Per marked step, in order, the bytes that live at its end and meet ``condition``."""
    size = f"coalesce(sum(bytes) filter ({condition}), 0)::bigint"
    query = f"{LIVE} select step_id, {size} from live group by 1 order by 1"  # noqa: S608 (our own names)
    return [size for _, size in rows(name, query)]


def peak(name: str) -> int:
    ((size,),) = rows(name, "select max(in_use_bytes + reserved_bytes) from allocator_events")
    return size


def test_every_file_is_in_the_truth_and_small():
    named = {TRUTH[name]["file"] for name in RECORDINGS}
    named |= {moment["file"] for name in JAX for moment in TRUTH[name]["moments"]}
    files = [file for file in DATA.iterdir() if file.suffix == ".gz"]
    assert {file.name for file in files} == named
    assert all(file.stat().st_size < 200_000 for file in files)
    readme = (DATA / "README.md").read_text()
    assert [name for name in TRUTH if f"`{name}`" not in readme] == []


def test_every_fault_has_a_healthy_twin():
    assert {TRUTH[name]["twin"] for name in FAULTY} == {*HEALTHY} - {"busy_pipeline"}


@each_row("name", RECORDINGS)
def test_no_name_of_the_machine(name):
    content = gzip.decompress((DATA / TRUTH[name]["file"]).read_bytes())
    assert XSpace.FromString(content).hostnames == ["host"]
    assert not re.search(rb"/(?:root|home|tmp|usr|var|mnt|work|opt|src)/", content)


@each_row("name", JAX)
def test_no_path_of_the_machine(name):
    for moment in TRUTH[name]["moments"]:
        content = gzip.decompress((DATA / moment["file"]).read_bytes())
        files = peakline.open(DATA / moment["file"]).sql("select distinct file from stacks")
        assert {file["file"].split("/")[1] for file in files.to_pylist()} == {"opt", "src"}
        assert not re.search(rb"/(?:root|home|tmp|usr|var|mnt|work)/", content)


@each_row("name", RECORDINGS)
def test_reads_without_a_warning(name):
    assert opened(name).warnings == []
    ((allocators, unnamed),) = rows(
        name,
        "select list(distinct allocator), count(*) filter (address is null) from allocator_events",
    )
    assert (allocators, unnamed) == ([TRUTH[name]["allocator"]], 0)


@each_row("name", MARKED)
def test_the_steps_are_those_of_the_program(name):
    first, count = TRUTH[name]["first_step_number"], TRUTH[name]["steps"]
    marked = rows(name, "select name from steps where name like 'train %' order by step_id")
    assert marked == [(f"train {first + number}",) for number in range(count)]


@each_row("name", UNMARKED)
def test_the_steps_without_marks(name):
    ((count,),) = rows(name, "select count(*) from steps")
    assert count == TRUTH[name]["steps"] * TRUTH[name].get("runs_per_step", 0)


@each_row("name", [name for name in WITH_OP if name in MARKED])
def test_bytes_at_every_step_s_end_are_those_that_the_program_held(name):
    assert live_at_ends(name, is_fault(name)) == TRUTH[name]["held_bytes"]


@each_row("name", [name for name in WITH_OP if name in UNMARKED])
def test_bytes_at_the_end_are_those_that_the_program_held(name):
    condition = is_fault(name)
    query = f"select requested_bytes from buffers where end_ps is null and {condition}"  # noqa: S608 (our own names)
    size = sum(size for (size,) in rows(name, query))
    assert size == TRUTH[name]["held_bytes"][-1]


@each_row("name", [name for name in MARKED if name not in NOISY])
def test_nothing_else_changes_from_step_to_step(name):
    everything = live_at_ends(name, "true")
    rest = [size - held for size, held in zip(everything, TRUTH[name]["held_bytes"], strict=True)]
    # A function that is traced anew inside the profile leaves a few constants.
    assert max(rest) - min(rest) < 1024


def test_the_slow_leak_is_small_against_the_noise():
    everything = live_at_ends("leak_slow", "true")
    held = TRUTH["leak_slow"]["held_bytes"]
    noise = [size - chosen for size, chosen in zip(everything, held, strict=True)]
    assert max(noise) - min(noise) > 50 * fault("leak_slow")["bytes_per_step"]
    assert max(noise) - min(noise) > held[-1]


@each_row("name", [name for name in FAULTY if fault(name)["kind"] == "leak"])
def test_the_account_of_a_leak(name):
    known, held = fault(name), TRUTH[name]["held_bytes"]
    growth = [after - before for before, after in itertools.pairwise(held)]
    begins, every = known["first_step"], known["every"]
    grown = [place for place, size in enumerate(growth, 1) if size]
    assert grown == [place for place in range(begins or every, len(held)) if place % every == 0]
    assert set(growth) - {0} == {known["bytes_per_step"] * every}
    assert len({*TRUTH[TRUTH[name]["twin"]]["held_bytes"]}) == 1


def test_the_account_of_the_sawtooth():
    known, held = fault("buffer_flushed"), TRUTH["buffer_flushed"]["held_bytes"]
    period, one = known["period_steps"], known["bytes_per_step"]
    assert held == [one * (place % period + 1) for place in range(len(held))]
    assert (known["low_bytes"], known["high_bytes"]) == (min(held), max(held))
    assert held[0] < held[-1] < max(held)


def test_the_account_of_the_cache():
    known, held = fault("cache_fill"), TRUTH["cache_fill"]["held_bytes"]
    growth = [after - before for before, after in itertools.pairwise([0, *held])]
    assert [place for place, size in enumerate(growth) if size] == known["growth_steps"]
    assert set(growth) == {0, known["entry_bytes"]}
    assert held[-1] == known["total_bytes"] == known["entries"] * known["entry_bytes"]
    assert len(held) - known["growth_steps"][-1] > 10


def test_the_account_of_the_late_slot():
    known, held = fault("late_slot"), TRUTH["late_slot"]["held_bytes"]
    before = known["step"]
    assert held == [0] * before + [known["total_bytes"]] * (len(held) - before)
    made = f"select requested_bytes, start_step from buffers where {is_fault('late_slot')}"  # noqa: S608 (our own names)
    assert rows("late_slot", made) == [(known["buffer_bytes"], before)] * known["buffers"]


@each_row("name", ["huge_temporary", "huge_temporary_once"])
def test_the_huge_temporary_sets_the_peak(name):
    known = fault(name)
    columns = "start_step, end_step, requested_bytes"
    query = f"select {columns} from buffers where {is_fault(name)} order by 1"  # noqa: S608 (our own names)
    assert rows(name, query) == [(step, step, known["bytes"]) for step in known["steps"]]
    twin = TRUTH[name]["twin"]
    assert peak(name) > known["bytes"] + 0.4 * peak(twin)
    ((largest,),) = rows(twin, "select max(requested_bytes) from buffers")
    assert known["bytes"] > 8 * largest


def test_the_pins_of_fragmentation():
    between = """
        select address - lag(address + allocated_bytes) over (order by address) as gap
        from buffers where {} and end_ps is null
    """
    gaps = {
        name: [gap for (gap,) in rows(name, between.format(is_fault(name))) if gap is not None]
        for name in ("fragmentation", "fragmentation_healthy")
    }
    known = fault("fragmentation")
    assert gaps["fragmentation"] == [known["hole_bytes"]] * (known["holes"] - 1)
    assert gaps["fragmentation_healthy"] == [0] * (known["pins"] - 1)


def test_the_allocator_s_own_figure_of_fragmentation():
    at_peak = {
        name: rows(
            name,
            "select arg_max(fragmentation, in_use_bytes), any_value(in_use_bytes + free_bytes)"
            " from allocator_events",
        )[0]
        for name in ("fragmentation", "fragmentation_healthy")
    }
    assert at_peak["fragmentation"][0] > 0.6
    assert at_peak["fragmentation_healthy"][0] < 0.25
    assert {limit for _, limit in at_peak.values()} == {TRUTH["fragmentation"]["limit_bytes"]}


def test_the_doubled_batch():
    known = fault("doubled_batch")

    def sizes(name: str) -> dict[str, int]:
        return dict(
            rows(
                name, "select shape, max(requested_bytes) from buffers where shape <> '' group by 1"
            )
        )

    after, before = sizes("doubled_batch"), sizes("doubled_batch_healthy")
    for pair in known["scaled"]:
        assert after[pair["shape"]] == pair["bytes"] == 2 * before[pair["shape_before"]]
        assert before[pair["shape_before"]] == pair["bytes_before"]
    for same in known["unchanged"]:
        assert after[same["shape"]] == before[same["shape"]] == same["bytes"]
    assert peak("doubled_batch") > 1.15 * peak("doubled_batch_healthy")


@each_row("name", JAX)
def test_the_heap_of_jax(name):
    for moment in TRUTH[name]["moments"]:
        heap = peakline.open(DATA / moment["file"])
        (result,) = heap.sql("""
            select sum(allocated_bytes)::bigint as live_bytes,
                sum(allocated_bytes) filter (op like 'keep jax_list.py:%')::bigint as held_bytes
            from buffers
        """).to_pylist()
        assert result == {key: moment[key] for key in result}


def test_the_heap_of_jax_grows_by_the_leak_alone():
    first, *_, last = TRUTH["jax_list"]["moments"]
    (known,) = TRUTH["jax_list"]["faults"]
    steps = last["steps"] - first["steps"]
    assert last["live_bytes"] - first["live_bytes"] == steps * known["bytes_per_step"]
    assert len({moment["live_bytes"] for moment in TRUTH["jax_list_healthy"]["moments"]}) == 1
