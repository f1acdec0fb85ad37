"""Makes large XSpace files by repeating a real one in time.

    python benchmarks/scale.py --target 390MB bench-data/tf2_cnn_390MB.xplane.pb

Every line's events are written once per repetition, each time later by one period, so that the
file describes one long run of the same program:

* an event keeps its thread (line), name, duration, nesting and every stat that does not say
  otherwise below;
* ids of one run of something (``_p``, ``_c``, ``id`` of function and executor runs,
  ``element_id``) are made different in every repetition, by the same rule for all events that
  share one, and ``step_num`` counts on: N repetitions of a 16-step profile have 16 N steps;
* ids of things that live through the run (tf.data iterators) and addresses stay;
* a repetition ends with the few allocator events that bring the allocator back to its first
  state, so that in-use figures, addresses and lifetimes stay consistent across the seam.

Numbers are written as the shortest varints, as protobuf serialisers do. Files larger than 2 GiB
are written too (protobuf libraries refuse to read those).
"""

from __future__ import annotations

import argparse
import gzip
import sys
import time
from pathlib import Path

import numba
import numpy as np
import numpy.typing as npt
from xspace_template import (
    COPY,
    HASHED,
    NUMBER,
    Line,
    Operation,
    Plane,
    Template,
    encode_varint,
    read_template,
)

__all__ = ["SOURCE", "repetitions_for", "write_scaled"]

SOURCE = (
    Path(__file__).parent.parent
    / "tests/data/sessions/tf2_cnn/plugins/profile/2026_11_20_16_57_05/vm.xplane.pb.gz"
)

_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_MIX = np.uint64(0x1E3779B97F4A7C15)
_LOW_62 = np.uint64((1 << 62) - 1)


@numba.njit(cache=True)
def _number(value: int, rule: int, repetition: int, strides: npt.NDArray[np.uint64]) -> int:
    """The number in this repetition; a hashed id keeps its two top bits, hence sign and size."""
    if rule == HASHED:
        low = (value + np.uint64(repetition) * _MIX) & _LOW_62
        return (value & ~_LOW_62) | low
    return value + np.uint64(repetition) * strides[rule]


@numba.njit(cache=True)
def _varint_size(value: int) -> int:
    size = 1
    while value > np.uint64(0x7F):
        value >>= np.uint64(7)
        size += 1
    return size


@numba.njit(cache=True)
def _put_varint(out: npt.NDArray[np.uint8], at: int, value: int) -> int:
    while value > np.uint64(0x7F):
        out[at] = np.uint8((value & np.uint64(0x7F)) | np.uint64(0x80))
        value >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(value)
    return at + 1


@numba.njit(cache=True)
def _event_size(operations, values, first, last, repetition, strides):
    size = 0
    for index in range(first, last):
        kind, _, length, rule = operations[index]
        if kind == COPY:
            size += length
            continue
        digits = _varint_size(_number(values[index], rule, repetition, strides))
        # A stat adds its tag and its length byte; none is longer than 127 bytes.
        size += digits if kind == NUMBER else length + digits + 2
    return size


@numba.njit(cache=True)
def _lines_size(operations, values, bounds, first, last, repetition, strides):
    """Bytes that events ``[first, last)`` take in this repetition, tags and lengths included."""
    total = 0
    for event in range(first, last):
        size = _event_size(
            operations, values, bounds[event], bounds[event + 1], repetition, strides
        )
        total += 1 + _varint_size(np.uint64(size)) + size
    return total


@numba.njit(cache=True)
def _write_events(source, operations, values, bounds, first, last, repetition, strides, out):
    """Write events ``[first, last)`` of this repetition into ``out``; return the length."""
    at = 0
    for event in range(first, last):
        begin, end = bounds[event], bounds[event + 1]
        out[at] = np.uint8(0x22)
        size = _event_size(operations, values, begin, end, repetition, strides)
        at = _put_varint(out, at + 1, np.uint64(size))
        for index in range(begin, end):
            kind, start, length, rule = operations[index]
            if kind == COPY or kind == NUMBER:
                prefix = length
            else:
                number = _number(values[index], rule, repetition, strides)
                out[at] = np.uint8(0x22)
                out[at + 1] = np.uint8(length + _varint_size(number))
                at += 2
                prefix = length
            for byte in range(prefix):
                out[at + byte] = source[start + byte]
            at += prefix
            if kind != COPY:
                number = _number(values[index], rule, repetition, strides)
                at = _put_varint(out, at, number)
    return at


