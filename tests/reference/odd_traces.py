"""Odd traces of PyTorch's kind, and the truth about each by construction.

What devices, steps and ops there are is laid out first, as lengths that add up; only then is it
written as records, in one of the ways that real traces have been written: any pids, metadata that
lacks or lies, host events on the rows of devices, several ranks in one file, times of any origin.
Nothing of the truth is read from the records.
"""

import itertools
import json
import random
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

_PS_PER_NS = 1000
_DIRECTIONS = {
    "HtoD": "Memcpy HtoD (Pinned -> Device)",
    "DtoH": "Memcpy DtoH (Device -> Pageable)",
    "DtoD": "Memcpy DtoD (Device -> Device)",
}
_KERNELS = ["void gemm<128, 64>(float*)", "elementwise_kernel", "Cijk_Alik_Bljk_SB", "reduce(1)"]
_COLLECTIVE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
_OPS = ["aten::linear", "aten::relu", "AddmmBackward0", "aten::add_"]
_INNER = ["aten::addmm", "aten::clamp_min", "aten::mm"]
_WORK_CATEGORY = {
    "cuda": "kernel", "mtia": "mtia_ccp_events", "hpu": "hpu_op", "old": "Kernel",
    "unknown": "npu_activity",
}  # fmt: skip
_RUNTIME_CATEGORY = {
    "cuda": "cuda_runtime", "mtia": "mtia_runtime", "hpu": "privateuse1_runtime",
    "old": "Runtime", "unknown": "privateuse1_runtime",
}  # fmt: skip
ODDITIES = (
    "no_metadata", "wrong_metadata", "contradictory_metadata", "threads_on_device_pids",
    "shared_rows", "calls_on_device_pids", "unsorted", "cut_text", "huge_base", "negative_times",
    "text_times", "whole_microseconds", "base_nanoseconds", "text_ids", "zero_lengths",
    "no_correlation", "repeated_correlation", "begin_end", "annotations_on_devices",
    "bad_times", "list_only",
)  # fmt: skip


@dataclass
class OddTrace:
    """A trace as text, and the truth about it, in ps as the file counts them.

    ``first_ps`` is the first time of an event. ``busy_ps``, ``spans_ps`` (from the first to the
    last work), ``communication_ps`` and ``copies_ps`` are by (pid, device); ``kernels`` have count
    and total; ``ops`` count, total and self time. Steps are (name, start, end, whether cut off), in
    order of name and time.
    """

    oddities: tuple[str, ...]
    flavour: str
    marks: str
    text: str = ""
    first_ps: int = 0
    busy_ps: dict[tuple[str, str], int] = field(default_factory=dict)
    spans_ps: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    communication_ps: dict[tuple[str, str], int] = field(default_factory=dict)
    copies_ps: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    kernels: dict[str, tuple[int, int]] = field(default_factory=dict)
    ops: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    steps: list[tuple[str, int, int, bool]] = field(default_factory=list)


def odd_trace(seed: int) -> OddTrace:
    """The trace of a seed, always the same."""
    return _Maker(random.Random(f"odd trace {seed}")).made()


