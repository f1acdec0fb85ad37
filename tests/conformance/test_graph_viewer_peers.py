"""graph_viewer against XProf's: the text of every program of every sample, its message, and what is
beside its instructions.
"""

import random
import re

import pytest

import peakline
from peakline.errors import PeaklineError
from peakline.schema import HloProto, XSpace
from peakline.tools import run_tool
from tests.conformance.oracle import SEEDS
from tests.conformance.peer import Refused

TOOL = "graph_viewer"
TEXTS = ({"type": "short_txt"}, {"type": "long_txt"}, {"type": "long_txt", "show_metadata": 1})

NODE = re.compile(
    r"(^|^subgraph cluster_|^cluster_| -> | -> cluster_|ltail=.cluster_|^}  // cluster_)"
    r"(\d+)(?=\W|$)"
)
"""Where a drawing names a node or a cluster by its address."""


def programs(path):
    with peakline.open(str(path)) as profile:
        result = profile.programs()
        return [result.label(number) for number in range(len(result))] if result else []


def ours(path, options):
    with peakline.open(str(path)) as profile:
        given = {name: str(value) for name, value in options.items()}
        return run_tool(profile, TOOL, {**given, "compatible": "xprof"}).content


def theirs(xprof, path, options):
    return xprof.ask(TOOL, path, options=options)


def compared(xprof, path, options):
    """Both answers, None for one that was refused."""
    try:
        other = theirs(xprof, path, options)
    except Refused:
        other = None
    try:
        own = ours(path, options)
    except PeaklineError:
        own = None
    return own, other


@pytest.mark.conformance
def test_the_texts_of_every_program(live_xprof):
    count = 0
    for path in live_xprof.spaces:
        for label in programs(path):
            for options in TEXTS:
                own, other = compared(live_xprof, path, {**options, "module_name": label})
                assert own == other, (path.name, label, options)
                count += 1
    assert count > 80


@pytest.mark.conformance
def test_the_messages_of_every_program(live_xprof):
    for path in live_xprof.spaces:
        for label in programs(path):
            own, other = compared(live_xprof, path, {"type": "pbtxt", "module_name": label})
            assert own == other, (path.name, label)
            own, other = compared(live_xprof, path, {"type": "pb", "module_name": label})
            assert HloProto.FromString(own) == HloProto.FromString(other), (path.name, label)


@pytest.mark.conformance
def test_what_is_beside_instructions(live_xprof):
    picked = random.Random(1)
    for path in live_xprof.spaces:
        for label in programs(path):
            own, other = compared(live_xprof, path, {"type": "pb", "module_name": label})
            module = HloProto.FromString(own).hlo_module
            names = [made.name for one in module.computations for made in one.instructions]
            for name in picked.sample(names, min(3, len(names))):
                options = {"type": "adj_nodes", "module_name": label, "node_name": name.upper()}
                own, other = compared(live_xprof, path, options)
                assert own == other, (path.name, label, name)


def plain(content):
    """A drawing with its nodes numbered in order, and the rules of its style sheet sorted."""
    head, _, body = content.decode().partition("\n>\n\n")
    start, _, rules = head.partition("font-size: 12px;\n  }\n\n")
    numbers = {}

    def number(result):
        return result[1] + numbers.setdefault(result[2], f"n{len(numbers)}")

    lines = [NODE.sub(number, line) for line in body.split("\n")]
    return start, sorted(rule.strip() for rule in rules.split("\n\n")), lines


@pytest.mark.conformance
def test_drawings(live_xprof):
    picked, count = random.Random(2), 0
    for path in live_xprof.spaces:
        for label in programs(path):
            own, _ = compared(live_xprof, path, {"type": "pb", "module_name": label})
            module = HloProto.FromString(own).hlo_module
            names = [made.name for one in module.computations for made in one.instructions]
            names = [*picked.sample(names, min(2, len(names))), module.computations[-1].name]
            for name in names:
                options = {
                    "type": "graph",
                    "module_name": label,
                    "node_name": name,
                    "graph_width": picked.choice((0, 1, 2, 3, 5)),
                    "merge_fusion": picked.randint(0, 1),
                    "show_metadata": picked.randint(0, 1),
                }
                given = {key: str(value) for key, value in options.items()}
                with peakline.open(str(path)) as profile:
                    own = run_tool(profile, TOOL, {**given, "compatible": "xprof"}, "dot").content
                other = theirs(live_xprof, path, {**options, "format": "dot"})
                assert plain(own) == plain(other), (path.name, options)
                count += 1
    assert count > 80


