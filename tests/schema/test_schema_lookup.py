"""Names lead to classes, and the private pool keeps to itself."""

import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import pytest
from google.protobuf import descriptor_pool
from google.protobuf.message import Message
from tests.each_row import each_row

from peakline import schema


def run_python(program: str) -> str:
    """What a program prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_short_and_full_names_give_one_class():
    assert schema.message("tensorflow.profiler.XSpace") is schema.XSpace
    assert schema.XSpace.DESCRIPTOR is schema.descriptor("tensorflow.profiler.XSpace")
    assert schema.message("tensorflow.AttrValue.ListValue") is schema.AttrValue.ListValue
    assert schema.RunMetadata.DESCRIPTOR.full_name == "tensorflow.RunMetadata"
    assert schema.Memory.DESCRIPTOR.full_name == "tensorflow.tfprof.Memory"


def test_every_exported_name_is_there():
    assert {"XSpace", "MemoryProfile", "GraphDef", "DataType", "message"} <= set(schema.__all__)
    assert "Any" not in schema.__all__
    assert set(schema.__all__) <= set(dir(schema))
    for name in schema.__all__:
        assert getattr(schema, name) is getattr(schema, name)


def test_every_top_level_type_has_a_short_name_of_its_own():
    full_names = [getattr(schema, name).DESCRIPTOR.full_name for name in schema.SHORT_NAMES]
    assert len(full_names) == len(set(full_names)) == 253
    assert all(name.rpartition(".")[2] in schema.SHORT_NAMES for name in full_names)


def test_an_unknown_name_is_an_error():
    with pytest.raises(AttributeError, match="no attribute 'XSpaces'"):
        _ = schema.XSpaces
    for lookup in (schema.message, schema.descriptor, schema.service):
        with pytest.raises(KeyError):
            lookup("tensorflow.Nothing")
    with pytest.raises(KeyError):
        schema.enum_name("tensorflow.Nothing", 0)


def test_enum_name():
    assert schema.enum_name("tensorflow.DataType", 101) == "DT_FLOAT_REF"
    assert schema.enum_name("tensorflow.ProfileOptions.DeviceType", 2) == "GPU"
    assert schema.enum_name("tensorflow.profiler.MemoryActivity", 99) is None


def test_threads_get_one_class():
    with ThreadPoolExecutor(8) as threads:
        names = ["tensorflow.SavedModel"] * 64
        assert len(set(threads.map(schema.message, names))) == 1


def test_the_default_pool_does_not_know_our_files():
    default = descriptor_pool.Default()
    paths = {getattr(schema, name).DESCRIPTOR.file.name for name in schema.SHORT_NAMES}
    assert len(paths) == 46
    for path in paths:
        with pytest.raises(KeyError):
            default.FindFileByName(path)
    any_class = schema.message("google.protobuf.Any")
    assert issubclass(any_class, Message)
    assert any_class.DESCRIPTOR.file.pool is schema.POOL


@each_row("ours_first", [True, False])
def test_other_definitions_of_the_same_names_do_no_harm(ours_first):
    ours = "from peakline.schema import MemoryLogStep"
    theirs = """
from google.protobuf import descriptor_pb2, descriptor_pool
file = descriptor_pb2.FileDescriptorProto(
    name="tensorflow/core/framework/log_memory.proto", package="tensorflow", syntax="proto3"
)
file.message_type.add(name="MemoryLogStep").field.add(name="other", number=9, type=5, label=1)
descriptor_pool.Default().AddSerializedFile(file.SerializeToString())
"""
    check = """
other = descriptor_pool.Default().FindMessageTypeByName("tensorflow.MemoryLogStep")
print([field.name for field in other.fields], MemoryLogStep(handle="h").handle)
"""
    parts = [ours, theirs] if ours_first else [theirs, ours]
    assert run_python("\n".join([*parts, check])) == "['other'] h"


def test_importing_loads_nothing_heavy():
    loaded = run_python(
        """
        import sys
        import peakline.schema
        heavy = {"numpy", "pyarrow", "duckdb", "pydantic", "grpc", "click", "rich"}
        print(sorted(heavy & set(sys.modules)))
        """
    )
    assert loaded == "[]"
