"""Files of every format whose every name is an attack on what reads an answer."""

import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError
from tests.formats.format_samples import Sample, samples
from tests.sweeps import DATA
from tests.wire.slices import read_sample

from peakline import schema
from peakline.formats.common.format import message_names

ATTACKS = (
    "##[set-output name=sarif]/etc/passwd",
    "::error file=a.py,line=1::all is well",
    "\u00a0\u2003::add-mask::e",
    "##vso[task.setvariable variable=x]y",
    "##teamcity[buildStatus status='SUCCESS']",
    "\u200b::stop-commands::x",
    "#\u00ad#\u200b[add-matcher]m.json",
    "\r::set-env name=PATH::/tmp",
    "\n::group::x\n##[endgroup]",
    "\u2028::warning::x",
    "\x1b[0Ksection_start:1560896352:mine\r\x1b[0KHeader",
    "--- a group",
    "+++ an open group",
    "^^^ +++",
    "\x1b]1338;url='https://evil.example/x.png'\x07",
    "\x1b_bk;t=1\x07",
    "travis_fold:start:x\r",
    "\x1b[2J\x1b[31m\u202e",
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "![x](https://evil.example/x.png) [y](javascript:alert(1))",
    "`|`</code>@everyone #1 | <b>",
    '" onmouseover="alert(1)" x=\'',
    "=cmd|' /C calc'!A0",
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "+1+1\t=1",
    "${{ secrets.TOKEN }}$(touch x)`touch x`",
    "%0A::error::x%0D##[error]x",
)
_RECOGNISED = {
    "opcode", "stat_metadata.name", "XPlane.name", "device_type", "type", "type_attr", "key",
    "comparison_direction", "replica_id", "producer_name", "file_version",
}  # fmt: skip
"""Fields that say what a thing is: with another text it is no such thing any more."""


_MARKS = {"MemoryAllocation", "MemoryDeallocation", "process_name", "thread_name", "[memory]"}
"""Names of events that say what they are."""


def attacked(text: str) -> str:
    """``text`` with an attack before or behind it, always the same for the same text."""
    if text in _MARKS:
        return text
    number = zlib.crc32(text.encode("utf-8", "surrogatepass"))
    attack = ATTACKS[number // 2 % len(ATTACKS)]
    return f"{attack}{text}" if number % 2 else f"{text}{attack}"


def in_message(message: Any) -> None:
    """Attack every text of a message and of the messages within, also of programs as bytes."""
    for field, value in message.ListFields():
        key = f"{message.DESCRIPTOR.name}.{field.name}"
        if field.name in _RECOGNISED or key in _RECOGNISED:
            continue
        is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
        if is_map:
            if field.name == "stat_metadata":
                continue
            for name in list(value):
                if hasattr(value[name], "ListFields"):
                    in_message(value[name])
                elif isinstance(value[name], str):
                    value[name] = attacked(value[name])
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            for one in value if field.is_repeated else [value]:
                in_message(one)
        elif field.type == FieldDescriptor.TYPE_STRING:
            if field.is_repeated:
                value[:] = [attacked(one) for one in value]
            else:
                setattr(message, field.name, attacked(value))
        elif field.name == "bytes_value" and not field.is_repeated:
            program = schema.message("xla.HloProto")()
            try:
                program.ParseFromString(value)
            except DecodeError:
                continue
            if program.hlo_module.computations:
                in_message(program)
                setattr(message, field.name, program.SerializeToString())


def in_tree(tree: Any, name: str = "") -> Any:
    """``tree`` with every text in it attacked, but for those that say what a thing is."""
    if isinstance(tree, dict):
        return {key: in_tree(value, str(key)) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(in_tree(one, name) for one in tree)
    is_name = isinstance(tree, str) and name not in {"ph", "cat", "action", "state", "segment_type"}
    return attacked(tree) if is_name else tree


_QUOTED = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def _spelled(text: str) -> str:
    return "".join(
        one if one.isprintable() and one not in '"\\' else f"\\{byte:03o}"
        for one in text
        for byte in ([0] if one.isprintable() and one not in '"\\' else one.encode())
    )


def in_text(text: str) -> str:
    """``text`` with what stands in quotes attacked, spelled as protobuf's text has it."""
    return _QUOTED.sub(lambda match: f'"{match[1]}{_spelled(attacked(match[1]))}"', text)


@dataclass(frozen=True)
class Attack:
    """A file, by its name, and what is in it."""

    name: str
    content: bytes


def _of(sample: Sample) -> Attack:
    if sample.kind == "wire":
        message = schema.message(sample.message).FromString(sample.data)
        in_message(message)
        content = sample.wrap(message.SerializeToString())
    elif sample.name.endswith(".json") and sample.format != "chrome_trace":
        message = schema.message(message_names()[sample.format])()
        json_format.Parse(sample.data, message, descriptor_pool=schema.POOL)
        in_message(message)
        tree = json_format.MessageToDict(message, descriptor_pool=schema.POOL)
        content = sample.dump(tree)
    elif sample.kind == "tree":
        content = sample.dump(in_tree(sample.load(sample.data)))
    else:
        content = sample.wrap(in_text(sample.data.decode()).encode())
    return Attack(sample.name, content)


_RICH = {
    "jax.xplane.pb": "sessions/jax_cpu/plugins/profile/2026_11_20_17_20_28/vm.xplane.pb.gz",
    "leak.xplane.pb": "programs/leak_list.xplane.pb.gz",
    "input.xplane.pb": "programs/time/input_bound.xplane.pb.gz",
    "beams.xplane.pb": "fit/beam_decoding/65536.xplane.pb.gz",
}


@cache
def rich(name: str) -> Attack:
    """A real recording, by its name in `_RICH`, all of whose names are attacks."""
    space = schema.message("tensorflow.profiler.XSpace")()
    space.ParseFromString(read_sample(DATA / _RICH[name]))
    in_message(space)
    return Attack(name, space.SerializeToString())


@cache
def attacks() -> tuple[Attack, ...]:
    """A small file of every format, all of whose names are attacks."""
    return tuple(map(_of, samples(DATA)))


def every() -> Iterator[tuple[str, Callable[[], Attack]]]:
    """All of them by name, each made when it is needed."""
    for name in _RICH:
        yield name, lambda name=name: rich(name)
    for place, sample in enumerate(samples(DATA)):
        yield sample.name, lambda place=place: attacks()[place]
