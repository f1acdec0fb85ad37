"""One small whole file of every format that Peakline reads, in every form it is written in."""

import gzip
import json
import pickle
import random
import struct
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from google.protobuf import json_format, text_format
from google.protobuf.descriptor import FieldDescriptor
from tests.each_row import each_row
from tests.wire.slices import read_sample, slice_of

from peakline import schema
from peakline.formats.common.format import message_names

_ZERO = 1_700_000_000_000_000


@dataclass(frozen=True)
class Sample:
    """``data`` is a whole file of ``format``; ``kind`` says how it may be taken apart.

    ``wire``: a protobuf message, ``text``: lines, ``tree``: what `load` makes of it, ``dump``
    turning it back into bytes. ``wrap`` puts a message into the file that carries it.
    """

    name: str
    format: str
    data: bytes
    kind: str
    message: str = ""
    wrap: Callable[[bytes], bytes] = bytes
    load: Callable[[bytes], Any] = bytes
    dump: Callable[[Any], bytes] = bytes

    @property
    def file(self) -> bytes:
        """What is on the disk."""
        return self.wrap(self.data)


@cache
def samples(data: Path) -> tuple[Sample, ...]:
    """All of them, made from ``tests/data`` and by hand."""
    messages = _messages(data)
    result = [
        Sample(f"{name}.pb", form, message.SerializeToString(deterministic=True), "wire",
               message_names()[form])
        for name, form, message in messages
    ]  # fmt: skip
    for name, form, message in messages:
        if name in _ALSO_TEXT:
            text = text_format.MessageToString(message, descriptor_pool=schema.POOL)
            result.append(Sample(f"{name}.pbtxt", form, text.encode(), "text"))
            tree = json_format.MessageToDict(message, descriptor_pool=schema.POOL)
            result.append(_json(f"{name}.json", form, tree))
    run = next(message for name, _, message in messages if name == "run")
    result.append(
        Sample("run.tfevents", "tfevents", run.SerializeToString(), "wire",
               message_names()["run_metadata"], wrap=_events_file)
    )  # fmt: skip
    result += _logs(data)
    text = data / "xla_dump" / "module_0000.jit_flow.cpu_after_optimizations.txt"
    result.append(Sample("flow.hlo.txt", "hlo_text", text.read_bytes(), "text"))
    result += [_snapshot(protocol) for protocol in (0, 2, 4)]
    result.append(_json("trace.json", "chrome_trace", _torch_trace(data)))
    result.append(_json("tiny_trace.json", "chrome_trace", _TINY_TRACE))
    return tuple(result)


def texts_of_programs(data: Path) -> tuple[Sample, ...]:
    """What XLA writes of a program beside it: each kind of text once."""
    folders = ("xla_dump", "xla_live_range")
    paths = [
        path for folder in folders for path in sorted((data / folder).glob("*optimizations-*"))
    ]
    kinds = {path.name.rpartition("optimizations-")[2]: path for path in reversed(paths)}
    return tuple(
        Sample(name, "hlo_assignment", path.read_bytes(), "text") for name, path in kinds.items()
    )


_ALSO_TEXT = {"run", "steps", "graph", "meta", "model", "records", "heap", "space"}


# Protobuf messages.


