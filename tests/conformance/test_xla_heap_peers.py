"""The heap of a program's temporaries against what XLA itself assigned.

JAX compiles programs of many forms for the CPU, and XLA dumps them. PEAKLINE_SAMPLES names folders
with more profiles, of other devices.
"""

import json
import os
import subprocess

import pytest

import peakline
from peakline.errors import PeaklineError
from peakline.hlo.memory import ProgramMemory
from peakline.hlo.packing import packed_heaps, repack
from tests.conformance.oracle import OWN_SAMPLES, more_samples
from tests.conformance.peer import PROGRAMS, peers_python

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
        found = repack(memory)
    assert heap.values.size > 1000
    assert found.is_same
    assert found.loss_bytes > 0
    assert found.heap_bytes == found.repacked_bytes == found.live_bytes + found.loss_bytes


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
