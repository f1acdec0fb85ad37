"""Heaps of compiled programs: the verb programs and the memory viewer say the same of each."""

import json
from pathlib import Path
from random import Random

import pytest
from tests.sweeps import sweep
from tests.timing.programs import Maker, f32

import peakline
from peakline.hlo.memory import memory_of
from peakline.tools import run_tool

DATA = Path(__file__).parents[1] / "data"
DUMPS = sorted((DATA / "hlo").glob("*.hlo.pb"))
SPACES = [path for path in sorted(DATA.rglob("*.xplane.pb*")) if "jax" in str(path)]
ALLOC, FREE, SHARE = range(3)
KINDS = (
    {}, {}, {"is_entry_computation_parameter": True}, {"is_constant": True},
    {"maybe_live_out": True}, {"is_thread_local": True},
)  # fmt: skip


def said(profile, number, space):
    """The memory of a program; the peak and the sizes of what is live then by the viewer."""
    result = memory_of(profile, number, space)
    parameters = {"module_name": profile.programs().label(number), "memory_space": str(space)}
    shown = json.loads(run_tool(profile, "memory_viewer", parameters).content)
    sizes = [round(one["logicalBufferSizeMib"] * 2**20) for one in shown.get("maxHeap", ())]
    return result, round(shown.get("peakHeapMib", 0) * 2**20), sorted(sizes, reverse=True)


@pytest.mark.parametrize("path", sweep([*DUMPS, *SPACES]))
def test_the_peak_is_the_same_on_every_sample(path):
    with peakline.open(path) as profile:
        for number in range(len(profile.programs() or ())):
            for space in (0, 1, 5):
                result, peak, _ = said(profile, number, space)
                if result.is_assigned:
                    assert peak == result.peak_bytes, (number, space)


def random_program(seed, *, is_sound):
    """Values in allocations of every kind and two memory spaces, and heaps of some of them."""
    pick, made = Random(seed), Maker(f"jit_{seed}")
    main = made.computation("main")
    assigned = made.proto.buffer_assignment
    for index in range(pick.randint(1, 6)):
        flags = pick.choice(KINDS)
        allocation = assigned.buffer_allocations.add(
            index=index if is_sound or pick.random() < 0.9 else 0, color=pick.choice((0, 0, 1))
        )
        for name, value in flags.items():
            setattr(allocation, name, value)
        numbers, offset = [], 0
        for _ in range(pick.randint(1, 8)):
            size = 4 * pick.randint(4096, 1 << 18)
            one = made.add(main, "parameter", f32(size // 4))
            number = one.id if is_sound or pick.random() < 0.9 else pick.randint(0, 20)
            value = assigned.logical_buffers.add(id=number, size=size, color=allocation.color)
            value.defined_at.instruction_id = one.id
            allocation.assigned.add(logical_buffer_id=number, offset=offset, size=size)
            numbers.append(number)
            offset += size
        allocation.size = offset
        if not flags and pick.random() < 0.8:
            trace = assigned.heap_simulator_traces.add(buffer_allocation_index=index)
            events(trace, numbers, pick, is_sound=is_sound)
    return made.data


def events(trace, numbers, pick, *, is_sound):
    """Each value comes, or shares with one that is there, and goes; else anything."""
    if not is_sound:
        for _ in range(pick.randint(0, 30)):
            other = pick.choice([*numbers, 999])
            kind = pick.choice((ALLOC, FREE, SHARE, 7))
            trace.events.add(kind=kind, buffer_id=pick.choice([*numbers, 999]),
                             share_with_canonical_id=other)  # fmt: skip
        return
    waiting, live = list(numbers), []
    while waiting or live:
        if waiting and (not live or pick.random() < 0.6):
            number, kind = waiting.pop(), ALLOC
            if live and pick.random() < 0.4:
                trace.events.add(
                    kind=SHARE, buffer_id=number, share_with_canonical_id=pick.choice(live)
                )
            else:
                trace.events.add(kind=kind, buffer_id=number)
            live.append(number)
        else:
            trace.events.add(kind=FREE, buffer_id=live.pop(pick.randrange(len(live))))


def written(folder, data):
    path = folder / "module_0001.jit_f.cpu_after_optimizations.hlo.pb"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("seed", sweep(range(40), range(8).__contains__))
def test_the_peak_and_what_is_live_are_the_same_on_random_programs(tmp_path, seed):
    with peakline.open(written(tmp_path, random_program(seed, is_sound=True))) as profile:
        for space in (0, 1):
            result, peak, sizes = said(profile, 0, space)
            assert peak == result.peak_bytes == int(result.live_set.bytes.sum())
            # No value is so small that it is shown with others.
            assert sizes == result.live_set.bytes.tolist()
            assert not any(warning.kind == "hlo_heap" for warning in profile.warnings)


@pytest.mark.parametrize("seed", sweep(range(40), range(8).__contains__))
def test_the_peak_is_the_same_on_damaged_programs(tmp_path, seed):
    with peakline.open(written(tmp_path, random_program(seed, is_sound=False))) as profile:
        for space in (0, 1):
            result, peak, _ = said(profile, 0, space)
            assert peak == result.peak_bytes


def brute_force(kinds, values, shared, sizes):
    """What is live after each event: the sizes of the pieces that some value uses."""
    holders, live = {}, []
    for kind, value, other in zip(kinds, values, shared, strict=True):
        if kind == FREE:
            del holders[value]
        else:
            holders[value] = value if kind == ALLOC else holders[other]
        live.append(sum(sizes[one] for one in set(holders.values())))
    return live


@pytest.mark.parametrize("seed", sweep(range(20), range(4).__contains__))
def test_the_curve_is_the_sum_of_what_is_in_use(tmp_path, seed):
    with peakline.open(written(tmp_path, random_program(seed, is_sound=True))) as profile:
        for space in (0, 1):
            for heap in memory_of(profile, 0, space).heaps:
                columns = heap.kind.tolist(), heap.value.tolist(), heap.shared.tolist()
                assert heap.curve.tolist() == brute_force(*columns, heap.size.tolist())
