"""The requests and batches of all hosts, by model, and which of them are shown.

Sources of the rules: ``inference_stats_grouping.cc`` and ``inference_stats_sampler.cc`` in
``xprof/convert`` of openxla/xprof.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

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
    found = []
    for wanted, error in _WANTED:
        near = [item for item in places if wanted <= item[1] < wanted + error]
        found += near[:_MOST]
    return found


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
