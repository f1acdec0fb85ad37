"""Arrays that several compiled programs hold as constants."""

import numpy as np
from tests.each_row import each_row
from tests.timing.programs import Maker, f32

import peakline
from reference.xspace_builder import SpaceBuilder, Uint

SIDE = 1024


def program(folder, name, values, *, fused=False, given=False):
    """``x + w``, ``w`` a constant of these values, in a fusion, or a parameter."""
    made = Maker(name)
    shape = f32(SIDE, SIDE)
    inner = None
    if fused:
        inner = made.computation("fused")
        inner.is_fusion_computation = True
        x = made.add(inner, "parameter", shape, parameter_number=0)
        w = made.add(inner, "constant", shape)
        made.add(inner, "add", shape, x, w)
    main = made.computation("main")
    x = made.add(main, "parameter", shape, parameter_number=0)
    if fused:
        made.add(main, "fusion", shape, x, calls=(inner,), fusion_kind="kLoop")
    else:
        opcode = "parameter" if given else "constant"
        w = made.add(main, opcode, shape, **({"parameter_number": 1} if given else {}))
        made.add(main, "add", shape, x, w)
    if not given:
        made.fill(w.literal.shape, shape)
        w.literal.f32s.extend(values)
    numbers = [one.id for one in main.instructions]
    made.proto.hlo_module.schedule.sequences[main.id].instruction_ids.extend(numbers)
    folder.mkdir(exist_ok=True)
    (folder / f"module_0001.{name}.cpu_after_optimizations.hlo.pb").write_bytes(made.data)


def findings_of(folder):
    with peakline.open(folder) as profile:
        return [one for one in profile.memory().findings if one.kind == "captured_constants"]


ONES, TWOS = np.full(SIDE * SIDE, 1.0), np.full(SIDE * SIDE, 2.0)


def test_copies_of_one_array_in_several_programs(tmp_path):
    folder = tmp_path / "dump"
    for name, fused in (("jit_f", False), ("jit_g", True), ("jit_h", False)):
        program(folder, name, ONES, fused=fused)
    program(folder, "jit_other", TWOS)
    [finding] = findings_of(folder)
    size = 4 * SIDE * SIDE
    assert (finding.severity, finding.evidence["saved_bytes"]) == ("warning", 2 * size)
    assert finding.evidence["programs"] == 3
    assert finding.title == (
        "3 programs (jit_f(1), jit_g(1), jit_h(1)) hold a copy of one array f32[1024,1024] of "
        "4.0 MiB as a constant: 8.0 MiB are copies"
    )
    embedded = {row["program"]: row["embedded"] for row in finding.rows}
    assert embedded == {"jit_f(1)": False, "jit_g(1)": True, "jit_h(1)": False}
    assert "pass it as an argument" in finding.suggestion


@each_row(
    "programs",
    [
        [("jit_f", ONES, {})],
        [("jit_f", ONES, {}), ("jit_g", TWOS, {})],
        [("jit_f", ONES, {"given": True}), ("jit_g", ONES, {"given": True})],
        [("jit_f", ONES, {}), ("jit_g", ONES, {"given": True})],
        # A dump may leave the values of large constants out: then nothing says that they are one.
        [("jit_f", [], {}), ("jit_g", [], {})],
    ],
)
def test_other_arrays_and_arguments_are_no_copies(tmp_path, programs):
    folder = tmp_path / "dump"
    for name, values, how in programs:
        program(folder, name, values, **how)
    assert findings_of(folder) == []


def test_programs_beside_an_allocator_say_it_too(tmp_path, opened):
    """Of the allocator's peak, which is 40 MiB."""
    folder = tmp_path / "programs"
    for name in ("jit_f", "jit_g"):
        program(folder, name, ONES)
    for many in (2, 1):
        builder = SpaceBuilder()
        metadata = builder.plane("/host:metadata")
        for number, path in enumerate(sorted(folder.glob("*.pb"))[:many]):
            kind = metadata.event_id(f"jit_{number}({number})")
            stats = {"Hlo Proto": path.read_bytes(), "program_id": Uint(number)}
            metadata.add_stats(metadata.message.event_metadata[kind], stats)
        size = 40 << 20
        memory = {
            "allocator_name": "GPU_0_bfc", "bytes_allocated": size, "bytes_available": 1 << 30,
            "peak_bytes_in_use": size, "requested_bytes": size, "allocation_bytes": size,
            "addr": 4096,
        }  # fmt: skip
        builder.host().line("python").event("MemoryAllocation", 10**9, 0, memory)
        profile = opened(builder)
        result = [one for one in profile.memory().findings if one.kind == "captured_constants"]
        assert len(result) == (many == 2)
        if result:
            assert result[0].evidence["saved_bytes"] == 4 * SIDE * SIDE
            assert result[0].evidence["share"] == 4 * SIDE * SIDE / size
