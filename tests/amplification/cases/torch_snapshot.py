"""Snapshots of PyTorch's allocator that no program has: pickles, and what they can do."""

import pickle
import struct
from typing import Any

from tests.amplification.wire import many, repeated

_FRAME = {"name": "f", "filename": "a.py", "line": 7}


def _block(n: int, size: int = 512) -> dict[str, Any]:
    return {"address": n * 512, "size": size, "requested_size": size, "state": "active_allocated",
            "frames": []}  # fmt: skip


def _segment(blocks: list[Any], device: int = 0, address: int = 0) -> dict[str, Any]:
    total = 512 * len(blocks)
    return {
        "device": device, "address": address, "total_size": total, "allocated_size": total,
        "active_size": total, "stream": 0, "segment_type": "large", "frames": [], "blocks": blocks,
    }  # fmt: skip


def _entry(
    n: int, action: str = "alloc", size: int = 512, frames: list[Any] | None = None
) -> dict[str, Any]:
    return {"action": action, "addr": n * 512, "size": size, "stream": 0, "time_us": n,
            "frames": [_FRAME] if frames is None else frames}  # fmt: skip


def _pickled(segments: list[Any], trace: list[Any] | None = None, **more: Any) -> bytes:
    content = {"segments": segments, "device_traces": [trace or []], **more}
    return pickle.dumps(content, 4)


def _opened(inside: bytes) -> bytes:
    """A snapshot whose list of segments is made by the opcodes ``inside``."""
    return b"\x80\x04}(\x8c\x08segments](" + inside + b"eu."


