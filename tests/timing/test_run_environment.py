"""On what a profile was taken."""

from pathlib import Path

from tests.each_row import each_row
from tests.reference.xspace_builder import SpaceBuilder

import peakline
from peakline.schema import CoreDetails, HloProto
from peakline.xprof.overview_page.facts import DutyCycle, combine_duty_cycles, duty_cycle_of
from peakline.xprof.rules.hardware import RunEnvironment, gpu_name, peaks_of, run_environment_of

DATA = Path(__file__).parents[1] / "data"


@each_row(
    ("stats", "name"),
    [
        ({"device_vendor": "Nvidia", "compute_cap_major": "8", "compute_cap_minor": "0"},
         "Nvidia GPU (Ampere)"),
        ({"device_vendor": "Nvidia", "compute_cap_major": "8", "compute_cap_minor": "9"},
         "Nvidia GPU (Ada Lovelace)"),
        ({"device_vendor": "Nvidia", "compute_cap_major": "7", "compute_cap_minor": "5"},
         "Nvidia GPU (Turing)"),
        ({"device_vendor": "Nvidia", "compute_cap_major": "99"}, "Nvidia GPU"),
        ({"device_vendor": "AMD", "compute_cap_major": "9", "compute_cap_minor": "4"},
         "AMD GPU - gfx942"),
        ({"device_vendor": "AMD", "compute_cap_major": "9", "gpu_device_name": "gfx90a"},
         "AMD GPU - gfx90a"),
        ({"device_vendor": "AMD", "compute_cap_major": "9", "gpu_device_name": "Radeon"},
         "AMD GPU - gfx-9XX series"),
        ({"device_vendor": "AMD", "compute_cap_major": "x"}, "AMD GPU"),
        ({"device_vendor": "Other"}, ""),
        ({}, ""),
    ],
)  # fmt: skip
def test_the_name_of_a_gpu(stats, name):
    assert gpu_name(stats) == name


def test_gpus_come_before_tpus_and_a_host_alone_is_a_cpu(opened):
    alone = SpaceBuilder()
    alone.host({"matrix_unit_utilization_percent": 12.5, "hbm_utilization_percent": 7.0})
    assert run_environment_of(opened(alone)) == RunEnvironment(
        hardware="CPU_ONLY", device_type="CPU", devices=0, is_training=False, matrix_percent=12.5,
        memory_percent=7.0,
    )  # fmt: skip
    both = SpaceBuilder()
    both.plane("/device:TPU:0", {"device_type_string": "TPU v9"})
    both.plane("/device:TPU:1")
    result = run_environment_of(opened(both))
    assert (result.hardware, result.device_type, result.devices) == ("TPU", "TPU v9", 2)
    both.plane("/device:GPU:0", {"device_vendor": "Unknown"})
    result = run_environment_of(opened(both))
    assert (result.hardware, result.device_type, result.devices) == ("GPU", "GPU", 1)


@each_row(
    ("plane", "found"),
    [("/device:TPU:0 SparseCore 0", ("TPU", "TPU")), ("/device:CUSTOM:x", ("GPU", "GPU"))],
)
def test_other_devices_count_but_by_the_rule_of_xprof(opened, plane, found):
    space = SpaceBuilder()
    space.plane(plane).line("l").event("x", 0, 5)
    profile = opened(space)
    for strict, expected in ((False, found), (True, ("CPU_ONLY", "CPU"))):
        result = run_environment_of(profile, strict=strict)
        peaks = peaks_of(profile, strict=strict)
        assert (
            (result.hardware, result.device_type) == (peaks.hardware, peaks.device_type) == expected
        )


@each_row(
    ("op_name", "op_type", "trains"),
    [
        ("jit(f)/transpose(jvp(g))/dot_general", "", True),
        ("jit(f)/transpose[permutation=(1, 0)]", "", False),
        ("gradient_tape/model/MatMul", "MatMul", True),
        ("gradients_2/MatMul", "MatMul", True),
        ("model/gradients", "MatMul", False),
        ("model/dense/MatMul", "MatMul", False),
    ],
)
def test_a_program_that_computes_gradients_trains(opened, op_name, op_type, trains):
    program = HloProto()
    program.hlo_module.name = "f"
    instruction = program.hlo_module.computations.add(id=1).instructions.add(name="i", opcode="dot")
    instruction.metadata.op_name, instruction.metadata.op_type = op_name, op_type
    space = SpaceBuilder()
    plane = space.plane("/host:metadata")
    entry = plane.message.event_metadata[plane.event_id("f(1)")]
    plane.add_stats(entry, {"Hlo Proto": program.SerializeToString()})
    assert run_environment_of(opened(space)).is_training is trains


def test_other_formats_have_an_environment_too():
    with peakline.open(DATA / "run_metadata" / "tf1_cnn_2.pb.gz") as profile:
        assert run_environment_of(profile).device_type == "CPU"


def tpu(space, number, chip, ops, modules=(), category=None):
    """A core on a chip with ops (start and length), and runs of modules around them."""
    details = CoreDetails(local_chip_id=chip).SerializeToString()
    plane = space.plane(f"/device:TPU:{number}", {"core_details": details})
    line = plane.line("XLA Ops")
    for start, length in ops:
        line.event("op", start, length)
    if category is not None:
        plane.add_stats(
            plane.message.event_metadata[plane.event_id("op")], {"hlo_category": category}
        )
    line = plane.line("XLA Modules")
    for start, length in modules:
        line.event("jit_f", start, length)


class TestDutyCycle:
    def test_a_chip_is_on_duty_while_one_of_its_cores_works(self, opened):
        space = SpaceBuilder()
        tpu(space, 0, 0, [(10, 10), (15, 10)], [(0, 50)])
        tpu(space, 1, 0, [(20, 20)])
        tpu(space, 2, 1, [(0, 5)])
        assert duty_cycle_of(opened(space)) == DutyCycle(30 + 5, 20)

    def test_feeding_a_core_is_no_work(self, opened):
        space = SpaceBuilder()
        tpu(space, 0, 0, [(10, 10)], [(0, 40)], category="infeed")
        assert duty_cycle_of(opened(space)) == DutyCycle(0, 40)

    def test_without_a_tpu_there_is_none(self, opened):
        space = SpaceBuilder()
        space.host().line("a").event("x", 0, 5)
        assert duty_cycle_of(opened(space)) == DutyCycle(0, 0)

    def test_hosts_add_up(self):
        assert combine_duty_cycles([DutyCycle(1, 2), DutyCycle(3, 4)]) == DutyCycle(4, 6)
