"""Damaging files of every format: bytes, lines of text, and what JSON and pickles hold."""

import gzip
from collections.abc import Iterator
from copy import deepcopy
from random import Random
from typing import Any

from tests.formats.format_samples import Sample, restructured
from tests.wire.mutations import mutate, sized_fields

from peakline import schema


def dice(seed: int, n: int) -> Random:
    """What decides about mutant ``n``: the same for the same two numbers."""
    return Random(f"{seed} {n}")


def damaged(rng: Random, sample: Sample) -> bytes:
    """``sample`` as a file, damaged in a way that fits how it is written."""
    if rng.random() < 0.04:
        return _in_gzip(rng, sample.file)
    if sample.kind == "tree" and rng.random() < 0.6:
        return sample.dump(_other_tree(rng, sample.load(sample.data)))
    if sample.kind == "text" or (sample.name.endswith(".json") and rng.random() < 0.5):
        return _other_text(rng, sample.data)
    if sample.kind == "wire" and rng.random() < 0.5:
        return restructured(rng, sample)
    if sample.kind == "wire":
        sized = sized_fields(sample.data, schema.descriptor(sample.message))
        data = sample.wrap(mutate(rng, sample.data, sized))
        # What carries the message is damaged as well, now and then.
        return mutate(rng, data, []) if sample.wrap is not bytes and rng.random() < 0.4 else data
    return mutate(rng, sample.file, [])


def _in_gzip(rng: Random, file: bytes) -> bytes:
    packed = gzip.compress(file)
    return mutate(rng, packed, []) if rng.random() < 0.7 else packed + b"and more"


# Lines of text.

_PIECES = (
    b"{", b"}", b"{ ", b" }", b"<", b">", b"[", b"]", b'"', b"'", b"\\", b":", b",", b"-", b"#",
    b"\n", b"\r\n", b"\r", b"\t", b"\0", b"\x1b[31m", b"\xff\xfe", b"\xc3", b"\xef\xbb\xbf",
    b"\\x", b"\\u12", b'"\\ud800"', b"9" * 30, b"-1", b"1e999", b"nan", b"-inf", b"0x", b"1.5.2",
    b"18446744073709551615", b"9223372036854775808", b"-9223372036854775809", b"null", b"true",
    b"__LOG_MEMORY__", b"__LOG_MEMORY__ MemoryLogTensorAllocation { ", b"[REDACTED]",
    b"goo.gle/debugproto ", b"{" * 200, b"[" * 200, b"node { " * 150, b"A" * 5000,
    b"ran out of memory trying to allocate ", b"2.5EiB", b"Chunk at ", b"bins ", b"Stats: ",
    b"CUDA out of memory. Tried to allocate ", b"Limit: ", b"in use ", b"7f0000000000",
)  # fmt: skip


def _other_text(rng: Random, data: bytes) -> bytes:
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        change = rng.choice(
            (_insert, _insert, _replace_word, _replace_word, _drop_line, _double_line, _cut_line,
             _mix_lines, _move, _bytes, _truncate, _wide)
        )  # fmt: skip
        data = change(rng, data)
    return data


def _insert(rng: Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(_PIECES) + data[at:]


def _replace_word(rng: Random, data: bytes) -> bytes:
    """A number or a name made another one."""
    at = rng.randrange(len(data) + 1)
    while at < len(data) and not data[at : at + 1].isalnum():
        at += 1
    end = at
    while end < len(data) and (data[end : end + 1].isalnum() or data[end] in b"._"):
        end += 1
    return data[:at] + rng.choice(_PIECES) + data[end:]


def _lines(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True) or [b""]


def _drop_line(rng: Random, data: bytes) -> bytes:
    lines = _lines(data)
    del lines[rng.randrange(len(lines))]
    return b"".join(lines)


def _double_line(rng: Random, data: bytes) -> bytes:
    lines = _lines(data)
    at = rng.randrange(len(lines))
    lines[at] *= rng.choice((2, 2, 3, 50))
    return b"".join(lines)


def _cut_line(rng: Random, data: bytes) -> bytes:
    lines = _lines(data)
    at = rng.randrange(len(lines))
    lines[at] = lines[at][: rng.randrange(len(lines[at]) + 1)] + rng.choice((b"", b"\n"))
    return b"".join(lines)


def _mix_lines(rng: Random, data: bytes) -> bytes:
    """One line written into the middle of another, as two processes do."""
    lines = _lines(data)
    line, other = rng.choice(lines), rng.randrange(len(lines))
    cut = rng.randrange(len(lines[other]) + 1)
    lines[other] = lines[other][:cut] + line + lines[other][cut:]
    return b"".join(lines)


def _move(rng: Random, data: bytes) -> bytes:
    lines = _lines(data)
    lines.insert(rng.randrange(len(lines)), lines.pop(rng.randrange(len(lines))))
    return b"".join(lines)


def _bytes(rng: Random, data: bytes) -> bytes:
    return mutate(rng, data, [])


def _truncate(rng: Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _wide(rng: Random, data: bytes) -> bytes:
    """Another encoding, or other ends of lines."""
    if rng.random() < 0.7:
        return data.replace(b"\n", rng.choice((b"\r\n", b"\r", b" ")))
    return data.decode("utf-8", "replace").encode(rng.choice(("utf-16", "utf-32", "utf-8-sig")))


# What JSON and pickles hold.


def _other_tree(rng: Random, tree: Any) -> Any:
    tree = deepcopy(tree)
    for _ in range(rng.choice((1, 1, 2, 4))):
        places = list(_places(tree))
        if not places:
            return tree
        holder, key = rng.choice(places)
        match rng.randrange(6):
            case 0:
                del holder[key]
            case 1:
                other, place = rng.choice(places)
                # Not what holds itself: JSON has no way to write that.
                holder[key] = deepcopy(other[place])
            case 2 if isinstance(holder, list):
                holder[key:key] = [deepcopy(holder[key])] * rng.choice((1, 2, 100))
            case 3 if isinstance(holder, dict):
                holder[rng.choice(("", "x", "size", "ts", "args", "0", "\ud800"))] = _value(rng)
            case _:
                holder[key] = _value(rng)
    return tree


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Everything that can be replaced: what holds it, and under which key."""
    queue = [tree]
    while queue:
        holder = queue.pop()
        items: Any = ()
        if isinstance(holder, dict):
            items = list(holder.items())
        elif isinstance(holder, list):
            items = list(enumerate(holder))
        for key, value in items:
            yield holder, key
            queue.append(value)


def _value(rng: Random) -> Any:
    nested: Any = 1
    for _ in range(80):
        nested = [nested]
    return rng.choice(
        (None, True, False, 0, -1, 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63),
         2**200, 0.5, -0.0, 1e18, 1e19, 1e300, -1e300, float("nan"), float("inf"), "", "x", "-1",
         "NaN", "1e400", "0x7f", "\0", "\ud800", "é" * 50, "x" * 3000, [], {}, [[]], [None],
         {"": {}}, [1, 2, 3], {"name": "a"}, nested)
    )  # fmt: skip
