"""Programs against XLA and XProf themselves: costs and texts."""

import json
import subprocess
from pathlib import Path

import pytest

import peakline
from peakline.formats.hlo_proto.source import StoredProgram
from peakline.formats.hlo_proto.tables import ProgramTables
from peakline.formats.hlo_text.module import translate_module
from peakline.hlo.advice import advice_of
from peakline.hlo.cost import cost_program, costs_of
from peakline.hlo.modules import Module, modules_of, parse_program
from peakline.schema import HloModuleProto, HloProto
from peakline.wire import as_buffer
from peakline.xprof.rules.hlo_cost import GpuCosting
from tests.conformance.hlo_texts import TEXTS
from tests.conformance.peer import PROGRAMS, peers_python
from tests.conformance.stats_tables import different, ours, rows
from tests.conformance.test_memory_viewer_peers import compile_programs
from tests.each_row import each_row
from tests.formats.hlo_odd_texts import ODD
from tests.formats.hlo_same import differences
from tests.reference.xspace_builder import SpaceBuilder, Uint

pytestmark = pytest.mark.conformance

US = 10**6


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Per function the program, and what JAX says it costs."""
    folder = tmp_path_factory.mktemp("costs")
    done = subprocess.run(
        [peers_python(), str(PROGRAMS / "cost_jax.py"), str(folder)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    costs = json.loads((folder / "costs.json").read_text())
    assert len(costs) > 25
    programs = {}
    for name in costs:
        proto = HloProto()
        proto.hlo_module.ParseFromString((folder / f"{name}.hlo").read_bytes())
        programs[name] = proto.SerializeToString()
    return programs, costs


def test_the_totals_are_those_of_jax(compiled):
    programs, costs = compiled
    for name, program in programs.items():
        result = cost_program(program)
        wanted = [costs[name].get(key, 0) for key in ("flops", "bytes accessed", "transcendentals")]
        assert list(result.total[:3]) == pytest.approx(wanted, rel=1e-6), name
        assert result.guessed == 0, name


def rows_of(document):
    table = json.loads(document)
    table = table[0] if isinstance(table, list) else table
    names = [column["id"] for column in table["cols"]]
    return [
        dict(zip(names, (cell["v"] for cell in row["c"]), strict=True)) for row in table["rows"]
    ]


def compare(rows, programs):
    """Flops, bytes and category of each row of ``hlo_stats`` against ours; gives their number."""
    seen = 0
    for row in rows:
        program = programs.get(row["program_id"])
        name = row["hlo_op_name"]
        if program is None:
            continue
        cost = costs_of(program, GpuCosting).get(name)
        flops = cost.flops if cost else 0
        size = cost.bytes_accessed if cost else 0
        main = cost.bytes_read + cost.bytes_written if cost else 0
        ns = row["avg_time"] * 1e3
        device = cost.device_flops if cost else 0
        result = row["model_flop_rate"] * ns, row["normalized_flop_rate"] * ns
        result += (row["measured_memory_bw"] * ns * 2**30 / 1e9,)
        assert (flops, device, size) == pytest.approx(result, rel=1e-6, abs=1e-3), name
        if row["hbm_bw"] and size:
            # What XProf cannot place it counts as main memory.
            hbm = row["hbm_bw"] * ns * 2**30 / 1e9
            assert (main or size) == pytest.approx(hbm, rel=1e-6), name
        assert module_of(program).instructions[name].category == row["category"], name
        seen += 1
    return seen


def module_of(program):
    stored = StoredProgram("", None, "", lambda: as_buffer(program))
    return Module(ProgramTables([stored]), 0, lambda *_: None)


def ran_once(path, programs):
    """A profile in which every instruction of the programs runs once; they are numbered from 1."""
    space = SpaceBuilder()
    stream = space.plane("/device:GPU:0").line("Stream #1(Kernel)")
    metadata = space.plane("/host:metadata")
    at, by_id = 0, {}
    for number, (name, program) in enumerate(programs.items(), 1):
        by_id[str(number)] = program
        kind = metadata.event_id(f"{name}({number})")
        metadata.add_stats(metadata.message.event_metadata[kind], {"Hlo Proto": program})
        own = parse_program(program).hlo_module.name
        for instruction in module_of(program).instructions:
            stats = {
                "hlo_op": instruction, "hlo_module": own, "program_id": number,
                "correlation_id": at + 1,
            }  # fmt: skip
            stream.event(f"{instruction}.kd", at * 2 * US, US, stats)
            at += 1
    path.write_bytes(space.space.SerializeToString())
    return by_id, at


def test_each_instruction_is_as_in_xprof(live_xprof, compiled, tmp_path):
    path = tmp_path / "gpu.xplane.pb"
    by_id, events = ran_once(path, compiled[0])
    assert compare(rows_of(live_xprof.ask("hlo_stats", path)), by_id) == events


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The programs written by hand."""
    folder = tmp_path_factory.mktemp("texts")
    for number, text in enumerate(TEXTS.values()):
        (folder / f"{number}.txt").write_text(text)
    done = subprocess.run(
        [peers_python(), str(PROGRAMS / "hlo_of_texts.py"), str(folder)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    programs = {}
    for number, name in enumerate(TEXTS):
        proto = HloProto()
        proto.hlo_module.ParseFromString((folder / f"{number}.hlo").read_bytes())
        programs[name] = proto
    return programs


def test_each_instruction_of_a_written_program(live_xprof, written, tmp_path):
    path = tmp_path / "gpu.xplane.pb"
    by_id, events = ran_once(
        path, {name: proto.SerializeToString() for name, proto in written.items()}
    )
    assert compare(rows_of(live_xprof.ask("hlo_stats", path)), by_id) == events


@pytest.mark.parametrize(
    ("name", "key", "stats", "number"),
    [
        ("m(7)", 1, {}, 7),
        ("m", 9, {}, 9),
        ("m(7)x", 9, {}, 9),
        ("m(7)", 1, {"program_id": 8}, 8),
        ("m", 1, {"program_id": Uint(2**63 + 1)}, Uint(2**63 + 1)),
        ("m(18446744073709551615)", 1, {}, -1),
    ],
)
@pytest.mark.parametrize("stat", ["Hlo Proto", "HLO Proto"])
def test_a_program_is_found_by_its_number(
    live_xprof, written, tmp_path, name, key, stats, number, stat
):
    space = SpaceBuilder()
    metadata = space.plane("/host:metadata")
    kind = metadata.message.event_metadata[key]
    kind.id, kind.name = key, name
    metadata.add_stats(kind, {stat: written["called_dot"].SerializeToString(), **stats})
    result = {"hlo_op": "c", "hlo_module": "m", "program_id": number, "kernel_details": "regs:1"}
    space.plane("/device:GPU:0").line("Stream #1(Compute)").event("k", 0, US, result)
    path = tmp_path / "gpu.xplane.pb"
    path.write_bytes(space.space.SerializeToString())
    assert [row[3] for row in rows(ours(path, "framework_op_stats", compatible="xprof")[0])][
        :1
    ] == ["c"]
    assert different(live_xprof, "framework_op_stats", [path]) == {}


def _damages():
    def last(module):
        return module.computations[-1].instructions[-1]

    def backwards(repeated):
        turned = list(repeated)[::-1]
        repeated.MergeFrom(turned)
        del repeated[: len(turned)]

    return {
        "name_of_all": lambda module: setattr(module, "name", ""),
        "opcode": lambda module: setattr(last(module), "opcode", "unheard_of"),
        "operand": lambda module: last(module).operand_ids.append(99_999),
        "control": lambda module: last(module).control_predecessor_ids.append(99_999),
        "call": lambda module: last(module).called_computation_ids.append(99_999),
        "entry": lambda module: setattr(module, "entry_computation_id", 99_999),
        "entry_name": lambda module: setattr(module, "entry_computation_name", "other"),
        "id": lambda module: setattr(last(module), "id", module.computations[-1].root_id - 1),
        "name": lambda module: setattr(
            last(module), "name", module.computations[-1].instructions[0].name
        ),
        "root": lambda module: setattr(module.computations[-1], "root_id", 99_999),
        "order": lambda module: backwards(module.computations[-1].instructions),
        "computations": lambda module: backwards(module.computations),
        "program_shape": lambda module: module.ClearField("host_program_shape"),
        "shape": lambda module: last(module).ClearField("shape"),
        "empty": lambda module: module.computations.add(name="empty", id=77_777),
        "parameter": lambda module: setattr(
            module.computations[-1].instructions[0], "parameter_number", 7
        ),
    }


@pytest.mark.parametrize("damage", _damages())
def test_a_program_that_xla_refuses_is_none(live_xprof, written, tmp_path, damage):
    proto = HloProto()
    proto.CopyFrom(written["called_dot"])
    _damages()[damage](proto.hlo_module)
    path = tmp_path / "gpu.xplane.pb"
    ran_once(path, {"m": proto.SerializeToString()})
    assert different(live_xprof, "framework_op_stats", [path]) == {}


def test_real_profiles_are_as_in_xprof(live_xprof):
    for path in live_xprof.spaces:
        if "gpu" in path.parent.name:
            with peakline.open(path) as profile:
                programs = {
                    str(module.program_id): module.data.tobytes() for module in modules_of(profile)
                }
            assert compare(rows_of(live_xprof.ask("hlo_stats", path)), programs) > 0, path


ALL = ODD | {f"cost_{name}": text for name, text in TEXTS.items()}


@pytest.fixture(scope="module")
def parsed(tmp_path_factory, root):
    """The messages that XLA makes of all texts, those of the dumps included."""
    folder = tmp_path_factory.mktemp("texts")
    dumps = sorted((root / "tests" / "data" / "xla_dump").glob("*_optimizations.txt"))
    texts = [*ALL.values(), *(path.read_text() for path in dumps)]
    for number, text in enumerate(texts):
        (folder / f"{number}.txt").write_text(text)
    done = subprocess.run(
        [peers_python(), str(PROGRAMS / "hlo_of_texts.py"), str(folder)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    names = [*ALL, *(path.name for path in dumps)]
    return {name: Path(folder / f"{number}.hlo") for number, name in enumerate(names)}


def _same(path):
    upstream = HloModuleProto.FromString(path.read_bytes())
    data, losses = translate_module(path.with_suffix(".txt").read_bytes())
    assert losses.entries() == []
    assert differences(upstream, HloProto.FromString(data).hlo_module) == []


@each_row("name", ALL)
def test_a_text_is_what_xla_makes_of_it(parsed, name):
    _same(parsed[name])


def test_a_dump_is_what_xla_makes_of_it(parsed):
    dumps = [path for name, path in parsed.items() if name not in ALL]
    assert len(dumps) == 8
    for path in dumps:
        _same(path)


TOLERANCE = {
    "donate_sgd": 0.0,
    "donate_reversed": 0.0,
    # XLA schedules otherwise once results lie in place.
    "donate_momentum": 0.06,
    "rematerialise_features": 0.0,
    # The loop over halves holds its operands and its results.
    "chunk_attention": 0.02,
    "chunk_heads": 0.10,
    "lower_precision_sorted": 0.0,
    "lower_precision_attention": 0.0,
    "lower_precision_gathered": 0.0,
}
"""By how much of what the program allocates the estimate may be wrong."""


@pytest.fixture(scope="module")
def compiled_of_hlo_advice_peers(tmp_path_factory):
    return compile_programs("advised_jax.py", tmp_path_factory.mktemp("advised"))


def allocated(sizes, kind):
    if kind == "lower_precision":
        # Parameters and results are made smaller too, about which the advice says nothing.
        return sizes["temp"]
    return sizes["argument"] + sizes["output"] + sizes["temp"] - sizes["alias"]


def total(sizes):
    return sizes["argument"] + sizes["output"] + sizes["temp"] - sizes["alias"]


@pytest.mark.parametrize("name", TOLERANCE)
def test_following_it_saves_what_it_says(compiled_of_hlo_advice_peers, name):
    dumps, sizes = compiled_of_hlo_advice_peers
    kind = next(kind for kind in ("donate", "rematerialise", "chunk", "lower_precision")
                if name.startswith(kind))  # fmt: skip
    with peakline.open(dumps[name]) as profile:
        advice = next(one for one in advice_of(profile, 0) if one.kind == kind)
    saved = allocated(sizes[name], kind) - allocated(sizes[f"{name}_followed"], kind)
    assert saved > 0.05 * total(sizes[name])
    assert advice.bytes == pytest.approx(saved, abs=TOLERANCE[name] * total(sizes[name]))
    assert advice.rows[0]["bytes"] > 0


@pytest.mark.parametrize("name", TOLERANCE)
def test_what_was_followed_is_not_advised_again(compiled_of_hlo_advice_peers, name):
    dumps, _ = compiled_of_hlo_advice_peers
    with peakline.open(dumps[f"{name}_followed"]) as profile:
        kinds = [one.kind for one in advice_of(profile, 0)]
    if not name.startswith("chunk"):
        # What is computed in halves can be computed in quarters.
        assert not any(name.startswith(kind) for kind in kinds)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("none_donate_needed_later", "donate"),
        ("none_donate_other_type", "donate"),
        ("none_rematerialise_of_sorted", "rematerialise"),
    ],
)
def test_what_saves_nothing_is_not_advised(compiled_of_hlo_advice_peers, name, kind):
    dumps, sizes = compiled_of_hlo_advice_peers
    with peakline.open(dumps[name]) as profile:
        kinds = [one.kind for one in advice_of(profile, 0)]
    assert kind not in kinds
    assert total(sizes[f"{name}_followed"]) > 0.95 * total(sizes[name])
