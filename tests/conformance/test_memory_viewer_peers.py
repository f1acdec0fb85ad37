"""Programs' memory against XProf itself and XLA's heap."""

import json
import os
import random
import subprocess

import pytest

import peakline
from peakline.errors import PeaklineError
from peakline.hlo.memory import ProgramMemory
from peakline.hlo.packing import packed_heaps, repack
from peakline.schema import HloProto
from peakline.tools import run_tool
from tests.conformance.oracle import OWN_SAMPLES, SEEDS, more_samples
from tests.conformance.peer import PROGRAMS, Crashed, Refused, peers_python
from tests.reference.odd_assignments import ALLOC, FREE, SHARE, odd_program, with_heap
from tests.reference.xspace_builder import SpaceBuilder

TOOL = "memory_viewer"
SPACES = ("0", "1", "2", "5", "6", "", "x")
RECORDED = ("jax_cpu", "jax_captured")
"""Samples whose answers are recorded: those of the others are megabytes."""
DRAWING = {"view_memory_allocation_timeline": 1, "timeline_noise": 1}


def labels(path):
    with peakline.open(str(path)) as profile:
        result = profile.programs()
        return [result.label(number) for number in range(len(result))] if result else []


def ours(path, options, output_format="json"):
    given = {name: str(value) for name, value in options.items()}
    with peakline.open(str(path)) as profile:
        given["compatible"] = "xprof"
        return run_tool(profile, TOOL, given, output_format).content.decode()


def theirs(xprof, path, options):
    try:
        return xprof.ask(TOOL, path, options=options).decode()
    except (Refused, Crashed):
        return None


def different(xprof, path, options):
    """What of our answer is not XProf's; nothing where both have none."""
    other = theirs(xprof, path, options)
    try:
        own = ours(path, options)
    except PeaklineError:
        return [] if other is None else ["ours fails"]
    if other is None:
        return ["XProf fails"]
    one, two = json.loads(own), json.loads(other)
    return [name for name in one.keys() | two.keys() if one.get(name) != two.get(name)]


def drawing(page):
    """The graph in XProf's page; empty in that which has none."""
    before, _, after = page.partition("const data = `")
    return after.partition("`;\n")[0] if before != page else ""


def drawn_alike(xprof, path, options):
    page = theirs(xprof, path, {**options, **DRAWING})
    return drawing(page) == ours(path, {**options, **DRAWING}, "dot")


def test_every_program_of_the_samples(xprof):
    result, seen = {}, 0
    for path in xprof.spaces:
        if xprof.is_recorded and not any(name in path.parts for name in RECORDED):
            continue
        for label in labels(path):
            for space in SPACES if seen < len(SPACES) else SPACES[:1]:
                options = {"module_name": label, "memory_space": space}
                wrong = different(xprof, path, options)
                if wrong:
                    result[path.name, label, space] = wrong
                seen += 1
    assert result == {}
    assert seen > 30


@pytest.mark.conformance
def test_the_drawing_of_every_program(live_xprof):
    drawn = 0
    for path in live_xprof.spaces:
        for label in labels(path):
            assert drawn_alike(live_xprof, path, {"module_name": label}), label
            drawn += ours(path, {"module_name": label}, "dot") != ""
    assert drawn > 5


@pytest.mark.conformance
def test_programs_are_found_by_a_part_of_their_name(live_xprof):
    path = next(path for path in live_xprof.spaces if "jax_cpu" in path.parts)
    for options in ({"program_id": "28"}, {"program_id": "train"}, {"module_name": "jit_stage"},
                    {"module_name": "train_step"}, {"program_id": "99"}, {}):  # fmt: skip
        assert different(live_xprof, path, options) == [], options