class _Writer:
    """The template as arrays: operations, their values, and where each event's begin."""

    def __init__(self, template: Template) -> None:
        self.source = np.frombuffer(template.source, np.uint8)
        self.strides = np.array(
            [template.strides[rule] for rule in sorted(template.strides)], np.uint64
        )
        self._rows: list[Operation] = []
        self._bounds = [0]
        self.ranges = {
            id(line): (self._add(line.events), self._add(line.closing))
            for plane in template.planes
            for line in plane.lines
        }
        self.operations = np.array(
            [(row.kind, row.start, row.length, row.rule) for row in self._rows], np.int64
        )
        self.values = np.array([row.value for row in self._rows], np.uint64)
        self.bounds = np.array(self._bounds, np.int64)

    def _add(self, events: list[list[Operation]]) -> tuple[int, int]:
        first = len(self._bounds) - 1
        for operations in events:
            self._rows += operations
            self._bounds.append(len(self._rows))
        return first, len(self._bounds) - 1

    def chunks(self, line: Line, repetitions: int) -> list[tuple[int, int, int]]:
        """``(first event, last event, repetition)`` in the order they are written."""
        events, closing = self.ranges[id(line)]
        parts = []
        for repetition in range(repetitions):
            parts.append((*events, repetition))
            if closing[0] < closing[1] and repetition + 1 < repetitions:
                parts.append((*closing, repetition))
        return parts

    def size(self, line: Line, repetitions: int) -> int:
        """Bytes of the line without its tag and length."""
        return (
            len(line.before)
            + len(line.after)
            + sum(
                _lines_size(self.operations, self.values, self.bounds, *part, self.strides)
                for part in self.chunks(line, repetitions)
            )
        )

    def plane_size(self, plane: Plane, repetitions: int) -> int:
        """Bytes of the plane without its tag and length."""
        size = len(plane.before) + len(plane.after)
        for line in plane.lines:
            length = self.size(line, repetitions)
            size += 1 + len(encode_varint(length)) + length
        return size


def repetitions_for(template: Template, target_bytes: int) -> int:
    """How many repetitions come closest to ``target_bytes``."""
    writer = _Writer(template)
    sizes = [sum(writer.plane_size(plane, n) for plane in template.planes) for n in (100, 101)]
    return max(1, round((target_bytes - sizes[0]) / (sizes[1] - sizes[0])) + 100)


def write_scaled(template: Template, repetitions: int, path: Path) -> int:
    """Write ``repetitions`` of ``template`` to ``path``; return the number of events."""
    writer = _Writer(template)
    events = 0
    room = np.empty(2 * len(template.source) + (1 << 16), np.uint8)
    with path.open("wb") as file:
        for plane in template.planes:
            file.write(b"\x0a" + encode_varint(writer.plane_size(plane, repetitions)))
            file.write(plane.before)
            for line in plane.lines:
                file.write(b"\x1a" + encode_varint(writer.size(line, repetitions)) + line.before)
                for part in writer.chunks(line, repetitions):
                    length = _write_events(
                        writer.source,
                        writer.operations,
                        writer.values,
                        writer.bounds,
                        *part,
                        writer.strides,
                        room,
                    )
                    file.write(room[:length].data)
                    events += part[1] - part[0]
                file.write(line.after)
            file.write(plane.after)
        file.write(template.after)
    return events


def parse_size(text: str) -> int:
    """``390MB``, ``3GiB`` or a number of bytes."""
    for unit, factor in _UNITS.items():
        if text.endswith(unit):
            return int(float(text.removesuffix(unit)) * factor)
    return int(text)


def main(arguments: list[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description="Repeat an XSpace in time to a target size.")
    parser.add_argument("--source", type=Path, default=SOURCE, help=".xplane.pb or .xplane.pb.gz")
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--target", type=parse_size, help="size of the file, such as 390MB or 3GiB")
    size.add_argument("--repetitions", type=int, help="number of repetitions")
    parser.add_argument("output", type=Path)
    options = parser.parse_args(arguments)
    begin = time.perf_counter()
    data = options.source.read_bytes()
    template = read_template(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    repetitions = options.repetitions or repetitions_for(template, options.target)
    events = write_scaled(template, repetitions, options.output)
    print(
        f"{options.output}: {options.output.stat().st_size:,} bytes, {repetitions} repetitions, "
        f"{events:,} events, {time.perf_counter() - begin:.1f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
