"""Every file and every tiny message is recognised as what it is."""

import gzip
import io
import os
import pickle
import pickletools
import re
import tarfile
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest
from google.protobuf import json_format, text_format
from tests.each_row import each_row
from tests.formats.format_checks import all_verbs, ask_everything, run_verb
from tests.formats.format_samples import samples
from tests.hanging import no_hang

from peakline import schema
from peakline.errors import UnknownFormatError
from peakline.formats import open_reader
from peakline.formats.common.format import message_names
from peakline.formats.common.recognise import Form, recognise
from peakline.tables import Warnings

_ROOTS = [
    Path(__file__).parent.parent / "data",
    *map(Path, filter(None, os.environ.get("PEAKLINE_SAMPLES", "").split(":"))),
]

# What lies in the folders of samples is known by its name; the first that fits counts.
_NAMES = (
    (r"truth\.json$", ""),
    (r"\.xplane\.pb$", "xplane"),
    (r"tfprof_profile|\.zip$", ""),
    (r"\.hlo\.pb$", "hlo_proto"),
    (r"stepstats/.*stepstats\.pbtxt$", "step_stats"),
    (r"run_metadata.*\.(pb|pbtxt)$|op_stats/tf1_cnn_0\.pb$", "run_metadata"),
    (r"saved_model\.pb$", "saved_model"),
    (r"\.meta$", "meta_graph"),
    (r"graph.*\.(pb|pbtxt)$|frozen\.pb$", "graph_def"),
    (r"events\.out\.tfevents", "tfevents"),
    (r"\.pprof\.pb$", "pprof"),
    (r"\.pickle$", "torch_snapshot"),
    (r"-buffer-assignment(-values)?\.txt$|-memory-usage-report\.txt$", "hlo_assignment"),
    (r"_optimizations\.txt$|optimized_hlo\.txt$", "hlo_text"),
    (r"memory_timeline\.raw\.json$|\.(log|txt|md|py)$", "log"),
    (r"\.json$", "chrome_trace"),
)


def _files():
    return {
        f"{root.name}/{path.relative_to(root)}": path
        for root in _ROOTS
        for path in sorted(root.rglob("*"))
        if path.is_file() and "CORRUPT" not in path.name and "corpus" not in path.parts
    }.items()


@each_row(("name", "path"), _files())
def test_samples(name, path):
    data = path.read_bytes()
    if path.suffix == ".gz":
        name, data = name.removesuffix(".gz"), gzip.decompress(data)
    expected = next(form for pattern, form in _NAMES if re.search(pattern, name))
    assert recognise(data[: 1 << 20]).format == expected


def test_made_samples(root):
    result = {s.name: recognise(s.file).format for s in samples(root / "tests" / "data")}
    known = {s.name: s.format for s in samples(root / "tests" / "data")}
    assert {name: form for name, form in result.items() if form != "log"} == {
        name: form for name, form in known.items() if not name.endswith(".log")
    }


# Tiny messages.


def _message(name: str, text: str) -> Any:
    return text_format.Parse(text, schema.message(name)(), descriptor_pool=schema.POOL)


_CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
_CPU_PROFILE = """
    sample_type { type: 1 unit: 2 } sample { location_id: 1 value: 10000 }
    location { id: 1 line { function_id: 1 } } function { id: 1 name: 3 } period: 10000
    string_table: "" string_table: "cpu" string_table: "nanoseconds" string_table: "main"
"""
_TINY = [
    ("graph_def", 'node { name: "a" op: "NoOp" }'),
    ("graph_def", 'node { name: "a" }'),
    ("graph_def", 'node { name: "a" op: "NoOp" device: "/gpu:0" }'),
    ("graph_def", "versions { producer: 2474 }"),
    ("graph_def", "versions { producer: 27 min_consumer: 12 }"),
    ("graph_def", 'library { function { signature { name: "f" } } }'),
    ("graph_def", 'node { name: "x" op: "P" attr { key: "s" value { shape { dim { } } } } }'),
    ("run_metadata", 'partition_graphs { node { name: "a" op: "NoOp" } }'),
    ("run_metadata", f'step_stats {{ dev_stats {{ device: "{_CPU}" }} }}'),
    ("run_metadata", 'step_stats { dev_stats { device: "/cpu:0" node_stats { node_name: "a" } } }'),
    ("run_metadata", f'cost_graph {{ node {{ name: "a" device: "{_CPU}" }} }}'),
    ("run_metadata", 'function_graphs { pre_optimization_graph { node { name: "a" op: "b" } } }'),
    ("step_stats", 'dev_stats { device: "/cpu:0" }'),
    ("step_stats", f'dev_stats {{ device: "{_CPU}" }}'),
    ("step_stats", 'dev_stats { device: "/cpu:0" node_stats { all_start_micros: 1 } }'),
    ("meta_graph", 'graph_def { node { name: "a" op: "NoOp" } }'),
    ("meta_graph", "graph_def { versions { producer: 5 } }"),
    ("meta_graph", 'meta_info_def { tags: "serve" }'),
    ("meta_graph", 'meta_info_def { tags: "serve" } graph_def { node { name: "a" op: "NoOp" } }'),
    ("meta_graph", 'graph_def { node { name: "a" } } saver_def { filename_tensor_name: "f:0" }'),
    ("saved_model", "saved_model_schema_version: 1"),
    ("saved_model", 'saved_model_schema_version: 1 meta_graphs { meta_info_def { tags: "a" } }'),
    ("memory_log", 'record { time_ns: 1700000000000000000 step { step_id: 1 handle: "a" } }'),
    ("memory_log", 'record { tensor_allocation { step_id: -6 kernel_name: "a" } }'),
    ("memory_log", 'record { tensor_deallocation { allocation_id: 7 allocator_name: "cpu" } }'),
    ("memory_log", 'record { tensor_output { step_id: 1 kernel_name: "a" index: 1 } }'),
    ("memory_log", 'record { raw_allocation { operation: "a" num_bytes: 5 } }'),
    ("memory_log", 'record { raw_deallocation { operation: "a" deferred: true } }'),
    ("pprof", 'sample_type { type: 1 unit: 2 } string_table: "" string_table: "cpu"'),
    ("pprof", _CPU_PROFILE),
    ("xplane", 'planes { name: "/host:CPU" }'),
    ("xplane", 'planes { id: 1 name: "a" }'),
    ("xplane", 'planes { name: "/host:CPU" lines { name: "python" events { metadata_id: 1 } } }'),
]  # fmt: skip


@each_row(("form", "text"), _TINY)
def test_tiny_messages_in_every_form(form, text):
    message = _message(message_names()[form], text)
    on_lines = text_format.MessageToString(message, descriptor_pool=schema.POOL)
    angles = on_lines.replace("{", "<").replace("}", ">")
    json = json_format.MessageToJson(message, descriptor_pool=schema.POOL)
    in_one = json_format.MessageToJson(
        message, indent=None, preserving_proto_field_name=True, descriptor_pool=schema.POOL
    )
    assert recognise(message.SerializeToString()) == Form(form)
    for spelling in (text, on_lines, angles, f"# a comment\n\n# and another\n{text}"):
        assert recognise(spelling.encode()) == Form(form, "text")
    for spelling in (json, in_one):
        assert recognise(spelling.encode()) == Form(form, "json")


@each_row("field", ["errors", "warnings", "hostnames"])
def test_a_space_of_text_alone(field):
    assert recognise(schema.XSpace(**{field: ["worker"]}).SerializeToString()) == Form("xplane")