def _messages(data: Path) -> list[tuple[str, str, Any]]:
    def of(form: str, content: bytes) -> Any:
        return schema.message(message_names()[form]).FromString(content)

    run = of("run_metadata", _unpacked(data / "run_metadata" / "tf1_grpc.pb.gz"))
    for device in run.step_stats.dev_stats:
        del device.node_stats[8:]
    for graph in run.partition_graphs:
        del graph.node[8:]
    cnn = of("run_metadata", _unpacked(data / "run_metadata" / "tf1_cnn_2.pb.gz"))
    for device in cnn.step_stats.dev_stats:
        del device.node_stats[60:]
    steps = schema.StepStats(dev_stats=cnn.step_stats.dev_stats)
    for device in steps.dev_stats:
        del device.node_stats[6:]
    graph = of("graph_def", (data / "graph_def" / "frozen.pb").read_bytes())
    for node in graph.node:
        for attr in node.attr.values():
            if len(attr.tensor.tensor_content) > 64:
                attr.tensor.tensor_content = attr.tensor.tensor_content[:64]
    model = of("saved_model", _unpacked(data / "graph_def" / "saved_model.pb.gz"))
    for held in model.meta_graphs:
        del held.graph_def.node[12:]
        del held.meta_info_def.stripped_op_list.op[3:]
        del held.graph_def.library.function[3:]
    meta = schema.MetaGraphDef.FromString(model.meta_graphs[0].SerializeToString())
    small = schema.GraphDef(versions=graph.versions, node=graph.node[:12])
    space = of("xplane", slice_of(_session(data), 20, 200))
    dumped = data / "hlo" / "module_0012.jit_chunk_attention.cpu_after_optimizations.hlo.pb"
    program = of("hlo_proto", dumped.read_bytes())
    heap = of("pprof", _unpacked(data / "pprof" / "device_memory.pprof.pb.gz"))
    return [
        ("run", "run_metadata", run),
        ("cnn", "run_metadata", cnn),
        ("steps", "step_stats", steps),
        ("frozen", "graph_def", graph),
        ("graph", "graph_def", small),
        ("meta", "meta_graph", meta),
        ("model", "saved_model", model),
        ("records", "memory_log", _memory_log()),
        ("heap", "pprof", heap),
        ("space", "xplane", space),
        ("program", "hlo_proto", program),
        ("module", "hlo_module", program.hlo_module),
        ("snapshot", "hlo_snapshot", schema.message("xla.HloSnapshot")(hlo=program)),
    ]


def _unpacked(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes())


def _session(data: Path) -> bytes:
    folder = data / "sessions" / "tf2_multihost" / "plugins" / "profile" / "2026_11_20_17_33_46"
    return read_sample(folder / "localhost_47507.xplane.pb")


def _memory_log() -> Any:
    """Six tensors and two raw buffers over two steps; one free is deferred, one id is unknown."""
    log = schema.message("peakline.MemoryLog")()

    def record(kind: str, **fields: Any) -> Any:
        made = log.record.add(time_ns=_ZERO * 1000 + 1000 * len(log.record), thread_id=7)
        part = getattr(made, kind)
        part.SetInParent()
        for name, value in fields.items():
            setattr(part, name, value)
        return part

    for step in (1, 2):
        record("step", step_id=step, handle=f"->loss:0//{step};0")
        for n in range(3):
            made = record("tensor_allocation", step_id=step, kernel_name=f"layer{n}/MatMul")
            made.tensor.dtype = 1
            made.tensor.shape.dim.add(size=64)
            buffer = made.tensor.allocation_description
            buffer.requested_bytes, buffer.allocated_bytes = 250, 256
            buffer.allocator_name, buffer.allocation_id = "gpu:0", 10 * step + n
            buffer.ptr = 4096 * (n + 1)
            made = record("tensor_output", step_id=step, kernel_name=f"layer{n}/MatMul", index=0)
            made.tensor.allocation_description.CopyFrom(buffer)
            made.tensor.dtype = 1
        record("raw_allocation", step_id=step, operation="Temp", num_bytes=512, ptr=65536,
               allocation_id=100 + step, allocator_name="gpu:0")  # fmt: skip
        record("raw_deallocation", step_id=step, operation="Temp", allocation_id=100 + step,
               allocator_name="gpu:0", deferred=step == 2)  # fmt: skip
        for n in range(2):
            record("tensor_deallocation", allocation_id=10 * step + n, allocator_name="gpu:0")
    record("tensor_deallocation", allocation_id=999, allocator_name="gpu:0")
    return log


def events_record(content: bytes) -> bytes:
    """A record of an events file with the checksums that it must have."""
    length = struct.pack("<Q", len(content))
    return length + _masked(length) + content + _masked(content)


