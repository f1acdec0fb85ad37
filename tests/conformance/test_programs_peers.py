"""Compiled programs against what JAX and XProf say of them.

JAX compiles programs as different people write them, dumps each, and records them running: the
dump and the profile must say the same, as JAX's own ``memory_analysis()`` and ``cost_analysis()``
do, and XProf's ``memory_viewer``.
"""

import json
import os
import subprocess
from collections import Counter

import pytest

import peakline
from peakline.schema import HloProto
from peakline.timing.programs.answer import programs_of
from tests.conformance.peer import PROGRAMS, peers_python

pytestmark = pytest.mark.conformance

SIZES = {
    "argument": "argument_bytes",
    "output": "output_bytes",
    "alias": "alias_bytes",
    "temp": "temporary_bytes",
    "generated_code": "generated_code_bytes",
}
COSTS = {"flops": "flops", "transcendentals": "transcendentals", "bytes accessed": "bytes_accessed"}
TABLES = ("hlo_instructions", "hlo_buffers", "hlo_heap_events", "hlo_frames")
RUNS = {"runs", "run_ps", "module_id"}
"""Columns that only a profile fills; and the row number, which depends on the order of files."""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The folder that JAX filled, and what it says of each program."""
    folder = tmp_path_factory.mktemp("programs")
    done = subprocess.run(
        [peers_python(), str(PROGRAMS / "programs_jax.py"), str(folder)],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": ""},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder, json.loads((folder / "programs.json").read_text())


@pytest.fixture(scope="module")
def space(recorded):
    """The recorded profile."""
    (result,) = recorded[0].rglob("*.xplane.pb")
    return result


@pytest.fixture(scope="module")
def rows(space):
    """By name what the profile says of each program; a name that several have stands for none."""
    with peakline.open(space) as profile:
        result = profile.table("hlo_modules").to_pylist()
        assert not profile.table("warnings").num_rows
    counts = Counter(row["name"] for row in result)
    return {row["name"]: row for row in result if counts[row["name"]] == 1}


@pytest.fixture(scope="module")
def said(recorded):
    """What JAX says of each program that it compiled by itself; there are at least 24."""
    result = {f"jit_{name}": one for name, one in recorded[1].items() if "cost" in one}
    assert len(result) >= 24
    return result


def dumps(folder):
    """The programs of the dump by name."""
    ending = ".cpu_after_optimizations.hlo.pb"
    return {
        path.name.removesuffix(ending).split(".", 1)[1]: path
        for path in (folder / "dump").glob(f"*{ending}")
    }


def test_the_sizes_are_those_of_jax(rows, said):
    for name, one in said.items():
        sizes = {part: rows[name][column] or 0 for part, column in SIZES.items()}
        assert sizes == one["memory"], name


def custom_calls(module):
    """How many custom calls one run makes: loops turn once."""
    computations = {one.id: one for one in module.computations}

    def count(computation):
        result = 0
        for one in computations[computation].instructions:
            calls = [count(number) for number in one.called_computation_ids]
            if one.opcode in ("while", "call", "fusion"):
                result += sum(calls)
            elif one.opcode == "conditional":
                result += max(calls)
            result += one.opcode == "custom-call"
        return result

    return count(module.entry_computation_id)


def test_the_costs_are_those_of_jax(rows, said, recorded):
    """Of a custom call nothing is known: JAX counts -1 for it, we count 0."""
    paths, unknown = dumps(recorded[0]), 0
    for name, one in said.items():
        calls = custom_calls(HloProto.FromString(paths[name].read_bytes()).hlo_module)
        unknown += calls
        for key, column in COSTS.items():
            less = calls if column != "transcendentals" else 0
            wanted = one["cost"].get(key, 0) + less
            assert rows[name][column] == pytest.approx(wanted, rel=1e-6), (name, column)
    assert unknown > 0


def test_the_peak_is_that_of_jax_and_the_temporaries(rows, said, recorded):
    """The buffer assignment that a CPU's executable holds has lost its heaps: JAX's peak is that of
    what is there all the time.
    """
    paths, with_heaps = dumps(recorded[0]), 0
    for name, one in said.items():
        executable = HloProto()
        content = (recorded[0] / "assignments" / f"{name.removeprefix('jit_')}.pb").read_bytes()
        executable.buffer_assignment.ParseFromString(content)
        assert not executable.buffer_assignment.heap_simulator_traces, name
        whole = HloProto.FromString(paths[name].read_bytes())
        del whole.buffer_assignment.heap_simulator_traces[:]
        assert executable.buffer_assignment == whole.buffer_assignment, name
        with peakline.open(paths[name]) as profile:
            (answer,) = programs_of(profile)
            live = answer.memory.packing.live_bytes
        assert rows[name]["peak_bytes"] == one["peak"] + live, name
        assert rows[name]["peak_found_by"] == ("heap trace" if live else "no temporaries"), name
        with_heaps += live > 0
    assert with_heaps >= 15


def test_each_run_is_seen(rows, said, recorded):
    for name, one in said.items():
        assert rows[name]["runs"] == one["runs"], name
        assert rows[name]["run_ps"] > 0, name
    # pmap names its program itself.
    assert rows["jit__fun"]["runs"] == recorded[1]["_fun"]["runs"]


def test_devices_that_run_one_program(space):
    with peakline.open(space) as profile:
        runs = {one.name: one.runs for one in programs_of(profile)}
    assert set(runs["jit_sharded"].names("device").to_list()) == {f"CPU:{n}" for n in range(4)}
    assert set(runs["jit_sgd"].names("device").to_list()) == {"CPU:0"}
    # On one device the runs follow each other.
    for name, listed in runs.items():
        devices = listed.names("device")
        for device in range(len(devices.values)):
            some = listed.take(devices.codes == device)
            start, end = some.array("start_ps"), some.array("end_ps")
            assert (start < end).all(), name
            assert (end[:-1] <= start[1:]).all(), name


def test_the_dump_says_the_same_as_the_profile(rows, recorded):
    with peakline.open(recorded[0] / "dump") as profile:
        dumped = {
            (row["name"], row["program_id"]): row
            for row in profile.table("hlo_modules").to_pylist()
        }
        assert not profile.table("warnings").num_rows
    for name, row in rows.items():
        other = dumped[name, row["program_id"]]
        assert {key for key in row if row[key] != other[key]} <= RUNS | {"backend"}, name
        assert other["runs"] is None, name
        assert other["backend"] == "cpu", name


def test_the_tables_of_a_dump_are_those_of_the_profile(space, recorded):
    def tables(path):
        with peakline.open(path) as profile:
            programs = profile.programs()
            return {
                programs.label(number): {
                    table: programs.read(number, table).to_pylist()
                    for table in (
                        "hlo_instructions",
                        "hlo_buffers",
                        "hlo_heap_events",
                        "hlo_frames",
                    )
                }
                for number in range(len(programs))
            }

    profiled, dumped = tables(space), tables(recorded[0] / "dump")
    assert len(profiled) > 25
    for label, result in profiled.items():
        assert result == dumped[label], label


def test_the_peaks_are_those_of_xprof(live_xprof, space):
    with peakline.open(space) as profile:
        answers = {one.label: one for one in programs_of(profile)}
        curves = 0
        for label, one in answers.items():
            options = {"module_name": label}
            answer = json.loads(live_xprof.ask("memory_viewer", space, options=options))
            assert answer["moduleName"] == one.name, label
            peak = answer.get("peakHeapMib", 0)
            assert one.peak_bytes / 2**20 == pytest.approx(peak, rel=1e-9), label
            (heap,) = one.memory.heaps or [None]
            indefinite = one.peak_bytes - (heap.peak if heap else 0)
            if heap is None:
                assert "heapSizes" not in answer, label
                continue
            curve = [indefinite, *(indefinite + heap.curve).tolist()]
            assert [size / 2**20 for size in curve] == pytest.approx(answer["heapSizes"]), label
            curves += 1
    assert curves >= 15