def test_a_devices_name_has_a_colon_and_a_nodes_has_none():
    node = schema.GraphDef(node=[{"name": "cpu"}]).SerializeToString()
    device = schema.StepStats(dev_stats=[{"device": "/cpu:0"}]).SerializeToString()
    assert schema.StepStats.FromString(node).dev_stats[0].device == "cpu"
    assert (recognise(node).format, recognise(device).format) == ("graph_def", "step_stats")


# Pickles.


@each_row("protocol", range(6))
@each_row("content", [{"segments": []}, [{"device": 0}], {}, []])
def test_pickles_of_every_protocol(protocol, content):
    data = pickle.dumps(content, protocol)
    assert recognise(data) == Form("torch_snapshot")
    # Without the numbers that nothing refers to.
    assert recognise(pickletools.optimize(data)) == Form("torch_snapshot")


# Text that is none of these.


@each_row(
    "text",
    [
        b"node: worker-3 started\n", b"versions: see below\n", b"{'loss': 0.5}\n",
        b"[INFO] 10:00 start\n", b"[2024-05-01 10:00:00] start\n",
        b'{"log": "Allocator ran out of memory"}\n{"log": "and again"}\n', b"(default) started\n",
        b"\n\nstart\n", b"\x1b[32mstart\x1b[0m\n", b"10%\b\b\b20%\b\b\b\r30%\n",
        b"\0" * 5000 + b"what is left of a log that was cut\n",
        b"caf\xe9 " + b"in Latin-1 " * 20,
        b"a zero\0 in a long line " + b"of text " * 20,
        b"\xef\xbb\xbfa byte order mark\n",
        "10% ███░░\n".encode(),
        ("\ufffd" * 40).encode() + b" through the wrong encoding\n",
    ],
)  # fmt: skip
def test_anything_else_is_a_log(text):
    assert recognise(text) == Form("log", "text")


@each_row(
    ("data", "note"),
    [
        ("text".encode("utf-16"), "UTF-16"),
        ("text".encode("utf-32"), "UTF-32"),
        (gzip.compress(b"text"), "gzip"),
        (b"PK\x03\x04" + bytes(20), "zip"),
        (b"\x28\xb5\x2f\xfd" + bytes(20), "zstd"),
        # export_memory_timeline of PyTorch 2.13: `.json`, and `.raw.json.gz` when unpacked.
        (b"[[1795867186712468, 1795867186712468], [[0, 4194304]]]", "export_chrome_trace"),
        (b"[[-1, 1, 4194304, 0], [1795867186712468115, 2, 4, 2]]", "export_chrome_trace"),
        (b'{"unit": "ns", "values": []}', "JSON with unit, values"),
        (b"\xa8\x01\x05" * 20, "protobuf"),
    ],
)
def test_what_cannot_be_read_is_named(data, note):
    form = recognise(data)
    assert form.format == ""
    assert note in form.note


def _tar(form: int, names: tuple[str, ...] = ("run/h.xplane.pb",)) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=form) as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = 3
            archive.addfile(member, io.BytesIO(b"abc"))
    return stream.getvalue()


def _old_tar() -> bytes:
    """As the seventh edition of Unix wrote it: no magic, only a checksum."""
    data = bytearray(_tar(tarfile.USTAR_FORMAT))
    data[257:512] = bytes(255)
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    return bytes(data)


def _tool_message() -> bytes:
    """What the overview page of XProf writes: parts of other messages as `Any`, no program."""
    part = b"\x0a\x3dtype.googleapis.com/tensorflow.profiler.PerGenericStepDetails"
    steps = b"\x22" + bytes([len(part)]) + part
    return b"\x12" + bytes([len(steps)]) + steps + b"\x32\x05\x08\x01\x10\x01\x28"


_TOOL = "what a tool of XProf answered"


