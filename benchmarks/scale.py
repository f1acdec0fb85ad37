"""Makes large XSpace files by repeating a real one in time.

    python benchmarks/scale.py --target 386MB bench-data/tf2_cnn_386MB.xplane.pb

Every line's events are written once per repetition, each time later by one period, so that the
file describes one long run of the same program:

* an event keeps its thread (line), name, duration, nesting and every stat that does not say
  otherwise below;
* ids of one run of something are made different in every repetition, by the same rule for all
  events that share one: ``_p`` and ``_c`` of contexts, ``id`` of function and executor runs and of
  the allocations made in them, ``element_id`` of tf.data's elements. ``step_num`` counts on: N
  repetitions of a 16-step profile have 16 N steps;
* what names something that lives through the run stays: ``id`` and ``parent_id`` of tf.data's
  iterators, addresses, the kinds of contexts (``_pt``, ``_ct``), ``_r``, and the ``id`` 0 of
  allocations outside of steps. So does ``iter_num``, which counts within one function run. The
  profile has no other ids (no ``group_id``, ``run_id``, ``correlation_id`` or ``flow``);
* a repetition ends with the few allocator events that bring the allocator back to its first
  state, so that in-use figures, addresses and lifetimes stay consistent across the seam.

With ``--repeated-ids`` ids and step numbers stay as they are, so that what meets by its id meets
across all repetitions. No program writes such a file.

Numbers are written as the shortest varints, as protobuf serialisers do. Files larger than 2 GiB
are written too (protobuf libraries refuse to read those).
"""

from __future__ import annotations

import argparse
import gzip
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
from xspace_template import (
    COPY,
    HASHED,
    STAT,
    Line,
    Operation,
    Plane,
    Template,
    encode_varint,
    read_template,
)

SOURCE = (
    Path(__file__).parent.parent
    / "tests/data/sessions/tf2_cnn/plugins/profile/2026_11_20_16_57_05/vm.xplane.pb.gz"
)

_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_MIX = 0x1E3779B97F4A7C15
_LOW_62 = np.uint64((1 << 62) - 1)
_Numbers = npt.NDArray[np.uint64]


def _digits(numbers: _Numbers) -> npt.NDArray[np.int64]:
    """Bytes of each number's varint."""
    size = np.ones(numbers.size, np.int64)
    rest = numbers >> np.uint64(7)
    while rest.any():
        size += rest != 0
        rest >>= np.uint64(7)
    return size


def _put_varints(
    out: npt.NDArray[np.uint8],
    at: npt.NDArray[np.int64],
    numbers: _Numbers,
    digits: npt.NDArray[np.int64],
) -> None:
    for place in range(int(digits.max(initial=0))):
        (here,) = np.nonzero(digits > place)
        bits = (numbers[here] >> np.uint64(7 * place)) & np.uint64(0x7F)
        more = (digits[here] > place + 1) * np.uint64(0x80)
        out[at[here] + place] = bits | more


