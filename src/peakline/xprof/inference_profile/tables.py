"""The tables of ``inference_profile`` (``xprof/convert/multi_xspace_to_inference_stats.cc``)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from peakline.toolbox.written import Column, DataTable, Value
from peakline.xprof.inference_profile.requests import NO_MODEL, Batch, Request, Served
from peakline.xprof.inference_profile.spans import Part

ALL, UNATTRIBUTED = "ALL", "unattributed"
_WANTED = ((50.0, 1), (75.0, 1), (90.0, 1), (99.0, 0.5), (99.9, 0.05), (99.99, 0.005))
"""Percentiles that are shown, and how far from there."""
_MOST = 10
"""So many are shown of each."""
_One = TypeVar("_One", Request, Batch)


@dataclass(frozen=True)
class Model:
    """What was served of one model, each by length."""

    name: str
    requests: list[Request]
    batches: list[Batch]
    settings: dict[str, str] | None


def models_of(hosts: Sequence[Served], *, compatible: bool) -> list[Model]:
    """By name. Without any model all is one, ``ALL``; else XProf leaves out what has none, and
    takes what it never looked up for the first.
    """
    # The hosts' own clocks, where all say what these are.
    starts = [host.zero_ps for host in hosts]
    known = [start for start in starts if start is not None]
    first = min(known) if len(known) == len(starts) and known else None
    names: list[str] = []
    settings: dict[str, dict[str, str]] = {}
    requests: list[Request] = []
    batches: list[Batch] = []
    for host in hosts:
        moved = 0 if first is None or host.zero_ps is None else host.zero_ps - first
        names += [name for name in host.models if name not in names]
        settings = {**host.settings, **settings}
        for each in host.requests:
            model = _model_of(each, host, compatible=compatible)
            requests.append(replace(
                each, model=model, begin_ps=each.begin_ps + moved, end_ps=each.end_ps + moved
            ))  # fmt: skip
        for one in host.batches:
            model = _model_of(one, host, compatible=compatible)
            batches.append(replace(
                one, model=model, begin_ps=one.begin_ps + moved, end_ps=one.end_ps + moved
            ))  # fmt: skip
    if not names:
        return [Model(ALL, _by_length(requests), _by_length(batches), None)]
    shown = [(name, name) for name in sorted(names)]
    unknown = any(r.model == NO_MODEL for r in requests) or any(
        b.model == NO_MODEL for b in batches
    )
    if unknown and not compatible:
        shown.append((NO_MODEL, UNATTRIBUTED))
    return [
        Model(
            label,
            _by_length([each for each in requests if each.model == name]),
            _by_length([each for each in batches if each.model == name]),
            settings.get(name),
        )
        for name, label in shown
    ]


def _model_of(each: Request | Batch, host: Served, *, compatible: bool) -> str:
    if each.model is None:
        return host.models[0] if compatible and host.models else NO_MODEL
    return each.model


def _by_length(items: list[_One]) -> list[_One]:
    return sorted(items, key=lambda each: (each.end_ps - each.begin_ps, each.begin_ps))


REQUEST_COLUMNS: dict[str, Callable[[Request], float]] = {
    "Latency": lambda each: each.end_ps - each.begin_ps,
    "Request delay for batching": lambda each: each.delay_ps % 2**64,
    "Request size": lambda each: each.size,
    "Host preprocess": lambda each: each.spent.get(Part.HOST_PREPROCESS, 0),
    "Host batch formation": lambda each: each.spent.get(Part.HOST_BATCH_FORMATION, 0),
    "Host runtime": lambda each: each.spent.get(Part.HOST_RUNTIME, 0),
    "Data transfer H2D": lambda each: each.spent.get(Part.HOST_TO_DEVICE, 0),
    "Data transfer D2H": lambda each: each.spent.get(Part.DEVICE_TO_HOST, 0),
    "Device compute": lambda each: each.spent.get(Part.DEVICE_COMPUTE, 0),
    "Host postprocess": lambda each: each.spent.get(Part.HOST_POSTPROCESS, 0),
    "Idle time": lambda each: each.spent.get(Part.IDLE, 0),
}
"""By what requests can be put in order, by the name that the option has."""


def efficiency(padding: float, size: float) -> float:
    """The share of a batch that is no padding; 0 of one without size."""
    return (size - padding) / size if size else 0.0


BATCH_COLUMNS: dict[str, Callable[[Batch], float]] = {
    "Latency": lambda each: each.end_ps - each.begin_ps,
    "Batching delay": lambda each: each.delay_ps % 2**64,
    "Padding amount": lambda each: each.padding,
    "Batch size after padding": lambda each: each.size,
    "Batching efficiency": lambda each: efficiency(each.padding, each.size),
}
"""By what batches can be put in order, by the name that the option has."""


def sampled(items: list[_One], by: Callable[[_One], float]) -> list[tuple[_One, float]]:
    """Those that are shown with their percentiles: all of few, else some of each wanted one."""
    ordered = sorted(items, key=by)
    count = len(ordered)
    places = [(each, 100.0 * place / count) for place, each in enumerate(ordered)]
    if count <= len(_WANTED) * _MOST:
        return places
    result = []
    for wanted, error in _WANTED:
        near = [item for item in places if wanted <= item[1] < wanted + error]
        result += near[:_MOST]
    return result


def throughput(items: Sequence[Request] | Sequence[Batch]) -> float:
    """How many a second, from the first begin to the last end."""
    if not items:
        return 0.0
    took = max(each.end_ps for each in items) - min(each.begin_ps for each in items)
    return len(items) / (took / 1e12) if took else float("inf")


def latency_ms(items: Sequence[Request] | Sequence[Batch]) -> float:
    """The mean length."""
    if not items:
        return 0.0
    return sum(each.end_ps - each.begin_ps for each in items) / 1e6 / len(items) / 1e3


_NONE = "N/A"
_PARTS = (
    (Part.HOST_PREPROCESS, "host_preprocessing", "Host preprocess"),
    (Part.HOST_RUNTIME, "host_runtime", "Host runtime"),
    (Part.HOST_TO_DEVICE, "data_transfer_h2d", "Data transfer H2D"),
    (Part.DEVICE_TO_HOST, "data_transfer_d2h", "Data transfer D2H"),
    (Part.DEVICE_COMPUTE, "device_compute", "Device compute"),
    (Part.HOST_POSTPROCESS, "host_postprocess", "Host postprocess"),
    (Part.IDLE, "idle time", "Idle time"),
)
_DEVICE = -4
"""The place of the time on devices in a row of requests."""
_REQUEST = (
    Column("percentile", "string", "Percentile"),
    Column("request_id", "string", "Request ID"),
    Column("latency_ms", "number", "Latency"),
)
_OF_BATCHING = (
    Column("batching_request_size", "number", "Request size"),
    Column("host_batch_formation", "number", "Host batch formation"),
    Column("throughput", "string", "Throughput"),
)
_URL = Column("trace_viewer_url", "string", "Trace Viewer URL")
_BATCH = (
    Column("percentile", "string", "Percentile"),
    Column("batch_id", "string", "Batch ID"),
    Column("latency", "number", "Latency"),
    Column("padding_amount", "number", "Padding amount"),
    Column("batch_size_after_padding", "number", "Batch size after padding"),
    Column("batching_efficiency", "number", "Batching efficiency"),
    Column("batching_delay_us", "number", "Batching delay"),
    Column("throughput", "string", "Throughput"),
    Column("device_compute", "number", "Device compute"),
    Column("program_id", "string", "Program ID(s)"),
    _URL,
)
_PATTERN = (
    Column("id", "number", "ID"),
    Column("tensor_pattern", "string", "Tensor Pattern"),
    Column("count", "number", "Number of Occurrence"),
    Column("percentile", "string", "Linearize/Delinearize latency"),
)
_PERCENTILES = (50.0, 75.0, 90.0, 95.0, 99.0, 99.9)
_PARAMETERS = {
    "batchingParamNumBatchThreads": "num_batch_threads",
    "batchingParamMaxBatchSize": "max_batch_size",
    "batchingParamBatchTimeoutMicros": "batch_timeout_micros",
    "batchingParamMaxEnqueuedBatches": "max_enqueued_batches",
    "batchingParamAllowedBatchSizes": "allowed_batch_sizes",
}


def inference_tables(
    hosts: Sequence[Served], *, request_column: str, batch_column: str, compatible: bool
) -> list[DataTable]:
    """The models, and of each its requests, its batches and the tensors that they move.

    Of batches and tensors there are tables where any host has some. ``compatible`` cuts means to
    whole ps and tasks, and says of no profile that it has tensors.
    """
    models = models_of(hosts, compatible=compatible)
    has_batches = any(model.batches for model in models)
    has_patterns = any(host.moves_tensors for host in hosts)
    shown = has_patterns and not compatible
    result = [
        DataTable(
            [Column("model_name", "string", "Model Name")],
            [[model.name] for model in models],
            {"hasBatching": _truth(has_batches), "hasTensorPattern": _truth(shown)},
        )
    ]
    for model in models:
        averages = _Averages(model, compatible=compatible)
        result.append(_requests(model, averages, request_column, has_batches=has_batches))
        if has_batches:
            result.append(_batches(model, averages, batch_column))
        if has_patterns:
            result.append(_patterns(model))
    return result


def _truth(value: bool) -> str:
    return "true" if value else "false"


class _Averages:
    """Rows of means; `compatible` ones are whole ps, cut, of lengths modulo 2^64."""

    def __init__(self, model: Model, *, compatible: bool) -> None:
        self.compatible = compatible
        self.requests: dict[int, list[Request]] = defaultdict(list)
        self.batches: dict[int, list[Batch]] = defaultdict(list)
        size_of = {batch.batch_id: batch.size for batch in model.batches}
        for request in model.requests:
            for batch_id in request.batches:
                if batch_id in size_of:
                    self.requests[size_of[batch_id]].append(request)
        for batch in model.batches:
            self.batches[batch.size].append(batch)
        self.sizes = sorted({*self.requests, *self.batches})

    def ms(self, lengths: Sequence[int]) -> float:
        """The mean of times in ps."""
        if not lengths:
            return 0.0
        if self.compatible:
            return sum(lengths) % 2**64 // len(lengths) / 1e9
        return sum(lengths) / len(lengths) / 1e9

    def count(self, numbers: Sequence[int]) -> float:
        """The mean of counts."""
        if not numbers:
            return 0.0
        mean = sum(numbers) / len(numbers)
        return float(int(mean)) if self.compatible else mean

    def delay_ms(self, delay_ps: int) -> float:
        """A delay as it is shown: one below 0 is a large number to XProf."""
        return (delay_ps % 2**64 if self.compatible else delay_ps) / 1e9

    def of_requests(
        self, requests: Sequence[Request], rate: str, *, has_batches: bool
    ) -> list[Value]:
        """What a row says of requests together, after their name."""
        row: list[Value] = [_NONE, self.ms([each.end_ps - each.begin_ps for each in requests])]
        if has_batches:
            sizes, delays = [r.size for r in requests], [r.delay_ps for r in requests]
            row += [self.count(sizes), self.ms(delays), rate]
        for part, _, _ in _PARTS:
            row.append(self.ms([each.spent.get(part, 0) for each in requests]))
        return [*row, ""]

    def of_batches(self, batches: Sequence[Batch]) -> list[Value]:
        """Length, padding, size, efficiency and delay of batches together."""
        padding = self.count([each.padding for each in batches])
        size = self.count([each.size for each in batches])
        return [
            self.ms([each.end_ps - each.begin_ps for each in batches]), padding, size,
            efficiency(sum(each.padding for each in batches), sum(each.size for each in batches)),
            self.ms([each.delay_ps for each in batches]),
        ]  # fmt: skip


def _requests(model: Model, averages: _Averages, column: str, *, has_batches: bool) -> DataTable:
    columns = [*_REQUEST, *(_OF_BATCHING if has_batches else ())]
    columns += [Column(name, "number", label) for _, name, label in _PARTS]
    rows: list[list[Value]] = []
    for each, percentile in sampled(model.requests, REQUEST_COLUMNS[column or "Latency"]):
        row: list[Value] = [
            f"{percentile:.3f}", str(each.request_id), (each.end_ps - each.begin_ps) / 1e9
        ]  # fmt: skip
        if has_batches:
            row += [each.size, averages.delay_ms(each.delay_ps), _NONE]
        rows.append([*row, *(each.spent.get(part, 0) / 1e9 for part, _, _ in _PARTS), ""])
    rate, count = throughput(model.requests), len(model.requests)
    for size in averages.sizes:
        mine = averages.requests[size]
        share = f"{len(mine) * rate / count:.1f}" if count else "0.0"
        shown = averages.of_requests(mine, share, has_batches=has_batches)
        if averages.compatible:
            # That of the batches, also beside what else the requests did.
            shown[_DEVICE] = averages.ms([each.device_ps for each in averages.batches[size]])
        rows.append([f"Batch size {size}", *shown])
    shown = averages.of_requests(model.requests, f"{rate:.1f}", has_batches=has_batches)
    rows.append(["Average", *shown])
    properties = {
        "throughput": f"{rate:.1f}",
        "averageLatencyMs": f"{latency_ms(model.requests):.3f}",
    }
    return DataTable([*columns, _URL], rows, properties)


def _batches(model: Model, averages: _Averages, column: str) -> DataTable:
    rows: list[list[Value]] = []
    for each, percentile in sampled(model.batches, BATCH_COLUMNS[column or "Latency"]):
        rows.append([
            f"{percentile:.3f}", str(each.batch_id), (each.end_ps - each.begin_ps) / 1e9,
            each.padding, each.size, efficiency(each.padding, each.size),
            averages.delay_ms(each.delay_ps), _NONE, each.device_ps / 1e9,
            _programs([each]), "",
        ])  # fmt: skip
    rate, count = throughput(model.batches), len(model.batches)
    for size in averages.sizes:
        mine = averages.batches[size]
        shown = averages.of_batches(mine)
        device = averages.ms([each.device_ps for each in mine])
        share = f"{len(mine) * rate / count:.1f}" if count else "0.0"
        rows.append([f"Batch size {size}", _NONE, *shown, share, device, _programs(mine), ""])
    shown = averages.of_batches(model.batches)
    device = averages.ms([each.device_ps for each in model.batches])
    rows.append(["Aggregated", _NONE, *shown, f"{rate:.1f}", device, _NONE, _NONE])
    properties = {
        "throughput": f"{rate:.1f}",
        "averageLatencyMs": f"{latency_ms(model.batches):.3f}",
        "hasBatchingParam": _truth(model.settings is not None),
    }
    if model.settings is not None:
        for name, setting in _PARAMETERS.items():
            missing = "" if setting == "allowed_batch_sizes" else "0"
            properties[name] = model.settings.get(setting, missing)
    return DataTable(_BATCH, rows, properties)


def _programs(batches: Sequence[Batch]) -> str:
    """The programs that batches ran, in order."""
    numbers = dict.fromkeys(program for each in batches for program in each.programs)
    return ", ".join(map(str, numbers)) or _NONE


def _patterns(model: Model) -> DataTable:
    """The tensors that were moved, the most frequent first: how long it took in percentiles."""
    took: dict[str, list[int]] = defaultdict(list)
    patterns = [each.pattern for each in model.requests] + [each.pattern for each in model.batches]
    for pattern, length in filter(None, patterns):
        took[pattern].append(length)
    rows: list[list[Value]] = []
    for pattern, lengths in sorted(took.items(), key=lambda item: (-len(item[1]), item[0])):
        lengths.sort()
        shown = [
            f"{percent:.2f}%: {lengths[int(percent / 100 * len(lengths))] / 1e9:.6f}ms"
            for percent in _PERCENTILES
        ]
        rows.append([len(rows), pattern, len(lengths), "<br>".join(shown)])
    return DataTable(_PATTERN, rows)