@each_row(
    ("data", "note"),
    [
        (_tar(tarfile.USTAR_FORMAT), "a tar archive: unpack it first"),
        (_tar(tarfile.GNU_FORMAT), "a tar archive: unpack it first"),
        (_tar(tarfile.PAX_FORMAT, ("ü" * 90,)), "a tar archive: unpack it first"),
        (_old_tar(), "a tar archive: unpack it first"),
        (b"7z\xbc\xaf\x27\x1c\0\4", "a 7z archive"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64, "git lfs pull"),
        (b"version https://hawser.github.com/spec/v1\n", "git lfs pull"),
        (b"\xef\xbb\xbfversion https://git-lfs.github.com/spec/v1\r\n", "git lfs pull"),
        (b"../../.git/annex/objects/Fx/4K/SHA256E-s8--a.gz/SHA256E-s8--a.gz", "git annex get"),
        (b"/annex/objects/SHA256E-s8--a.pb\n", "git annex get"),
        (b"md5: 12\nouts:\n- md5: 34\n  path: trace.json\n", "dvc pull"),
        (b"\n<!DOCTYPE html>\n<html><title>trace.json at main</title>", "a page of a web site"),
        (b'[{"cols":[{"id":"a"}],"rows":[]}]', _TOOL),
        (b'[\n {"p": {"x": "1"},\n "cols": [], "rows": []}]', _TOOL),
        (b'{"byCategory":{"name":"byCategory"},"deviceType":"TPU v4"}', _TOOL),
        (b'{"memoryProfilePerAllocator":{}}', _TOOL),
        (_tool_message(), _TOOL),
    ],
)
def test_what_is_no_profile_says_what_to_do(data, note):
    form = recognise(data)
    assert form.format == ""
    assert note in form.note


def test_a_tar_of_a_run_that_is_packed(tmp_path):
    path = tmp_path / "run.tar.gz"
    path.write_bytes(gzip.compress(_tar(tarfile.GNU_FORMAT)))
    with pytest.raises(UnknownFormatError, match="a tar archive: unpack it first"):
        open_reader(str(path))


def test_a_snapshot_of_a_program_has_a_program():
    """Else the messages of others fit by the way."""
    assert recognise(_tool_message().replace(b"type.goog", b"type.exam")).format == ""


@each_row(
    "head",
    [
        b"# " * 500_000 + b"!",
        b"#\n" * 500_000,
        b"{" + b'"a":' * 250_000,
        b"{" + b", " * 500_000,
        b'{"a":' * 200_000,
        b'{"traceEvents":' + b"[" * 1_000_000,
        b'{"' + b'\\"' * 500_000,
        b"(d" * 500_000,
        b"\x0a\xff\xff\x03" + b"\x0a\x80\x80\x01" * 250_000,
    ],
)
def test_nothing_takes_the_square_of_what_it_looks_at(head):
    with no_hang():
        recognise(head[: 1 << 20])


CORPUS = Path(__file__).parent.parent / "data" / "corpus"
FILES = sorted(path for path in CORPUS.iterdir() if path.suffix != ".md")
WHOLE = Path(__file__).parent.parent / "data" / "graph_def" / "frozen.pb"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_it_is_answered_or_refused(file, tmp_path):
    path = tmp_path / file.name
    path.write_bytes(file.read_bytes())
    ask_everything(path, Random(1))
    for words in all_verbs(path, WHOLE):
        run_verb(words)


def _losses(file, first):
    """What is lost when the tables are read, ``first`` before the others."""
    warnings = Warnings()
    with closing(open_reader(str(file))) as reader:
        for table in sorted(reader.tables, key=lambda table: table != first):
            reader.read(table, warnings)
    return sorted((kind, count) for kind, count, _ in warnings.entries())


@each_row("name", ["formats-4400-391-buffer-assignment-values.txt", "formats-77-264-steps.pb"])
def test_what_is_lost_depends_on_no_order(name):
    with closing(open_reader(str(CORPUS / name))) as reader:
        tables = sorted(reader.tables)
    assert len({str(_losses(CORPUS / name, table)) for table in tables}) == 1