def _masked(content: bytes) -> bytes:
    crc = 0xFFFFFFFF
    for byte in content:
        crc = _CRC32C[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _crc32c(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    return byte


_CRC32C = [_crc32c(byte) for byte in range(256)]
"""RFC 3720's checksum of every byte."""


def _events_file(run: bytes) -> bytes:
    event = schema.message("tensorflow.Event")
    version = event(wall_time=1.5, file_version="brain.Event:2")
    tagged = event(
        wall_time=2.5, step=4, tagged_run_metadata={"tag": "step 4", "run_metadata": run}
    )
    return b"".join(events_record(one.SerializeToString()) for one in (version, tagged))


# Text.


def _logs(data: Path) -> list[Sample]:
    names = ("tf1_control_flow.log.gz", "session_default_allocator.log.gz")
    result = []
    for name in names:
        lines = _unpacked(data / "memory_log" / name).splitlines(keepends=True)
        result.append(Sample(name.removesuffix(".gz"), "memory_log", b"".join(lines[:60]), "text"))
    report = _unpacked(data / "oom_report" / "tf_bfc_oom.log.gz")
    result.append(Sample("tf_bfc_oom.log", "oom_report", report, "text"))
    result += [
        Sample(f"{printed.stem}.log", "op_table", printed.read_bytes(), "text")
        for printed in sorted((data / "op_table").iterdir())
    ]
    result.append(Sample("texts.log", "oom_report", _OUT_OF_MEMORY.encode(), "text"))
    return result


_OUT_OF_MEMORY = """\
epoch 3
Traceback (most recent call last):
  File "train.py", line 40, in <module>
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total \
capacity of 23.69 GiB of which 1.08 GiB is free. Process 71 has 22.60 GiB memory in use. Of the \
allocated memory 21.03 GiB is allocated by PyTorch, and 1.26 GiB is reserved by PyTorch but \
unallocated. If reserved but unallocated memory is large try setting \
PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.
2024-05-01 10:00:00.000000: W external/local_xla/xla/tsl/framework/bfc_allocator.cc:497] \
Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.50GiB (rounded to 1610612736)\
requested by op while/MatMul
"""


# Pickles and JSON.


def _snapshot(protocol: int) -> Sample:
    return Sample(
        f"snapshot{protocol}.pickle",
        "torch_snapshot",
        pickle.dumps(_torch_snapshot(), protocol),
        "tree",
        load=pickle.loads,
        dump=lambda tree: pickle.dumps(tree, protocol),
    )


def _torch_snapshot() -> dict[str, Any]:
    rng = random.Random(5)
    frames = [
        {"name": "forward", "filename": "/home/me/model.py", "line": 12},
        {"name": "main", "filename": "train.py", "line": 3},
    ]
    base, trace, live = 0x7F0000000000, [], []

    def entry(action: str, addr: int, size: int, **more: Any) -> None:
        trace.append(
            {"action": action, "addr": addr, "size": size, "stream": 0, "frames": frames,
             "time_us": _ZERO + len(trace), **more}
        )  # fmt: skip

    entry("segment_alloc", base, 1 << 21)
    for n in range(30):
        if live and rng.random() < 0.4:
            addr, size = live.pop(rng.randrange(len(live)))
            entry("free_requested", addr, size)
            entry("free_completed", addr, size)
        else:
            live.append((base + 4096 * n, 512 * rng.randrange(1, 8)))
            entry("alloc", *live[-1])
    entry("oom", base, 1 << 30, device_free=5 << 20)
    entry("snapshot", 0, 0)
    state = {"state": "active_allocated", "frames": frames}
    blocks = [{"address": a, "size": s, "requested_size": s - 8, **state} for a, s in sorted(live)]
    size = sum(block["size"] for block in blocks)
    segment = {
        "device": 0, "address": base, "total_size": size, "allocated_size": 4096,
        "active_size": 4096, "requested_size": 4000, "stream": 0, "segment_type": "large",
        "segment_pool_id": (0, 0), "is_expandable": False, "frames": frames, "blocks": blocks,
    }  # fmt: skip
    return {
        "segments": [segment],
        "device_traces": [trace, []],
        "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1},
        "external_annotations": [],
    }


def _json(name: str, form: str, tree: Any) -> Sample:
    return Sample(name, form, _dumped(tree), "tree", load=json.loads, dump=_dumped)


def _dumped(tree: Any) -> bytes:
    return json.dumps(tree, indent=1).encode()


def _torch_trace(data: Path) -> Any:
    trace = json.loads(_unpacked(data / "chrome_trace" / "noleak.pt.trace.json.gz"))
    events = trace["traceEvents"]
    memory = [event for event in events if event.get("name") == "[memory]"]
    others = [event for event in events if event.get("name") != "[memory]"]
    names = [event for event in others if event.get("ph") == "M"]
    steps = [event for event in others if "ProfilerStep" in str(event.get("name"))]
    trace["traceEvents"] = names + others[:60] + steps + memory[:40]
    return trace


_TINY_TRACE = [
    {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "worker"}},
    {"ph": "M", "pid": 1, "tid": 2, "name": "thread_name", "args": {"name": "main"}},
    {"ph": "X", "pid": 1, "tid": 2, "ts": 1.5, "dur": 20, "name": "step", "args": {"step_num": 4}},
    {"ph": "B", "pid": 1, "tid": 2, "ts": 2, "name": "op"},
    {"ph": "E", "pid": 1, "tid": 2, "ts": 5.25, "name": "op"},
    {"ph": "b", "cat": "a", "id": "0x1", "pid": 1, "tid": 2, "ts": 3, "name": "copy"},
    {"ph": "e", "cat": "a", "id": "0x1", "pid": 1, "tid": 2, "ts": 9, "name": "copy"},
    {"ph": "s", "id": 7, "pid": 1, "tid": 2, "ts": 3, "name": "flow", "cat": "f"},
    {"ph": "f", "bp": "e", "id": 7, "pid": 1, "tid": 2, "ts": 8, "name": "flow", "cat": "f"},
    {"ph": "C", "pid": 1, "ts": 4, "name": "memory", "args": {"bytes": 17, "blocks": 2.5}},
    {"ph": "i", "pid": 1, "tid": 2, "ts": 6, "name": "mark", "s": "t"},
    {"ph": "N", "pid": 1, "tid": 2, "ts": 1, "id": 3, "name": "object"},
]


_INTEGERS = (
    0, 1, 2, 3, 7, 63, 64, 127, 128, 255, 1000, 4095, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1,
    2**32, 2**40, 2**53 + 1, 2**62, 2**63 - 1,
)  # fmt: skip
_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-300, 1e18, 1e300, float("nan"), float("inf"), -1e19)
_TEXTS = (
    "", "x", "a/b/c", "/" * 40, "a" * 3000, "\0", "\n", "\x1b[31m", "é\u202e", "%s{0}", "1", "-1",
    "/host:CPU", "/device:GPU:0", "/device:TPU:0", "/host:metadata", "Task Environment", "Steps",
    "XLA Ops", "XLA Modules", "MemoryAllocation", "MemoryDeallocation", "allocator_name",
    "bytes_allocated", "requested_bytes", "peak_bytes_in_use", "address", "tf_op", "hlo_op",
    "hlo_module", "hlo_proto", "group_id", "correlation_id", "step_num", "train", "while", "fusion",
    "tuple", "parameter", "call", "f32[2,3]{1,0}", "$file.py:7 f", "ProfilerStep#1", "bytes",
    "space", "objects", "NoOp", "_SINK", "Const", "^a:0", "a:1",
)  # fmt: skip
_WIDTHS = {
    FieldDescriptor.CPPTYPE_INT32: (31, True), FieldDescriptor.CPPTYPE_INT64: (63, True),
    FieldDescriptor.CPPTYPE_UINT32: (32, False), FieldDescriptor.CPPTYPE_UINT64: (64, False),
}  # fmt: skip
_MOST_CHANGES = 4
_MOST_MESSAGES = 4000
_DEPTH = 5


