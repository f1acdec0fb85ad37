"""Reports as tables, and what in them does not fit together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.formats.oom_report.report import LARGEST, Chunks, Report, agrees, human
from peakline.tables.columns import Column, Columns, Names
from peakline.tables.reader import Warnings

_BINS = 21
_STATES = ["free", "in_use"]


class OomReports:
    """The reports of one log. Sizes that a text rounds are as exact as the text is.

    ``buffers`` holds, for every allocator, what one report names: the one with the most bytes in
    use, the latest of equals. Its chunks in use are buffers from before the profile that are
    live at its end; a chunk has the op that a list of the step's tensors names for its size, and
    its region type gives its size, since nothing else distinguishes chunks. A report without a
    chunk list has the buffers of its list of tensors or of the program's largest buffers, which
    are not all that is in use.
    """

    __retained__ = "_reports"

    tables = frozenset(("oom_reports", "oom_parts", "blocks", "buffers"))

    def __init__(self, reports: Sequence[Report]) -> None:
        self._reports = reports
        self.width = 0
        """The column at which the lines were broken that were put together; 0 for none."""

    @property
    def known(self) -> float:
        """How much is known by these reports: to compare readings of one text. The best of each
        allocator counts: what is cut makes two failures of one.
        """
        best: dict[str, float] = {}
        for report in self._reports:
            best[report.allocator] = max(best.get(report.allocator, 0), _known(report))
        return sum(best.values())

    @property
    def facts(self) -> list[object]:
        """What is said of every failure, messages apart: to see whether two readings differ."""
        return [(_facts(r), r.op, r.parts, r.program) for r in self._reports]

    @property
    def reports(self) -> int:
        """How many there are."""
        return len(self._reports)

    def read(self, table: str) -> Columns:
        """One of `tables`."""
        read: dict[str, Callable[[], Columns]] = {
            "oom_reports": self._oom_reports,
            "oom_parts": self._oom_parts,
            "blocks": self._blocks,
            "buffers": self._buffers,
        }
        return read[table]()

    def report(self, warnings: Warnings) -> None:
        """Count what is missing and what does not add up."""
        if self.width:
            text = f"lines that were broken at {self.width} columns were put together"
            warnings.add("joined_oom_lines", text)
        for report in self._reports:
            name = report.allocator or "an allocator"
            has_list = bool(report.bins or len(report.chunks))
            if report.is_dump and not has_list and (report.sum_text or report.has_stats):
                # The log has such lines: it begins in the middle of the report.
                warnings.add("truncated_oom_report", f"{name}: the report's beginning is missing")
            elif report.is_dump and report.began and not has_list:
                warnings.add(
                    "oom_report_without_chunks",
                    f"{name}: the log has no chunk list; TF_CPP_MIN_LOG_LEVEL=0 shows it",
                )
            elif not (report.began and report.ended):
                missing = "end" if report.began else "beginning"
                warnings.add("truncated_oom_report", f"{name}: the report's {missing} is missing")
            for problem in _problems(report):
                warnings.add("oom_report_mismatch", f"{name}: {problem}")
            warnings.add("cut_oom_lines", f"{name}: lines that are not whole", report.cut)

    # The tables.

    def _oom_reports(self) -> Columns:
        reports = self._reports
        times = [r.time_ns for r in reports]
        zero = next((time for time in times if time is not None), 0)
        since = [0 if time is None else max(time - zero, 0) for time in times]
        # What int64 picoseconds can hold is 106 days.
        latest = (2**63 - 1) // 1000
        facts = [_facts(report) for report in reports]
        data: dict[str, Column] = {
            "report_id": np.arange(len(reports), dtype=np.int64),
            "time_ps": np.array([min(time, latest) * 1000 for time in since], np.int64),
            "allocator": Names.encode([r.allocator for r in reports]),
            "is_complete": np.array([_is_complete(r) for r in reports], np.bool_),
        }
        valid: dict[str, BoolArray] = {}
        for name in ("op", "device", "data_type", "shape", "kind", "source", "message"):
            data[name] = Names.encode([getattr(r, name) for r in reports])
        for name in _FACTS:
            data[name], valid[name] = _nullable([fact[name] for fact in facts])
        fragmentation = [_fragmentation(fact) for fact in facts]
        data["fragmentation"] = np.array([f or 0.0 for f in fragmentation], np.float64)
        valid["fragmentation"] = np.array([f is not None for f in fragmentation], np.bool_)
        return Columns(data, valid)

    def _oom_parts(self) -> Columns:
        rows = [(n, part) for n, report in enumerate(self._reports) for part in report.parts]
        return Columns(
            {
                "report_id": np.array([number for number, _ in rows], np.int64),
                "part": Names.encode([part.name for _, part in rows]),
                "subject": Names.encode([part.subject for _, part in rows]),
                "bytes": np.array([part.size for _, part in rows], np.int64),
            }
        )

    def _blocks(self) -> Columns:
        lists = [report.chunks for report in self._reports]
        counts = [len(chunks) for chunks in lists]
        # A region's chunks are in the order of their addresses; so are the regions, but for what
        # the log mixed up.
        order = [
            np.lexsort((_array(c.address, np.uint64), _array(c.region, np.int64))) for c in lists
        ]

        def joined(name: str, dtype: type[Any]) -> AnyArray:
            parts = [_array(getattr(c, name), dtype)[o] for c, o in zip(lists, order, strict=True)]
            return np.concatenate(parts) if parts else np.zeros(0, dtype)

        state = joined("in_use", np.uint8)
        return Columns(
            {
                "segment_id": joined("region", np.int64),
                "report_id": np.repeat(np.arange(len(lists), dtype=np.int64), counts),
                "address": joined("address", np.uint64),
                "bytes": joined("size", np.int64),
                "state": Names(state.astype(np.int32), _STATES),
            }
        )

    def _buffers(self) -> Columns:
        chosen: dict[str, tuple[int, int]] = {}
        for number, report in enumerate(self._reports):
            size = sum(buffer.size for buffer in report.usage or report.program)
            size = size or sum(count * each for count, each in report.summary)
            if len(report.chunks):
                size = report.chunks.total(in_use=True)
            if size >= chosen.get(report.allocator, (0, 0))[1] and size:
                chosen[report.allocator] = number, size
        rows: list[_Row] = []
        for number, _ in sorted(chosen.values()):
            rows += _rows(self._reports[number])
        allocators, addresses, ops, kinds, types, shapes, sizes = (
            zip(*rows, strict=True) if rows else ((),) * 7
        )
        return Columns(
            {
                "buffer_id": np.arange(len(rows), dtype=np.int64),
                "allocator": Names.encode(allocators),
                "address": np.array([address or 0 for address in addresses], np.uint64),
                "op": Names.encode(ops),
                "region_type": Names.encode(kinds),
                "data_type": Names.encode(types),
                "shape": Names.encode(shapes),
                "allocated_bytes": np.array(sizes, np.int64),
            },
            {"address": np.array([address is not None for address in addresses], np.bool_)},
        )


def _known(report: Report) -> float:
    """The facts of a report; a longer name of an op counts a little more."""
    facts = sum(value is not None for value in _facts(report).values())
    names = (report.op, report.device, report.shape, report.data_type, report.source)
    facts += sum(name is not None for name in names) + len(report.parts) + len(report.summary)
    facts += len(report.chunks) + len(report.bins) + len(report.usage) - report.cut
    facts += report.began + report.ended + report.exact
    named = sum(
        1 + min(len((buffer.op or "").replace(" ", "")), 999) / 1000 for buffer in report.program
    )
    shaped = sum(buffer.shape is not None for buffer in report.program)
    return facts + named + shaped


def _array(values: object, dtype: type[Any]) -> AnyArray:
    return np.array(values, dtype)


_FACTS = (
    "requested_bytes", "rounded_bytes", "limit_bytes", "pool_bytes", "in_use_bytes", "peak_bytes",
    "free_bytes", "largest_free_bytes", "device_free_bytes", "capacity_bytes",
)  # fmt: skip


def _facts(report: Report) -> dict[str, int | None]:
    """The numbers of one report; the chunk list, where it is whole, knows better than the text."""
    chunks = report.chunks
    in_use, pool, peak, free = report.in_use, report.pool, report.peak, report.free
    largest = report.largest_free
    if report.sum_text and len(chunks) and not _short_regions(chunks):
        total = chunks.total(in_use=True)
        if agrees(total, report.sum_text):
            free, largest = chunks.total(in_use=False), chunks.largest_free()
            in_use, pool = total, total + free
            if report.peak_text and agrees(total, report.peak_text):
                peak = total
    if free is None and pool is not None and in_use is not None:
        free = pool - in_use
    if free is None and report.is_dump and None not in (report.limit, in_use):
        # Without the pool's size: what was left to the limit.
        free = max((report.limit or 0) - (in_use or 0), 0)
    numbers = (report.requested, report.rounded, report.limit, pool, in_use, peak, free, largest,
               report.device_free, report.capacity)  # fmt: skip
    return dict(zip(_FACTS, numbers, strict=True))


def _nullable(values: list[int | None]) -> tuple[Int64Array, BoolArray]:
    known = np.array([value is not None for value in values], np.bool_)
    # Sums over the chunks of a damaged list may be beyond any size.
    return np.array([min(value or 0, LARGEST) for value in values], np.int64), known


def _fragmentation(fact: dict[str, int | None]) -> float | None:
    free, largest = fact["free_bytes"], fact["largest_free_bytes"]
    return (free - largest) / free if free and largest is not None else None


def _is_complete(report: Report) -> bool:
    if not report.is_dump:
        return report.began and report.ended
    whole = report.began and report.ended and not report.cut and bool(len(report.chunks))
    return whole and not _short_regions(report.chunks)


def _short_regions(chunks: Chunks) -> list[int]:
    """Regions whose chunks do not add up to their size."""
    pairs = zip(chunks.stated, chunks.filled, strict=True)
    return [
        n for n, (stated, filled) in enumerate(pairs) if stated is not None and stated != filled
    ]


def _problems(report: Report) -> Iterator[str]:
    """What of a dump does not add up, where both sides were there."""
    chunks = report.chunks
    if not len(chunks):
        return
    for region in _short_regions(chunks):
        if report.ended or region < len(chunks.stated) - 1:
            stated, filled = chunks.stated[region], chunks.filled[region]
            yield f"region {region} has {stated} bytes, its chunks {filled}"
    in_use = chunks.total(in_use=True)
    if report.sum_text and not agrees(in_use, report.sum_text):
        yield f"the chunks in use are {human(in_use)}, the report says {report.sum_text}"
    if report.bins and report.sum_text:
        size = np.maximum(_array(chunks.size, np.int64), 256)
        number = np.minimum(np.frexp(size / 256)[1] - 1, _BINS - 1)
        counts = np.bincount(number, minlength=_BINS)
        for b in range(_BINS):
            expected = report.bins.get(256 << b)
            if expected is not None and expected != counts[b]:
                yield f"bin {256 << b} has {expected} chunks, the list {counts[b]}"
    if report.pool_text and chunks.tells_regions:
        pool = sum(size for size in chunks.stated if size)
        if not agrees(pool, report.pool_text):
            yield f"the regions are {human(pool)}, the pool is {report.pool_text}"


_Row = tuple[str, int | None, str | None, str | None, str | None, str | None, int]


def _rows(report: Report) -> list[_Row]:
    """Allocator, address, op, region type, data type, shape and size of a report's buffers."""
    name, chunks = report.allocator, report.chunks
    if report.summary and not (len(chunks) or report.usage or report.program):
        return [
            (name, None, None, f"chunk of {human(size)}", None, None, size)
            for count, size in report.summary
            for _ in range(count)
        ]
    if not len(chunks):
        return [
            (name, None, b.op, b.kind, b.data_type, b.shape, b.size)
            for b in report.usage or report.program
        ]
    used = [n for n, in_use in enumerate(chunks.in_use) if in_use]
    ops = dict(chunks.ops)
    nameless: dict[str, list[int]] = {}
    for n in reversed(used):
        if n not in ops:
            nameless.setdefault(human(chunks.size[n]), []).append(n)
    for buffer in report.usage:
        same = nameless.get(human(buffer.size))
        if buffer.op and same:
            ops[same.pop()] = buffer.op
    return [
        (name, chunks.address[n], ops.get(n), f"chunk of {human(chunks.size[n])}", None, None,
         chunks.size[n])
        for n in used
    ]  # fmt: skip
