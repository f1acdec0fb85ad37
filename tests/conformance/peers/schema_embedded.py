"""Finds file descriptors inside a shared library. Runs in the peers' environment.

Generated C++ code holds each file's serialised ``FileDescriptorProto`` as a plain string
literal. Some files have no Python module in any published package; this is where their
upstream definition can be had.
"""

import mmap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

_NAME, _PACKAGE, _LENGTH_DELIMITED = 1, 2, 2
_FIELDS = {field.number for field in FileDescriptorProto.DESCRIPTOR.fields}


def embedded_pool(library: Path, paths: Sequence[str]) -> DescriptorPool:
    """A pool of those files of ``paths`` that ``library`` embeds, which must be self-contained."""
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        result = {path: file for path in paths for file in _embedded_files(data, path)}
    pool = DescriptorPool()
    for path in result:
        _add(pool, result, path)
    return pool


def _add(pool: DescriptorPool, result: Mapping[str, FileDescriptorProto], path: str) -> None:
    for dependency in result[path].dependency:
        _add(pool, result, dependency)
    pool.AddSerializedFile(result[path].SerializeToString())


def _embedded_files(data: mmap.mmap, path: str) -> Iterator[FileDescriptorProto]:
    pattern = bytes([_NAME << 3 | _LENGTH_DELIMITED, len(path)]) + path.encode()
    start = data.find(pattern)
    while start >= 0:
        file = FileDescriptorProto.FromString(data[start : _end(data, start)])
        # A file's name also stands in the import lists of others and in debug tables.
        if file.package:
            yield file
            return
        start = data.find(pattern, start + 1)


def _end(data: mmap.mmap, start: int) -> int:
    """Where the message that begins at ``start`` ends: at the literal's closing zero byte."""
    position = start
    while True:
        tag, after = _varint(data, position)
        number, wire_type = tag >> 3, tag & 7
        if number not in _FIELDS or (number == _NAME and position > start):
            return position
        if wire_type == _LENGTH_DELIMITED:
            length, after = _varint(data, after)
            position = after + length
        else:
            position = _varint(data, after)[1]


def _varint(data: mmap.mmap, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position += 1
        shift += 7
        if byte < 0x80:
            return value, position