def restructured(rng: Random, sample: Sample) -> bytes:
    """``sample``, a protobuf message, with a few fields set, taken away, repeated or exchanged."""
    message = deepcopy(_parsed(sample))
    for _ in range(rng.randrange(1, _MOST_CHANGES + 1)):
        target = rng.choice(_messages_in(message))
        rng.choice((_set, _set, _set, _take_away, _repeat, _move, _exchange))(rng, target, message)
    try:
        return sample.wrap(message.SerializeToString())
    except ValueError:  # larger than a message may be
        return sample.file


@cache
def _parsed(sample: Sample) -> Any:
    return schema.message(sample.message).FromString(sample.data)


def _messages_in(message: Any) -> list[Any]:
    """The message and those in it, the first of them where there are many."""
    result = [message]
    for holder in result:
        if len(result) > _MOST_MESSAGES:
            break
        for field, value in holder.ListFields():
            if field.message_type is None:
                continue
            if not _is_repeated(field):
                result.append(value)
            elif field.message_type.GetOptions().map_entry:
                if field.message_type.fields_by_name["value"].message_type is not None:
                    result += [value[key] for key in value]
            else:
                result += list(value)
    return result


def _is_repeated(field: FieldDescriptor) -> bool:
    return bool(field.is_repeated)


def _value(rng: Random, field: FieldDescriptor, depth: int = 0) -> Any:
    """A value of the field's type: often one that a bound could get wrong."""
    kind = field.cpp_type
    if kind in _WIDTHS:
        bits, signed = _WIDTHS[kind]
        value = rng.choice(_INTEGERS) if rng.random() < 0.8 else rng.getrandbits(bits)
        value &= (1 << bits) - 1
        return -value if signed and rng.random() < 0.25 else value
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return rng.random() < 0.5
    if kind in (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT):
        value = rng.choice(_FLOATS)
        return value if kind == FieldDescriptor.CPPTYPE_DOUBLE or abs(value) < 1e38 else 3e38
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        return rng.choice([value.number for value in field.enum_type.values])
    if field.type == FieldDescriptor.TYPE_BYTES:
        return rng.choice((b"", b"\xff" * 9, struct.pack("<q", -1), rng.randbytes(30)))
    if kind == FieldDescriptor.CPPTYPE_STRING:
        return rng.choice(_TEXTS)
    made = schema.message(field.message_type.full_name)()
    if depth < _DEPTH:
        for inner in rng.sample(
            list(field.message_type.fields), min(3, len(made.DESCRIPTOR.fields))
        ):
            _put(rng, made, inner, depth + 1)
    return made


