"""What a program without a buffer assignment needs: a second reader finds the same, and XLA's own
assignment is near.
"""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.each_row import each_row
from tests.reference.hlo_liveness import Liveness
from tests.reference.random_programs import random_program
from tests.sweeps import sweep
from tests.timing.programs import Maker, f32

import peakline
from peakline.hlo.memory import memory_of
from peakline.schema import HloProto

DATA = Path(__file__).parents[1] / "data"
DUMPED = sorted(DATA.rglob("*after_optimizations.hlo.pb"))
SPACES = sorted((DATA / "sessions").glob("jax*/**/*.xplane.pb*"))


def computed(folder, proto):
    """The whole bytes and the live set that are computed of a program without its assignment."""
    proto.ClearField("buffer_assignment")
    path = folder / "program.hlo.pb"
    path.write_bytes(proto.SerializeToString())
    with peakline.open(path) as profile:
        memory = memory_of(profile, 0)
        assert memory.found_by == "schedule"
        columns = ("instruction_id", "shape_index", "bytes", "kind")
        rows = [
            memory.buffers.names(name).to_list()
            if name in ("shape_index", "kind")
            else memory.buffers.array(name).tolist()
            for name in columns
        ]
        assert sum(one.bytes for one in memory.live) == memory.peak_bytes
        return memory.peak_bytes, sorted(zip(*rows, strict=True))


def check(folder, proto):
    expected = Liveness(proto)
    result = computed(folder, proto)
    assert result == (expected.whole, expected.live)
    return result[0]


def check_near(folder, memory, proto):
    """What is computed is less than XLA's peak only by outputs that are not made yet, constants in
    fusions and tables of tuples; and it is more only by scalars.
    """
    assert memory.found_by in ("heap trace", "no temporaries", "allocations")
    result = check(folder, proto)
    lasting = sum(int(memory.module.array(f"{one}_bytes")[0]) for one in ("output", "constant"))
    assert memory.peak_bytes - lasting <= result <= memory.peak_bytes + 28


@pytest.mark.parametrize("path", sweep(DUMPED))
def test_programs_that_xla_dumped(tmp_path, path):
    with peakline.open(path) as profile:
        check_near(tmp_path, memory_of(profile, 0), HloProto.FromString(path.read_bytes()))


@pytest.mark.parametrize("path", sweep(SPACES))
def test_programs_of_a_profile(tmp_path, path):
    with peakline.open(path) as profile:
        programs = profile.programs()
        for number in range(len(programs)):
            proto = HloProto.FromString(bytes(programs.data(number)))
            check_near(tmp_path, memory_of(profile, number), proto)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("programs")


def test_tuples_of_the_same_tuples_are_gone_through_once(tmp_path):
    made = Maker()
    main = made.computation("main")
    one = made.add(main, "iota", f32(4))
    for _ in range(100):
        one = made.add(main, "tuple", f32(), one, one)
    made.add(main, "custom-call", f32(2), one)
    numbers = [one.id for one in main.instructions]
    made.proto.hlo_module.schedule.sequences[main.id].instruction_ids.extend(numbers)
    assert computed(tmp_path, made.proto)[0] == 24


@settings(max_examples=150)
@given(st.integers(0, 2**32))
def test_programs_at_random(folder, seed):
    check(folder, random_program(seed))


_INTO_OPERANDS = """HloModule jit_f, is_scheduled=true

%loop (p: f32[256]) -> f32[256] {
  %p = f32[256]{0} parameter(0)
  ROOT %n = f32[256]{0} negate(%p)
}

ENTRY %main (a: f32[256]) -> (f32[256], f32[1024]) {
  %a = f32[256]{0} parameter(0)
  %b = f32[256]{0} fusion(%a), kind=kInput, calls=%loop
  %workspace = f32[1024]{0} broadcast(%a), dimensions={0}
  %call = (f32[256]{0}, f32[1024]{0}) custom-call(%b, %workspace), custom_call_target="x"@
  %first = f32[256]{0} get-tuple-element(%call), index=0
  %second = f32[1024]{0} get-tuple-element(%call), index=1
  ROOT %r = (f32[256]{0}, f32[1024]{0}) tuple(%first, %second)
}
"""


@each_row(
    ("aliases", "arrays"),
    [
        ("", 256 + 2 * (256 + 1024)),
        ("{0}: (0, {})", 256 + 256 + 2 * 1024),
        ("{1}: (1, {})", 256 + 2 * 256 + 1024),
        ("{0}: (0, {}), {1}: (1, {})", 256 + 256 + 1024),
        ("{1}: (7, {})", 256 + 2 * (256 + 1024)),
    ],
)
def test_what_is_written_into_an_operand_is_there_once(tmp_path, aliases, arrays):
    """As `compiled.memory_analysis()` of JAX counts it."""
    path = tmp_path / "program.txt"
    said = f", output_to_operand_aliasing={{{aliases}}}" if aliases else ""
    path.write_text(_INTO_OPERANDS.replace("@", said))
    with peakline.open(path) as profile:
        assert memory_of(profile, 0).peak_bytes == 4 * arrays