@pytest.mark.conformance
def test_what_is_refused_and_which_program_is_meant(live_xprof):
    path = next(path for path in live_xprof.spaces if "jax_cpu" in path.parts)
    for options in (
        {"type": "short_txt", "program_id": "28"},
        {"type": "short_txt", "program_id": "step(28"},
        {"type": "short_txt", "module_name": "jit_train_step"},
        {"type": "short_txt"},
        {"type": "json", "program_id": "28"},
        {"type": "adj_nodes", "program_id": "28"},
        {"type": "adj_nodes", "program_id": "28", "node_name": "main.10"},
        {"type": "adj_nodes", "program_id": "28", "node_name": "nothing"},
        {"type": "adj_nodes", "node_name": "tanh.3"},
        {"type": "custom_call", "program_id": "28"},
    ):
        own, other = compared(live_xprof, path, options)
        assert own == other, options


def mutated(data, seed):
    """A program with an instruction of other operands, names, frames or orders."""
    chosen = random.Random(seed)
    proto = HloProto.FromString(data)
    module = proto.hlo_module
    module.name = f"changed{seed}"
    proto.ClearField("buffer_assignment")
    if chosen.random() < 0.5:
        module.ClearField("schedule")
    for one in module.computations:
        made = list(one.instructions)
        for place, each in enumerate(made):
            before = [other.id for other in made[:place]]
            if before and chosen.random() < 0.1 and each.opcode != "parameter":
                del each.control_predecessor_ids[:]
                each.control_predecessor_ids.append(chosen.choice(before))
            if chosen.random() < 0.05:
                each.name = chosen.choice(("f32", "a b", "__x", "é<b>")) + str(place) + one.name
            if chosen.random() < 0.1:
                each.backend_config = chosen.choice((b'{"a":"}"}', b'"', b"{", b"\x00\xff"))
            if chosen.random() < 0.1:
                each.frontend_attributes.map["k"] = chosen.choice(("1", '{"x":1}', 'a"\n'))
            if chosen.random() < 0.1:
                each.sharding.type = chosen.choice((0, 4, 5))
    for frame in module.stack_frame_index.stack_frames:
        if chosen.random() < 0.1:
            frame.parent_frame_id = chosen.randint(0, 9)
    return proto.SerializeToString()


def space_of(folder, every):
    """An XSpace with programs."""
    space = XSpace()
    plane = space.planes.add(name="/host:metadata")
    plane.stat_metadata[1].id, plane.stat_metadata[1].name = 1, "Hlo Proto"
    for number, data in enumerate(every, 1):
        entry = plane.event_metadata[number]
        entry.id, entry.name = number, HloProto.FromString(data).hlo_module.name
        entry.stats.add(metadata_id=1, bytes_value=data)
    path = folder / "made.xplane.pb"
    path.write_bytes(space.SerializeToString())
    return path


def programs_of_jax(xprof):
    source = next(path for path in xprof.spaces if "jax_cpu" in path.parts)
    with peakline.open(str(source)) as profile:
        return dict(profile.hlo_modules())


@pytest.mark.conformance
def test_programs_that_were_changed(live_xprof, tmp_path):
    picked = random.Random(7)
    every = list(programs_of_jax(live_xprof).values())
    path = space_of(tmp_path, [mutated(picked.choice(every), seed) for seed in range(SEEDS)])
    read = 0
    for label in programs(path):
        for options in TEXTS:
            own, other = compared(live_xprof, path, {**options, "module_name": label})
            assert own == other, (label, options)
            read += other is not None
    assert read > SEEDS


@pytest.mark.conformance
def test_groups_of_devices_that_xprof_does_not_read(live_xprof, tmp_path):
    """The case of docs/differences/graph_viewer.md: a transposed range of 8 devices."""
    proto = HloProto.FromString(programs_of_jax(live_xprof)["jit_sharded(38)"])
    for one in proto.hlo_module.computations:
        for made in one.instructions:
            if made.opcode == "all-reduce":
                made.ClearField("mesh_axes_replica_group_list")
                devices = made.collective_device_list.iota_replica_group_list
                devices.num_replica_groups, devices.num_devices_per_group = 4, 2
                devices.iota_reshape_dims.extend((2, 4))
                devices.iota_transpose_perm.extend((1, 0))
    path = space_of(tmp_path, [proto.SerializeToString()])
    options = {"type": "short_txt", "program_id": "1"}
    own, other = compared(live_xprof, path, options)
    assert own == other
    assert b"replica_groups={}" in own
    with peakline.open(str(path)) as profile:
        text = run_tool(profile, TOOL, options).content
    assert b"replica_groups=[4,2]<=[2,4]T(1,0)" in text