def _put(rng: Random, target: Any, field: FieldDescriptor, depth: int = 0) -> None:
    """Give the field another value, or one more."""
    value = _value(rng, field, depth)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        key = value.key
        entries = getattr(target, field.name)
        if field.message_type.fields_by_name["value"].message_type is None:
            entries[key] = value.value
        else:
            entries[key].CopyFrom(value.value)
    elif _is_repeated(field):
        entries = getattr(target, field.name)
        if entries and rng.random() < 0.4:
            del entries[rng.randrange(len(entries))]
        entries.extend([value] * rng.choice((1, 1, 1, 2, 30)))
    elif field.message_type is not None:
        getattr(target, field.name).CopyFrom(value)
    else:
        setattr(target, field.name, value)


def _set(rng: Random, target: Any, _: Any) -> None:
    fields = list(target.DESCRIPTOR.fields)
    present = [field for field, _ in target.ListFields()]
    if fields:
        _put(rng, target, rng.choice(present if present and rng.random() < 0.7 else fields))


def _take_away(rng: Random, target: Any, _: Any) -> None:
    present = [field for field, _ in target.ListFields()]
    if present:
        target.ClearField(rng.choice(present).name)


def _lists(target: Any) -> list[Any]:
    return [
        value
        for field, value in target.ListFields()
        if _is_repeated(field)
        and not (field.message_type is not None and field.message_type.GetOptions().map_entry)
    ]


def _repeat(rng: Random, target: Any, _: Any) -> None:
    lists = _lists(target)
    if lists:
        chosen = rng.choice(lists)
        chosen.extend([deepcopy(rng.choice(list(chosen)))] * rng.choice((1, 2, 50)))


def _move(rng: Random, target: Any, _: Any) -> None:
    """The entries of a list in another order."""
    lists = _lists(target)
    if lists:
        chosen = rng.choice(lists)
        entries = deepcopy(list(chosen))
        rng.shuffle(entries)
        del chosen[:]
        chosen.extend(entries)


def _exchange(rng: Random, target: Any, whole: Any) -> None:
    """One message becomes what another of its kind is; it may be in it, or hold it."""
    others = [one for one in _messages_in(whole) if one.DESCRIPTOR is target.DESCRIPTOR]
    if len(others) > 1 and target is not whole:
        target.CopyFrom(deepcopy(rng.choice(others)))


ALL = samples(Path(__file__).parent.parent / "data")
BY_NAME = {sample.name: sample for sample in ALL}
ONE_OF_EACH = {sample.format: sample for sample in reversed(ALL)}


def every(result):
    return each_row("made", result)