@pytest.mark.conformance
def test_programs_that_jax_compiles(live_xprof, tmp_path):
    path = tmp_path / "placed.xplane.pb"
    done = subprocess.run(
        [peers_python(), str(PROGRAMS / "placed_jax.py"), str(path)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    names = labels(path)
    assert len(names) > 40
    curves = 0
    for label in names:
        options = {"module_name": label}
        assert different(live_xprof, path, options) == [], label
        if "heapSizes" in json.loads(ours(path, options)):
            curves += 1
            assert drawn_alike(live_xprof, path, options), label
    assert curves > 8


def written(path, programs):
    """A profile that holds programs, which are numbered from 1."""
    space = SpaceBuilder()
    metadata = space.plane("/host:metadata")
    for number, program in enumerate(programs, 1):
        name = f"{program.hlo_module.name}({number})"
        kind = metadata.message.event_metadata[number]
        kind.id, kind.name = number, name
        metadata.add_stats(kind, {"Hlo Proto": program.SerializeToString()})
    path.write_bytes(space.space.SerializeToString())
    return [f"{program.hlo_module.name}({number})" for number, program in enumerate(programs, 1)]


@pytest.mark.conformance
@pytest.mark.parametrize("damage", [False, True], ids=["sound", "damaged"])
def test_made_up_assignments(live_xprof, tmp_path, damage):
    path = tmp_path / "odd.xplane.pb"
    answered = failed = 0
    names = written(path, [odd_program(seed, damage=damage) for seed in range(2 * SEEDS)])
    for label in names:
        for space in ("0", "1"):
            options = {"module_name": label, "memory_space": space}
            assert different(live_xprof, path, options) == [], (label, space)
            try:
                drawn = ours(path, {**options, **DRAWING}, "dot")
            except PeaklineError:
                failed += 1
                continue
            answered += 1
            if drawn and answered % 4 == 0:
                assert drawn_alike(live_xprof, path, options), (label, space)
    assert answered > SEEDS
    assert failed > 0 or not damage


HEAPS = {
    "plain": [(ALLOC, 1), (ALLOC, 2), (FREE, 1), (ALLOC, 3), (FREE, 2), (FREE, 3)],
    "shared": [(ALLOC, 1), (SHARE, 2, 1), (FREE, 1), (ALLOC, 3), (FREE, 2), (FREE, 3)],
    "revived": [(ALLOC, 1), (FREE, 1), (SHARE, 2, 1), (ALLOC, 3), (FREE, 2), (FREE, 3)],
    "chain": [(ALLOC, 1), (SHARE, 2, 1), (SHARE, 3, 2), (FREE, 1), (FREE, 3), (FREE, 2)],
    "revived twice": [(ALLOC, 1), (FREE, 1), (SHARE, 2, 1), (FREE, 2), (SHARE, 3, 2), (FREE, 3)],
    "never freed": [(ALLOC, 1), (ALLOC, 2), (SHARE, 3, 2)],
    "freed twice": [(ALLOC, 1), (FREE, 1), (FREE, 1)],
    "placed twice": [(ALLOC, 1), (ALLOC, 1), (FREE, 1)],
    "unknown": [(ALLOC, 9), (ALLOC, 1), (FREE, 9), (SHARE, 2, 9)],
    "only unknown": [(ALLOC, 9)],
    "no such kind": [(ALLOC, 1), (5, 2)],
    "shared again": [(ALLOC, 1), (ALLOC, 2), (SHARE, 3, 1), (SHARE, 3, 2), (FREE, 3), (FREE, 3)],
}


@pytest.mark.conformance
def test_heaps(live_xprof, tmp_path):
    path = tmp_path / "heaps.xplane.pb"
    names = written(
        path, [with_heap(events, [70_000, 30_000, 20_000]) for events in HEAPS.values()]
    )
    for label, name in zip(names, HEAPS, strict=True):
        assert different(live_xprof, path, {"module_name": label}) == [], name
        if theirs(live_xprof, path, {"module_name": label}):
            assert drawn_alike(live_xprof, path, {"module_name": label}), name


@pytest.mark.conformance
def test_fast_memory_of_single_instructions(live_xprof, tmp_path):
    path = tmp_path / "scoped.xplane.pb"
    key = "used_scoped_memory_configs"
    configs = [
        {key: [{"memory_space": "1", "offset": "0", "size": "4096"}]},
        {key: [{"memory_space": 1, "size": 8192}, {"memory_space": 2, "size": 10**6}]},
        {key: [{"memory_space": 1, "size": "8192"}, 7, {"memory_space": "x"}]},
        {key: {"memory_space": 1, "size": 10**6}},
        {key: [{"memory_space": 1, "size": "1e9"}, {"memory_space": 1, "size": 2.5}]},
        [1],
    ]
    programs = []
    for config in configs:
        program = HloProto()
        program.CopyFrom(with_heap([(ALLOC, 1)], [64, 64]))
        program.hlo_module.computations[0].instructions[1].backend_config = json.dumps(
            config
        ).encode()
        programs.append(program)
    programs.append(with_heap([(ALLOC, 1)], [64, 64]))
    made = programs[-1].hlo_module
    made.payloads.append(json.dumps(configs[0]).encode())
    made.computations[0].instructions[0].backend_config_payload.id = 0
    for label in written(path, programs):
        for space in ("0", "1"):
            options = {"module_name": label, "memory_space": space}
            assert different(live_xprof, path, options) == [], label


def killer(count):
    """Sizes that make the median of three a bad pivot every time (Musser, 1997)."""
    half = count // 2
    first = [half + at if at % 2 else at + 1 for at in range(half)]
    return [20_000 + 8 * (count - one) for one in [*first, *range(2, 2 * half + 1, 2)]]


@pytest.mark.conformance
def test_the_order_of_equal_sizes(live_xprof, tmp_path):
    chance = random.Random(7)
    several = [
        [chance.choice(range(20_000, 20_000 + 8 * kinds, 8)) for _ in range(count)]
        for count in (2, 16, 17, 18, 33, 100, 700)
        for kinds in (1, 2, 5, 300)
    ]
    several += [killer(count) for count in (64, 200, 1000)]
    several += [sorted(several[-5]), sorted(several[-5], reverse=True)]
    programs = [
        with_heap([(ALLOC, number) for number in range(1, len(sizes) + 1)], sizes)
        for sizes in several
    ]
    path = tmp_path / "sizes.xplane.pb"
    for label in written(path, programs):
        assert different(live_xprof, path, {"module_name": label}) == [], label


AFTER = "cpu_after_optimizations.hlo.pb"


def compile_programs(program, folder):
    """XLA's dump of the functions of a peers' program by name, and what JAX says of each."""
    done = subprocess.run(
        [peers_python(), str(PROGRAMS / program), str(folder)],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": ""},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    dumps = {
        path.name.split(".")[1].removeprefix("jit_"): path for path in folder.glob(f"*.{AFTER}")
    }
    return dumps, json.loads((folder / "memory.json").read_text())


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return compile_programs("dump_jax.py", tmp_path_factory.mktemp("dumps"))


@pytest.mark.conformance
def test_every_value_lies_where_xla_put_it(compiled):
    dumps, sizes = compiled
    orders = set()
    # pmap names its program itself.
    names = [*sizes, "_fun"]
    assert len(names) == 17
    for name in names:
        with peakline.open(dumps[name]) as profile:
            heaps = packed_heaps(ProgramMemory(profile.programs(), 0))
        assert heaps, name
        for heap in heaps:
            assert heap.is_same, name
            assert heap.alignment == 64, name
            assert heap.packed.heap_bytes == heap.heap.heap_bytes, name
            orders.add(heap.packed.order)
    assert orders == {"spatial", "temporal"}


@pytest.mark.conformance
def test_a_program_with_many_temporaries_loses_some(compiled):
    with peakline.open(compiled[0]["many"]) as profile:
        memory = ProgramMemory(profile.programs(), 0)
        (heap,) = packed_heaps(memory)
        result = repack(memory)
    assert heap.values.size > 1000
    assert result.is_same
    assert result.loss_bytes > 0
    assert result.heap_bytes == result.repacked_bytes == result.live_bytes + result.loss_bytes


def profiles():
    """The samples with programs."""
    for folder in (*OWN_SAMPLES, *more_samples()):
        for path in sorted(folder.rglob("*.xplane.pb*")):
            try:
                with peakline.open(path) as profile:
                    if profile.programs():
                        yield path, profile
            except PeaklineError:
                continue


def test_every_value_of_the_samples_lies_where_xla_put_it():
    heaps = 0
    for path, profile in profiles():
        programs = profile.programs()
        for number in range(len(programs)):
            spaces = programs.read(number, "hlo_buffers").array("memory_space").tolist()
            for space in set(spaces):
                for heap in packed_heaps(ProgramMemory(programs, number, space)):
                    assert heap.is_same, (path, programs.label(number), space)
                    heaps += 1
    assert heaps >= 7
