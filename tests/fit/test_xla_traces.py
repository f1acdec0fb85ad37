"""XLA's heaps of recorded programs of JAX: every temporary lies where the replay puts it."""

from pathlib import Path

import pytest

import peakline
from peakline.hlo.memory import ProgramMemory
from peakline.hlo.packing import packed_heaps

DATA = Path(__file__).parents[1] / "data" / "diagnosis"


@pytest.mark.parametrize(
    ("least_modules", "least_heaps"), [(6, 12), pytest.param(30, 60, marks=pytest.mark.nightly)]
)
def test_every_temporary_lies_where_xla_put_it(least_modules, least_heaps):
    modules, heaps, longest = set(), set(), 0
    for path in sorted(DATA.glob("jax_*/*/*.xplane.pb.gz")):
        if len(modules) >= least_modules and len(heaps) >= least_heaps and longest > 100:
            break
        with peakline.open(path) as profile:
            programs = profile.programs()
            for number in range(len(programs or ())):
                for heap in packed_heaps(ProgramMemory(programs, number)):
                    assert heap.is_same, (path, programs.label(number))
                    modules.add(programs.name(number))
                    heaps.add((heap.values.size, heap.heap.heap_bytes))
                    longest = max(longest, heap.values.size)
    assert len(modules) >= least_modules
    assert len(heaps) >= least_heaps
    assert longest > 100
