"""The generated files are those that the sources make, and the stub says what the classes are."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from peakline import schema

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "generate_schema.py"


@pytest.fixture
def generator():
    pytest.importorskip("grpc_tools", reason="grpcio-tools, the protobuf compiler, is missing")
    spec = importlib.util.spec_from_file_location("generate_schema", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_files_are_current(generator):
    assert generator.main(["--check"]) == 0


def test_the_installed_descriptors_are_those_of_the_sources():
    installed = Path(schema.__file__).with_name("descriptors.binpb")
    source = ROOT / "src" / "peakline" / "schema" / "descriptors.binpb"
    assert installed.read_bytes() == source.read_bytes()


def test_a_stale_file_is_named_in_one_line(generator, monkeypatch, capsys):
    monkeypatch.setattr(generator, "compile_protos", lambda: b"")
    before = generator.DESCRIPTORS.read_bytes()
    assert generator.main(["--check"]) == 1
    assert capsys.readouterr().err == (
        "stale: src/peakline/schema/descriptors.binpb, src/peakline/schema/messages.pyi, "
        "src/peakline/schema/shape_texts.py; run python scripts/generate_schema.py\n"
    )
    assert generator.DESCRIPTORS.read_bytes() == before


def test_the_stub_lists_what_the_module_exports(generator):
    stub = generator.STUB.read_text()
    listed = stub[stub.index("__all__ = [") :].split("]")[0]
    assert {line.strip(' ",') for line in listed.splitlines()[1:]} - {""} == set(schema.SHORT_NAMES)


@pytest.mark.nightly
def test_the_stub_types_a_program(tmp_path):
    pytest.importorskip("mypy", reason="mypy is missing")
    program = tmp_path / "program.py"
    program.write_text(
        """\
from typing import Literal, assert_type
from peakline.schema import AttrValue, MemoryActivity, MemoryProfile, ProfileOptions, XEvent, XSpace

XSpace().planes.add().name = "x"
assert_type(XSpace.FromString(b"").planes[0].stat_metadata[1].name, str)
assert_type(XEvent().WhichOneof("data"), Literal["offset_ps", "num_occurrences"] | None)
MemoryProfile().memory_profile_per_allocator["a"].active_allocations.add().num_occurrences = 1
ProfileOptions(device_type=ProfileOptions.GPU, trace_options=ProfileOptions.TraceOptions())
assert_type(MemoryActivity.Name(MemoryActivity.ALLOCATION), str)
AttrValue(list=AttrValue.ListValue(s=[b"a"], i=[1]))
XSpace().plane  # expected: attr-defined
XSpace(planes=3)  # expected: arg-type
XEvent().HasField("duration_ps")  # expected: arg-type
XEvent(offset_ps="1")  # expected: arg-type
from peakline.schema import XSpaces  # expected: attr-defined
"""
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", str(program)],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"MYPY_CACHE_DIR": str(tmp_path / "cache"), "PATH": ""},
    )
    expected = [
        f"{number}:{line.rpartition(' ')[2]}"
        for number, line in enumerate(program.read_text().splitlines(), start=1)
        if "# expected: " in line
    ]
    reported = [
        f"{line.split(':')[1]}:{line.rpartition('[')[2].rstrip(']')}"
        for line in done.stdout.splitlines()
        if ": error: " in line
    ]
    assert reported == expected, done.stdout + done.stderr