def blocks(size: int) -> bytes:
    return _pickled([_segment([_block(n) for n in range(size // 30)])])


def segments(size: int) -> bytes:
    return _pickled([_segment([_block(n)], address=n * 512) for n in range(size // 90)])


def devices(size: int) -> bytes:
    return _pickled([_segment([_block(n)], device=n, address=n * 512) for n in range(size // 90)])


def history(size: int) -> bytes:
    return _pickled([], [_entry(n) for n in range(size // 35)])


def freed_history(size: int) -> bytes:
    actions = ("alloc", "free_requested", "free_completed")
    return _pickled([], [_entry(n // 3, actions[n % 3]) for n in range(size // 35)])


def frees(size: int) -> bytes:
    return _pickled([], [_entry(n, "free_completed") for n in range(size // 35)])


def moved_segments(size: int) -> bytes:
    actions = ("segment_map", "segment_unmap", "segment_alloc")
    return _pickled([], [_entry(n // 3, actions[n % 3], 1 << 21) for n in range(size // 35)])


def overlapping(size: int) -> bytes:
    return _pickled([], [_entry(n, size=1 << 40) for n in range(size // 35)])


def ooms(size: int) -> bytes:
    return _pickled([], [_entry(n, "oom") | {"device_free": 5} for n in range(size // 40)])


def one_oom(size: int) -> bytes:
    """The history is one failed allocation, again and again."""
    return _pickled([], [_entry(1, "oom") | {"device_free": 5}] * (size // 3))


def traces_of_one(size: int) -> bytes:
    """A device for every three bytes: all have the same history of one entry."""
    return pickle.dumps({"segments": [], "device_traces": [[_entry(1)]] * (size // 3)}, 4)


def deep_stack(size: int) -> bytes:
    """One stack that is half of the file, and which every entry has."""
    deep = [_FRAME | {"line": n} for n in range(size // 40)]
    return _pickled([], [_entry(n, frames=deep) for n in range(size // 80)])


def deep_stacks(size: int) -> bytes:
    """Stacks of shared frames, each one longer than the one before."""
    frames = [_FRAME | {"line": n} for n in range(int((size / 2) ** 0.5))]
    return _pickled([], [_entry(n, frames=frames[:n]) for n in range(len(frames))])


def one_frame(size: int) -> bytes:
    return _pickled([], [_entry(n, frames=[_FRAME] * (size // 200)) for n in range(100)])


def shared_entries(size: int) -> bytes:
    """The history is one entry, again and again."""
    return _pickled([], [_entry(1)] * (size // 3))


def shared_blocks(size: int) -> bytes:
    """Every segment has the same list of blocks."""
    shared = [_block(n) for n in range(size // 60)]
    return _pickled([_segment(shared, address=n) for n in range(size // 90)])


def shared_traces(size: int) -> bytes:
    trace = [_entry(n) for n in range(size // 80)]
    return pickle.dumps({"segments": [], "device_traces": [trace] * (size // 6)}, 4)


def long_name(size: int) -> bytes:
    """One name that every frame has."""
    frame = _FRAME | {"name": "x" * (size // 2)}
    return _pickled([], [_entry(n, frames=[frame | {"line": n}]) for n in range(size // 100)])


def names(size: int) -> bytes:
    return _pickled([], [_entry(n, frames=[_FRAME | {"name": f"f{n}"}]) for n in range(size // 60)])


def empty_dicts(size: int) -> bytes:
    return _opened(many(size, b"}"))


def empty_sets(size: int) -> bytes:
    return _opened(many(size, b"\x8f"))


def frozen_sets(size: int) -> bytes:
    return _opened(many(size, b"(\x91"))


def empty_tuples(size: int) -> bytes:
    return _opened(many(size, b")"))


def one_tuples(size: int) -> bytes:
    return _opened(many(size, b")\x85"))


def numbers(size: int) -> bytes:
    return _opened(repeated(size, lambda n: b"J" + struct.pack("<i", n + 300)))


def floats(size: int) -> bytes:
    return _opened(repeated(size, lambda n: b"G" + struct.pack(">d", n)))


def short_texts(size: int) -> bytes:
    return _opened(repeated(size, lambda n: b"\x8c\x03" + f"{n % 1000:03}".encode()))


def wide_texts(size: int) -> bytes:
    """One letter of four bytes makes every letter of a text four bytes."""
    text = b"\xf0\x9f\x98\x80" + b"x" * (size // 2)
    return _opened(b"X" + struct.pack("<I", len(text)) + text)


def byte_arrays(size: int) -> bytes:
    return _opened(many(size, b"\x96" + bytes(8)))


def nested_lists(size: int) -> bytes:
    """Each in the one before."""
    return _opened(many(size // 2, b"]") + many(size // 2 - 1, b"a"))


def nested_tuples(size: int) -> bytes:
    return _opened(b")" + many(size, b"\x85"))


def doubled(size: int) -> bytes:
    """Lists that hold the one before twice: as a tree they would be 2^n."""

    def twice(n: int) -> bytes:
        before = b"j" + struct.pack("<I", n)
        return b"](" + before + before + b"e\x94"

    return _opened(b"]\x94" + repeated(size, twice))


def marks(size: int) -> bytes:
    return _opened(many(size, b"("))


def memo(size: int) -> bytes:
    """Every number is stored in the memo."""
    return _opened(many(size, b"N\x94"))


def sparse_memo(size: int) -> bytes:
    """Places in the memo far beyond what there is."""
    return _opened(repeated(size, lambda n: b"Nr" + struct.pack("<I", 0x7FFFFFFF - n)))


def long_numbers(size: int) -> bytes:
    """A whole number of as many digits as the file has bytes."""
    return _opened(b"\x8b" + struct.pack("<i", size) + b"\x7f" * size)


def decimal_number(size: int) -> bytes:
    return _opened(b"I" + b"9" * size + b"\n")


def decimal_numbers(size: int) -> bytes:
    return _opened(many(size, b"L" + b"9" * 4000 + b"L\n"))


def duplicates(size: int) -> bytes:
    """Keys whose hashes are all the same."""
    modulus = (1 << 61) - 1
    items = repeated(
        size, lambda n: b"\x8a\x0a" + ((n + 1) * modulus).to_bytes(10, "little") + b"N"
    )
    return b"\x80\x04}(\x8c\x08segments](e" + items + b"u."


def colliding_set(size: int) -> bytes:
    modulus = (1 << 61) - 1
    items = repeated(size, lambda n: b"\x8a\x0a" + ((n + 1) * modulus).to_bytes(10, "little"))
    return _opened(b"\x8f(" + items + b"\x90")


def hash_of_nested(size: int) -> bytes:
    """A tuple of itself twice, again and again, as a key: its hash would take 2^n steps."""

    def pair(n: int) -> bytes:
        before = b"j" + struct.pack("<I", n)
        return before + before + b"\x86\x94"

    return _opened(b"}(" + b")\x94" + repeated(min(size, 900), pair) + b"Nu")
