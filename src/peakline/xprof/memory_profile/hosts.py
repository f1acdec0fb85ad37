"""One ``MemoryProfile`` of those of several hosts, put together from their bytes.

An allocator of host ``a`` is known as ``a/ALLOCATOR``, a module's plane likewise, and modules are
numbered anew; everything else stays. The large parts, an allocator's profile each, are copied and
not parsed: they may be a timeline of millions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Any

from peakline.deadline import check_deadline
from peakline.xprof.memory_profile.output import json_string, map_entry

__all__ = ["join_json", "join_proto"]

Answers = Sequence[tuple[str, bytes]]
"""What each host answered, as `memory_profile_output` writes it; empty for one without threads."""

# Quotes inside of a JSON string are escaped, so that these stand for themselves wherever they are.
_HEAD = b'{"memoryProfilePerAllocator":{'
_BEGIN = b':{"memoryProfileSnapshots":['
_END = b"]}"
_REST = b'},"numHosts":'


def join_json(answers: Answers) -> bytes:
    """The answers of several hosts as one, in JSON."""
    answered = [(host, content) for host, content in answers if content]
    if not answered:
        return b""
    allocators: dict[str, memoryview] = {}
    modules: list[str] = []
    version = 0
    for host, content in answered:
        check_deadline()
        rest = content.rindex(_REST)
        for name, profile in _json_allocators(content, rest):
            allocators[f"{host}/{name}"] = profile
        told = json.loads(b'{"numHosts":' + content[rest + len(_REST) :])
        version = told["version"]
        for module in told["hloModules"]:
            plane = json_string(f"{host}/{module['planeName']}")
            modules.append(
                f'{{"name":{json_string(module["name"])},"startTimePs":"{module["startTimePs"]}",'
                f'"endTimePs":"{module["endTimePs"]}","id":"{len(modules)}","planeName":{plane}}}'
            )
    out = BytesIO()
    out.write(_HEAD)
    for number, name in enumerate(sorted(allocators)):
        out.write(f"{',' if number else ''}{json_string(name)}".encode())
        out.write(allocators[name])
    ids = ",".join(map(json_string, sorted(allocators)))
    out.write(_REST + f'{len(answers)},"memoryIds":[{ids}],"version":{version}'.encode())
    out.write(f',"hloModules":[{",".join(modules)}]}}'.encode())
    return out.getvalue()


def _json_allocators(content: bytes, end: int) -> Iterator[tuple[str, memoryview]]:
    """Each allocator's name and ``:{...}``, its profile after the name."""
    whole = memoryview(content)
    begin = content.find(_BEGIN, 0, end)
    key = len(_HEAD)
    while begin >= 0:
        following = content.find(_BEGIN, begin + 1, end)
        if following >= 0:
            # What stands between the end of this profile and the next one's key is a comma.
            until = content.rindex(_END + b',"', begin, following) + len(_END)
        else:
            until = end
        yield json.loads(content[key:begin]), whole[begin:until]
        begin, key = following, until + 1


def join_proto(answers: Answers) -> bytes:
    """The answers of several hosts as one, serialized."""
    from peakline.schema import MemoryProfile

    answered = [(host, content) for host, content in answers if content]
    if not answered:
        return b""
    allocators: dict[str, memoryview] = {}
    whole = MemoryProfile(num_hosts=len(answers))
    for host, content in answered:
        check_deadline()
        rest = bytearray()
        for number, start, inside, end in _fields(memoryview(content)):
            if number != _ALLOCATORS:
                rest += content[start:end]
                continue
            entry = {n: (i, e) for n, _, i, e in _fields(memoryview(content)[inside:end])}
            (key, key_end), (value, value_end) = entry[1], entry[2]
            name = content[inside + key : inside + key_end].decode()
            allocators[f"{host}/{name}"] = memoryview(content)[inside + value : inside + value_end]
        told: Any = MemoryProfile.FromString(bytes(rest))
        whole.version = told.version
        for module in told.hlo_modules:
            module.id = len(whole.hlo_modules)
            module.plane_name = f"{host}/{module.plane_name}"
            whole.hlo_modules.append(module)
    out = BytesIO()
    for name in sorted(allocators):
        out.write(map_entry(name, len(allocators[name])))
        out.write(allocators[name])
    whole.memory_ids.extend(sorted(allocators))
    out.write(whole.SerializeToString())
    return out.getvalue()


_ALLOCATORS = 1
"""MemoryProfile.memory_profile_per_allocator."""
_LENGTH = 2


def _fields(message: memoryview) -> Iterator[tuple[int, int, int, int]]:
    """Per field its number, where its tag, its content and the next field begin.

    The message is one that was serialized a moment ago: varints and length-delimited fields.
    """
    at = 0
    while at < len(message):
        start = at
        tag, at = _varint(message, at)
        value, after = _varint(message, at)
        end = after + value if tag & 7 == _LENGTH else after
        yield tag >> 3, start, after, end
        at = end


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
