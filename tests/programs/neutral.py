"""Recordings without the names of the machine: its host, its folders. Needs no runtime."""

import sys
from pathlib import Path


def with_neutral_folders(space: bytes, written_to: str) -> bytes:
    """An XSpace with other folders of the same length: the environment's, that of the programs,
    and ``written_to``, which the options of the profile name.
    """
    here = str(Path(__file__).resolve().parent)
    for folder, other in ((sys.prefix, "/opt/environment"), (here, "/src/programs")):
        padded = (other + "-" * len(folder))[: len(folder)]
        space = space.replace(f"{folder}/".encode(), f"{padded}/".encode())
    return space.replace(written_to.encode(), f"/{'logdir':-<{len(written_to) - 1}}".encode())


def with_neutral_host(space: bytes) -> bytes:
    """An XSpace with another host name: field 4 of the message, ``hostnames``, and no other."""
    result = bytearray()
    place = 0
    while place < len(space):
        start = place
        tag, place = _varint(space, place)
        if tag & 7 != 2:
            raise ValueError(f"an XSpace has only length-delimited fields, not tag {tag}")
        size, place = _varint(space, place)
        place += size
        result += b"\x22\x04host" if tag >> 3 == 4 else space[start:place]
    return bytes(result)


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