class _Maker:
    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        odd = tuple(name for name in ODDITIES if draw.random() < 0.2)
        flavours = ["cuda", "cuda", "cuda", "mtia", "hpu", "old", "unknown"]
        flavour = draw.choice(flavours)
        marks = ["ProfilerStep", "ProfilerStep", "step_num", "by_hand", "none"]
        # Before PyTorch 1.9 marks and ops had one category: only the name is left to know it by.
        self.truth = OddTrace(odd, flavour, draw.choice(marks[:2] if flavour == "old" else marks))
        self.records: list[dict[str, Any]] = []
        # A tick is the smallest length that the file can write.
        self.tick_ns = 1000 if "whole_microseconds" in odd else 1
        self.base_ns = 0
        if "huge_base" in odd:
            self.base_ns = 1_763_000_000_123_456 * 1000
        elif "negative_times" in odd:
            self.base_ns = -3_000_000
        self.correlation = 1
        self.kernels: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        self.ops: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])

    def has(self, oddity: str) -> bool:
        return oddity in self.truth.oddities

    def made(self) -> OddTrace:
        ranks = self.draw.choice([1, 1, 1, 2, 3])
        for rank in range(ranks):
            self._rank(rank, ranks)
        truth = self.truth
        truth.kernels = {name: (count, total) for name, (count, total) in self.kernels.items()}
        truth.ops = {name: (count, total, own) for name, (count, total, own) in self.ops.items()}
        truth.steps.sort()
        is_timed = [record["ph"] != "M" and "raw_ts" not in record for record in self.records]
        times = [r["ts"] for r, timed in zip(self.records, is_timed, strict=True) if timed]
        truth.first_ps = min(times) * _PS_PER_NS
        truth.text = self._text()
        return truth

    # What there is.

    def _rank(self, rank: int, ranks: int) -> None:
        host_pids = [0, 1, 2, 17, 4242, 1_234_567, -7, "trainer"]
        host = self.draw.choice(host_pids) if rank == 0 else 5_000_000 + rank
        count = self.draw.choice([1, 1, 2, 3])
        devices = self.draw.sample(range(4), count)
        # A tool that merges ranks gives their devices other pids and leaves the arguments alone.
        pids = {device: device if ranks == 1 else 1000 * rank + device for device in devices}
        begin = self.base_ns + self.draw.randrange(1, 1000) * self.tick_ns
        for device in devices:
            self._device(pids[device], device, begin)
        self._host(host, begin)
        others = list(pids.values())
        if self.has("threads_on_device_pids"):
            self._python(others[0], 140_001, begin, 3000)
        if self.has("shared_rows"):
            self._python(others[0], 7, begin, 5000)
        if self.has("calls_on_device_pids"):
            args = {"device": devices[0], "cmd_name": "Event#1"}
            category = _RUNTIME_CATEGORY[self.truth.flavour]
            self._add(others[0], 140_002, "recordEvent", category, begin, 4000, args)
        if self.has("annotations_on_devices"):
            for pid in others:
                self._add(pid, 7, "ProfilerStep#9", "gpu_user_annotation", begin, 6000, {})
                self._add(pid, 7, "Stream Sync", "cuda_sync", begin, 5000, {"stream": 7})
                self._add(-1, 0, "Buffer Flush", "overhead", begin, 5000, {})
        self._metadata(host, others)

    def _device(self, pid: int, device: int, begin: int) -> None:
        """Blocks of work with gaps between them: the busy time is the sum of their lengths."""
        key = str(pid), str(pid if self.truth.flavour in ("mtia", "hpu") else device)
        busy = communication = 0
        copies: Counter[str] = Counter()
        place = first = begin + self.draw.randrange(1, 50) * self.tick_ns
        for _ in range(self.draw.randrange(1, 8)):
            length = self.draw.randrange(4, 400)
            kind = self._kind()
            names = {"compute": self.draw.choice(_KERNELS), "communication": _COLLECTIVE}
            name = names.get(kind, _DIRECTIONS.get(kind, "Memset (Device)"))
            self._block(pid, device, kind, name, place, length)
            busy += length
            if kind == "communication":
                communication += length
            if kind in _DIRECTIONS:
                copies[kind] += length
            last = place + length * self.tick_ns
            place = last + self.draw.randrange(1, 100) * self.tick_ns
        truth, unit = self.truth, self.tick_ns * _PS_PER_NS
        truth.busy_ps[key] = busy * unit
        truth.spans_ps[key] = first * _PS_PER_NS, last * _PS_PER_NS
        truth.communication_ps[key] = communication * unit
        truth.copies_ps[key] = {name: length * unit for name, length in copies.items()}

    def _kind(self) -> str:
        if self.truth.flavour not in ("cuda", "old"):
            return "compute"
        return self.draw.choice(["compute"] * 5 + ["communication", *_DIRECTIONS, "memset"])

    def _block(self, pid: int, device: int, kind: str, name: str, place: int, length: int) -> None:
        """Events of one kind that cover a block: some after another, some beside them."""
        cuts = sorted({0, length, *(self.draw.randrange(length) for _ in range(2))})
        pieces = list(itertools.pairwise(cuts))
        for _ in range(self.draw.randrange(3)):
            start = self.draw.randrange(length)
            pieces.append((start, self.draw.randrange(start + 1, length + 1)))
        if self.has("zero_lengths"):
            pieces.append((length // 2, length // 2))
        for start, end in pieces:
            at, took = place + start * self.tick_ns, (end - start) * self.tick_ns
            self._work(pid, device, kind, name, at, took)
            if kind in ("compute", "communication"):
                self.kernels[name][0] += 1
                self.kernels[name][1] += took * _PS_PER_NS

    def _work(self, pid: int, device: int, kind: str, name: str, at: int, took: int) -> None:
        flavour = self.truth.flavour
        stream = self.draw.choice([7, 20])
        args: dict[str, Any] = {"device": device, "context": 1, "stream": stream}
        if not (self.has("no_correlation") and self.draw.random() < 0.5):
            args["correlation"] = self._next_correlation()
        category = _WORK_CATEGORY[flavour]
        if kind in _DIRECTIONS or kind == "memset":
            plain = "Memcpy" if kind in _DIRECTIONS else "Memset"
            category = plain if flavour == "old" else f"gpu_{plain.lower()}"
        if flavour == "mtia":
            args = {"stream": stream, "sqid": 11}
        if flavour == "hpu":
            args = {}
        tid: int | str = f"stream {stream}" if flavour == "old" else stream
        self._add(pid, tid, name, category, at, took, args)

    def _next_correlation(self) -> int:
        if not (self.has("repeated_correlation") and self.draw.random() < 0.5):
            self.correlation += 1
        return self.correlation

    def _host(self, pid: int | str, begin: int) -> None:
        """The training thread: steps with ops inside; and another thread with ops."""
        main, other = 4242, 4243
        place = begin
        steps = self.draw.randrange(2, 6)
        # Of fewer than three steps nothing says what all of them have.
        # Nor does anything say of an annotation without ops that it is one around a step.
        empty = None if self.truth.marks == "by_hand" else "empty"
        cut_off = self.draw.choice([None, None, empty, "part" if steps > 2 else None])
        for number in range(steps):
            place = self._step(pid, main, number, place, (cut_off if number == steps - 1 else None))
        for number in range(self.draw.randrange(3)):
            self._op(pid, other, _OPS[number], begin + number * 1000 * self.tick_ns)
        if self.has("bad_times"):
            # No time at all, and one three hundred years later.
            record = {"ph": "X", "pid": pid, "tid": main, "name": "f.py(3): g", "dur": 5000}
            record |= {"cat": "python_function", "ts": begin}
            self.records += [record | {"raw_ts": "soon"}, record | {"raw_ts": f"@{10**16}@"}]

    def _step(self, pid: int | str, tid: int, number: int, place: int, cut: str | None) -> int:
        """One step, from its mark's begin on; returns when the next may begin."""
        start = place
        place += 2 * self.tick_ns
        names = _OPS if cut is None else _OPS[:2] if cut == "part" else []
        for name in names:
            place = self._op(pid, tid, name, place) + self.draw.randrange(1, 5) * self.tick_ns
        place += self.tick_ns
        marks, took = self.truth.marks, place - start
        names = {"ProfilerStep": f"ProfilerStep#{number + 3}", "step_num": "train"}
        name = names.get(marks, "train_step")
        args = {"step_num": number} if marks == "step_num" else {}
        if marks != "none":
            category = "Operator" if self.truth.flavour == "old" else "user_annotation"
            self._add(pid, tid, name, category, start, took, args)
            shown = f"{name} {number}" if marks == "step_num" else name
            ends = start * _PS_PER_NS, place * _PS_PER_NS
            self.truth.steps.append((shown, *ends, cut is not None))
        return place + self.draw.randrange(1, 20) * self.tick_ns

    def _op(self, pid: int | str, tid: int, name: str, place: int) -> int:
        """An op with up to two others directly in it; returns its end."""
        start = place
        place += self.tick_ns
        inner = 0
        for _ in range(self.draw.randrange(3)):
            took = self.draw.randrange(1, 30) * self.tick_ns
            self._run(pid, tid, self.draw.choice(_INNER), place, took, took)
            inner += took
            place += took + self.tick_ns
        place += self.draw.randrange(1, 30) * self.tick_ns
        self._run(pid, tid, name, start, place - start, place - start - inner)
        args = {"cbid": 211, "correlation": self._next_correlation(), "stream": "0x0"}
        category = _RUNTIME_CATEGORY[self.truth.flavour]
        self._add(pid, tid, "cudaLaunchKernel", category, place - self.tick_ns, self.tick_ns, args)
        return place

    def _run(self, pid: int | str, tid: int, name: str, start: int, took: int, alone: int) -> None:
        category = "Operator" if self.truth.flavour == "old" else "cpu_op"
        self._add(pid, tid, name, category, start, took, {"External id": 1})
        result = self.ops[name]
        result[0] += 1
        result[1] += took * _PS_PER_NS
        result[2] += alone * _PS_PER_NS

    def _python(self, pid: int, tid: int, begin: int, ticks: int) -> None:
        took = ticks * self.tick_ns
        self._add(pid, tid, "threading.py(1032): _bootstrap", "python_function", begin, took, {})

    def _metadata(self, host: int | str, devices: list[int]) -> None:
        if self.has("no_metadata"):
            return
        labels = {host: "CPU"}
        for pid in devices:
            labels.setdefault(pid, f"GPU {pid}")
        if self.has("wrong_metadata"):
            labels = {pid: "GPU 5" if label == "CPU" else "CPU" for pid, label in labels.items()}
        if self.has("contradictory_metadata"):
            self._name(host, "GPU 0")
            self._name(devices[0], "CPU")
        for pid, label in labels.items():
            self._name(pid, label)

    def _name(self, pid: int | str, label: str) -> None:
        for what, key, text in (
            ("process_name", "name", "python"),
            ("process_labels", "labels", label),
        ):
            record = {"ph": "M", "pid": pid, "tid": 0, "name": what, "ts": 0, "args": {key: text}}
            self.records.append(record)

    def _add(
        self, pid: int | str, tid: int | str, name: str, cat: str, at: int, took: int,
        args: dict[str, Any],
    ) -> None:  # fmt: skip
        record = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid}
        # Times in ns until they are written.
        self.records.append(record | {"ts": at, "dur": took, "args": args})

    # How it is written.

    def _text(self) -> str:
        records = [part for record in self.records for part in self._parts(record)]
        if self.has("unsorted"):
            self.draw.shuffle(records)
        else:
            records.sort(key=lambda record: record["ts"])
        written = [self._written(record) for record in records]
        if self.has("list_only"):
            text = json.dumps(written)
        else:
            base = {"baseTimeNanoseconds": 1_700_000_000_000_000_000}
            root = {"schemaVersion": 1, **(base if self.has("base_nanoseconds") else {})}
            text = json.dumps(root | {"traceEvents": written})
        text = re.sub(r'"@([^@"]*)@"', r"\1", text)
        return self._cut(text) if self.has("cut_text") else text

    def _parts(self, record: dict[str, Any]) -> list[dict[str, Any]]:
        """The record, or a begin and an end instead."""
        is_pair = record["ph"] == "X" and record["dur"] > 0 and record.get("cat") == "cpu_op"
        if not (is_pair and self.has("begin_end") and self.draw.random() < 0.5):
            return [record]
        thread = {key: record[key] for key in ("pid", "tid")}
        begin = {key: value for key, value in record.items() if key != "dur"} | {"ph": "B"}
        return [begin, {"ph": "E", **thread, "ts": record["ts"] + record["dur"]}]

    def _written(self, record: dict[str, Any]) -> dict[str, Any]:
        result = dict(record)
        result["ts"] = result.pop("raw_ts", None) or self._time(record["ts"])
        if "dur" in result:
            result["dur"] = self._time(record["dur"])
        if record.get("dur") == 0 and self.draw.random() < 0.5:
            # Nothing says how long: as good as no time.
            del result["dur"]
        if self.has("text_ids"):
            result |= {key: str(result[key]) for key in ("pid", "tid")}
        return result

    def _time(self, ns: int) -> str:
        """Microseconds: a number that stands between signs until the JSON is made, or a text."""
        whole, part = divmod(abs(ns), 1000)
        digits = f"{'-' if ns < 0 else ''}{whole}"
        if self.tick_ns == 1:
            digits += f".{part:03}"
        return digits if self.has("text_times") else f"@{digits}@"

    def _cut(self, text: str) -> str:
        """The text, and one more record, in the middle of which the file ends."""
        end = "]" if self.has("list_only") else "]}"
        return (
            text.removesuffix(end) + ', {"ph": "X", "cat": "kernel", "name": "lost", "pid": 0, "ti'
        )
