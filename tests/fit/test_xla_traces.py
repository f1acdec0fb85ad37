"""XLA's heaps of recorded programs of JAX: every temporary lies where the replay puts it."""

from pathlib import Path

import peakline
from peakline.hlo.memory import ProgramMemory
from peakline.hlo.packing import packed_heaps

DATA = Path(__file__).parents[1] / "data" / "diagnosis"
MODULES, HEAPS = 30, 60


def test_every_temporary_of_thirty_modules_lies_where_xla_put_it():
    modules, heaps, longest = set(), set(), 0
    for path in sorted(DATA.glob("jax_*/*/*.xplane.pb.gz")):
        if len(modules) >= MODULES and len(heaps) >= HEAPS and longest > 100:
            break
        with peakline.open(path) as profile:
            programs = profile.programs()
            for number in range(len(programs or ())):
                for heap in packed_heaps(ProgramMemory(programs, number)):
                    assert heap.is_same, (path, programs.label(number))
                    modules.add(programs.name(number))
                    heaps.add((heap.values.size, heap.heap.heap_bytes))
                    longest = max(longest, heap.values.size)
    assert len(modules) >= MODULES
    assert len(heaps) >= HEAPS
    assert longest > 100