def _before(sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The sum of all sizes before each, and of all."""
    return np.append(0, np.cumsum(sizes))


class _Events:
    """Events of a line as arrays: their operations one after the other."""

    def __init__(self, template: Template, events: list[list[Operation]]) -> None:
        rows = [row for operations in events for row in operations]
        strides = [template.strides.get(rule, 0) for rule in range(HASHED + 1)]
        columns = np.array(
            [(row.kind, row.start, row.length, row.rule) for row in rows], np.int64
        ).reshape(-1, 4)
        kind, self.start, self.prefix, rule = columns.T
        self.source = np.frombuffer(template.source, np.uint8)
        self.is_stat = kind == STAT
        self.is_number = kind != COPY
        self.values = np.array([row.value for row in rows], np.uint64)[self.is_number]
        self.hashed = rule[self.is_number] == HASHED
        self.stride = np.array(strides, np.uint64)[rule[self.is_number]]
        self.count = len(events)
        self.bounds = _before(np.array([len(operations) for operations in events], np.int64))
        self.event = np.repeat(np.arange(self.count), np.diff(self.bounds))
        self._digits = np.zeros(0, np.int64)
        self._out, self._at = np.zeros(0, np.uint8), np.zeros(0, np.int64)

    def _numbers(self, repetition: int) -> _Numbers:
        """The numbers in this repetition; a hashed id keeps its two top bits: sign and size."""
        times = np.uint64(repetition)
        low = (self.values + np.uint64(repetition * _MIX % 2**64)) & _LOW_62
        hashed = (self.values & ~_LOW_62) | low
        return np.where(self.hashed, hashed, self.values + times * self.stride)

    def _sizes(
        self, digits: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Bytes of every operation and of every event without its tag and length.

        A stat adds its tag and its length byte; none is longer than 127 bytes.
        """
        sizes = self.prefix + 2 * self.is_stat
        sizes[self.is_number] += digits
        before = _before(sizes)
        return sizes, before[self.bounds[1:]] - before[self.bounds[:-1]]

    def size(self, repetition: int) -> int:
        """Bytes that the events take in this repetition, tags and lengths included."""
        _, events = self._sizes(_digits(self._numbers(repetition)))
        return int((1 + _digits(events.astype(np.uint64)) + events).sum())

    def write(self, repetition: int) -> npt.NDArray[np.uint8]:
        """The events' bytes in this repetition; the next call overwrites them."""
        numbers = self._numbers(repetition)
        digits = _digits(numbers)
        if not np.array_equal(digits, self._digits):
            self._lay_out(digits)
        _put_varints(self._out, self._at, numbers, digits)
        return self._out

    def _lay_out(self, digits: npt.NDArray[np.int64]) -> None:
        """Write all but the numbers, which have these sizes in this and mostly the next ones."""
        sizes, events = self._sizes(digits)
        lengths = events.astype(np.uint64)
        length_digits = _digits(lengths)
        begin = _before(1 + length_digits + events)
        out = np.zeros(begin[-1], np.uint8)
        out[begin[:-1]] = 0x22
        _put_varints(out, begin[:-1] + 1, lengths, length_digits)
        before = _before(sizes)[:-1]
        first = (
            begin[:-1] + 1 + length_digits - before[np.minimum(self.bounds[:-1], before.size - 1)]
        )
        at = first[self.event] + before
        full = np.zeros(at.size, np.int64)
        full[self.is_number] = digits
        out[at[self.is_stat]] = 0x22
        out[at[self.is_stat] + 1] = (self.prefix + full)[self.is_stat]
        at += 2 * self.is_stat
        copied = _before(self.prefix)
        within = np.arange(copied[-1]) - np.repeat(copied[:-1], self.prefix)
        out[np.repeat(at, self.prefix) + within] = self.source[
            np.repeat(self.start, self.prefix) + within
        ]
        self._digits, self._out, self._at = digits, out, (at + self.prefix)[self.is_number]


class _Writer:
    """The template as arrays, by line."""

    def __init__(self, template: Template) -> None:
        self.events = {
            id(line): (_Events(template, line.events), _Events(template, line.closing))
            for plane in template.planes
            for line in plane.lines
        }

    def chunks(self, line: Line, repetitions: int) -> Iterator[tuple[_Events, int]]:
        """Events and their repetition, in the order they are written."""
        events, closing = self.events[id(line)]
        for repetition in range(repetitions):
            yield events, repetition
            if closing.count and repetition + 1 < repetitions:
                yield closing, repetition

    def size(self, line: Line, repetitions: int) -> int:
        """Bytes of the line without its tag and length."""
        chunks = self.chunks(line, repetitions)
        return (
            len(line.before)
            + len(line.after)
            + sum(events.size(repetition) for events, repetition in chunks)
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
    with path.open("wb") as file:
        for plane in template.planes:
            file.write(b"\x0a" + encode_varint(writer.plane_size(plane, repetitions)))
            file.write(plane.before)
            for line in plane.lines:
                file.write(b"\x1a" + encode_varint(writer.size(line, repetitions)) + line.before)
                for part, repetition in writer.chunks(line, repetitions):
                    file.write(part.write(repetition).data)
                    events += part.count
                file.write(line.after)
            file.write(plane.after)
        file.write(template.after)
    return events


def parse_size(text: str) -> int:
    """``386MB``, ``3GiB`` or a number of bytes."""
    for unit, factor in _UNITS.items():
        if text.endswith(unit):
            return int(float(text.removesuffix(unit)) * factor)
    return int(text)


def main(arguments: list[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description="Repeat an XSpace in time to a target size.")
    parser.add_argument("--source", type=Path, default=SOURCE, help=".xplane.pb or .xplane.pb.gz")
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--target", type=parse_size, help="size of the file, such as 386MB or 3GiB")
    size.add_argument("--repetitions", type=int, help="number of repetitions")
    parser.add_argument("--repeated-ids", action="store_true", help="ids of the first repetition")
    parser.add_argument("output", type=Path)
    options = parser.parse_args(arguments)
    begin = time.perf_counter()
    data = options.source.read_bytes()
    content = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    template = read_template(content, repeated_ids=options.repeated_ids)
    repetitions = options.repetitions or repetitions_for(template, options.target)
    events = write_scaled(template, repetitions, options.output)
    print(
        f"{options.output}: {options.output.stat().st_size:,} bytes, {repetitions} repetitions, "
        f"{events:,} events, {time.perf_counter() - begin:.1f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
