"""Names, numbers and types are the upstream ones."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto
from tests.each_row import each_row
from tests.schema.field_table import TABLE

from peakline import schema

SCALARS = {
    number: name.removeprefix("TYPE_").lower()
    for name, number in vars(FieldDescriptor).items()
    if name.startswith("TYPE_")
}


def expected_messages() -> dict[str, tuple[str, list[str]]]:
    """Full name of a message -> its file's import path and the items of its block."""
    result: dict[str, tuple[str, list[str]]] = {}
    path = package = name = ""
    for line in TABLE.strip().splitlines():
        if line.startswith("file "):
            _, path, package = line.split()
        elif not line.startswith(" "):
            name = f"{package}.{line}"
            result[name] = (path, [])
        else:
            result[name][1].extend(item for item in line.strip().split(";") if item)
    return {
        name: (path, [item.strip() for item in items]) for name, (path, items) in result.items()
    }


EXPECTED = expected_messages()


def value_type(field: FieldDescriptor, package: str) -> str:
    named = field.message_type or field.enum_type
    return SCALARS[field.type] if named is None else named.full_name.removeprefix(f"{package}.")


def field_item(field: FieldDescriptor, package: str) -> str:
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        key, value = entry.fields_by_name["key"], entry.fields_by_name["value"]
        kind = f"map<{value_type(key, package)},{value_type(value, package)}>"
    else:
        kind = ("repeated " if field.is_repeated else "") + value_type(field, package)
    oneof = f" in {field.containing_oneof.name}" if field.containing_oneof else ""
    return f"{field.number} {field.name} {kind}{oneof}"


def reserved_numbers(descriptor: Descriptor) -> list[int]:
    proto = DescriptorProto()
    descriptor.CopyToProto(proto)
    return sorted(n for span in proto.reserved_range for n in range(span.start, span.end))


@each_row("name", EXPECTED)
def test_a_core_message_is_as_upstream_defines_it(name):
    path, items = EXPECTED[name]
    descriptor = schema.descriptor(name)
    package = descriptor.file.package
    fields = sorted(descriptor.fields, key=lambda field: field.number)
    actual = [field_item(field, package) for field in fields]
    if reserved := reserved_numbers(descriptor):
        actual.append("reserved " + " ".join(map(str, reserved)))
    assert actual == items
    assert descriptor.file.name == path


def test_no_message_of_a_core_file_is_left_out_of_the_table():
    shipped = {
        name
        for path in {path for path, _ in EXPECTED.values()}
        for name in nested_names(schema.POOL.FindFileByName(path).message_types_by_name.values())
    }
    assert shipped == set(EXPECTED)


def nested_names(descriptors):
    for descriptor in descriptors:
        if not descriptor.GetOptions().map_entry:
            yield descriptor.full_name
            yield from nested_names(descriptor.nested_types)


@each_row(
    ("name", "values"),
    [
        (
            "tensorflow.profiler.MemoryActivity",
            "UNKNOWN_ACTIVITY ALLOCATION DEALLOCATION RESERVATION EXPANSION",
        ),
        ("tensorflow.ProfileOptions.DeviceType", "UNSPECIFIED CPU GPU TPU PLUGGABLE_DEVICE"),
        (
            "tensorflow.ProfilerServiceMonitorResult.ResponseType",
            "EMPTY_RESULT UTIL_ONLY UTIL_IDLE UTIL_IDLE_STEP",
        ),
        ("tensorflow.RunOptions.TraceLevel", "NO_TRACE SOFTWARE_TRACE HARDWARE_TRACE FULL_TRACE"),
    ],
)
def test_enum_values_count_from_zero(name, values):
    assert [
        (value.name, value.number) for value in schema.POOL.FindEnumTypeByName(name).values
    ] == [(value, number) for number, value in enumerate(values.split())]


def test_a_reference_type_is_its_base_type_plus_100():
    data_type = schema.DataType
    assert (data_type.DT_FLOAT, data_type.DT_INT64, data_type.DT_HALF) == (1, 9, 19)
    assert (data_type.DT_BFLOAT16, data_type.DT_FLOAT8_E5M2, data_type.DT_UINT4) == (14, 24, 30)
    for name, number in data_type.items():
        if name != "DT_INVALID" and not name.endswith("_REF"):
            assert data_type.Value(f"{name}_REF") == number + 100


@each_row(
    ("name", "methods"),
    [
        (
            "tensorflow.ProfileAnalysis",
            """NewSession NewProfileSessionRequest NewProfileSessionResponse
            EnumSessions EnumProfileSessionsAndToolsRequest EnumProfileSessionsAndToolsResponse
            GetSessionToolData ProfileSessionDataRequest ProfileSessionDataResponse""",
        ),
        (
            "tensorflow.ProfilerService",
            """Profile ProfileRequest ProfileResponse
            Terminate TerminateRequest TerminateResponse
            Monitor MonitorRequest MonitorResponse
            StartContinuousProfiling ProfileRequest ContinuousProfilingResponse
            StopContinuousProfiling StopContinuousProfilingRequest StopContinuousProfilingResponse
            GetSnapshot GetSnapshotRequest ProfileResponse""",
        ),
    ],
)
def test_services_and_their_methods(name, methods):
    actual = [
        (method.name, method.input_type.full_name, method.output_type.full_name)
        for method in schema.service(name).methods
    ]
    words = methods.split()
    assert actual == [
        (words[i], f"tensorflow.{words[i + 1]}", f"tensorflow.{words[i + 2]}")
        for i in range(0, len(words), 3)
    ]


def test_json_names_are_lower_camel_case():
    def camel(name: str) -> str:
        return re.sub(r"_(.)", lambda match: match[1].upper(), name)

    for name in schema.SHORT_NAMES:
        entry = getattr(schema, name).DESCRIPTOR
        for field in getattr(entry, "fields", ()):
            assert field.json_name == camel(field.name), field.full_name


@each_row(
    ("name", "deprecated"),
    [
        ("tensorflow.MemoryStats", {2, 4, 6}),
        ("tensorflow.GraphDef", {3}),
        ("tensorflow.CostGraphDef.Node", {10, 11, 16}),
    ],
)
def test_fields_that_are_no_longer_written_say_so(name, deprecated):
    fields = schema.descriptor(name).fields
    assert {field.number for field in fields if field.GetOptions().deprecated} == deprecated


def test_only_graph_debug_info_has_explicit_presence_of_scalars():
    frame = schema.message("tensorflow.GraphDebugInfo.FileLineCol")(line=0)
    assert frame.HasField("line")
    assert not frame.HasField("col")
    assert frame.SerializeToString() == b"\x10\x00"
    assert schema.AllocationRecord(alloc_bytes=0).SerializeToString() == b""


def test_graph_debug_info_has_fixed_width_keys_and_packed_frame_ids():
    info = schema.GraphDebugInfo()
    info.traces_by_id[1].frame_id.extend([2, 3])
    one, two, three = (number.to_bytes(8, "little") for number in (1, 2, 3))
    assert info.SerializeToString() == b"\x32\x1d\x09" + one + b"\x12\x12\x12\x10" + two + three


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
