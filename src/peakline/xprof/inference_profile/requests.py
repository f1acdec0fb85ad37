"""The requests and batches that one host served (``xprof/convert/inference_stats.cc``)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from peakline.xprof.inference_profile.events import (
    CALLBACK,
    DONE,
    EXECUTES,
    ISSUED,
    LAUNCHES,
    PADDINGS,
    SCHEDULES,
    TENSORS,
    TRANSFERS,
    Event,
    HostEvents,
    batching_settings,
    host_events,
    module_runs,
    other_devices,
)
from peakline.xprof.inference_profile.names import BATCHES, REQUESTS
from peakline.xprof.inference_profile.spans import Part, Span, Spent, spent_within, xprof_spent

if TYPE_CHECKING:
    from peakline.tables import Profile

_SETTING = "/tensorflow/serving/batching/"
_SETTINGS = (
    "num_batch_threads", "batch_timeout_micros", "max_batch_size", "max_enqueued_batches",
    "allowed_batch_sizes",
)  # fmt: skip
NO_MODEL = ""


@dataclass
class Moments:
    """When the work of one group passed the points that part a request's time, in ps."""

    schedule: int | None = None
    concat: int | None = None
    execute: int | None = None
    launch: int | None = None
    callback: int | None = None


@dataclass
class Request:
    """A request: times in ps, ``delay_ps`` until its first batch began, ``size`` in the batch.

    ``model`` is None where nothing was looked up: XProf then takes the first model.
    """

    request_id: int
    model: str | None
    begin_ps: int
    end_ps: int
    batches: list[int]
    delay_ps: int = 0
    size: int = 0
    spent: Spent = field(default_factory=dict)
    pattern: tuple[str, int] | None = None
    """What tensors it moved, and how long that took in ps."""


@dataclass
class Batch:
    """A batch: times in ps, ``delay_ps`` since its first request began, sizes in tasks."""

    batch_id: int
    model: str | None
    begin_ps: int
    end_ps: int
    requests: list[int]
    delay_ps: int = 0
    padding: int = 0
    size: int = 0
    device_ps: int = 0
    programs: list[int] = field(default_factory=list)
    pattern: tuple[str, int] | None = None


@dataclass(frozen=True)
class Served:
    """What one host served, ``models`` in the order in which they were met.

    ``settings`` are the batching parameters by model, ``zero_ps`` is when the clock was zero, in ps
    since 1970 where that is known; to XProf that is what the file's clock says.
    """

    requests: list[Request]
    batches: list[Batch]
    models: list[str]
    settings: dict[str, dict[str, str]]
    zero_ps: int | None

    @property
    def moves_tensors(self) -> bool:
        """Whether anything says which tensors it moved."""
        return any(r.pattern for r in self.requests) or any(b.pattern for b in self.batches)


def served_by(profile: Profile, *, compatible: bool) -> Served:
    """The requests and batches of one host, each by length.

    Groups are those of the profiler itself, which define what a request is. ``compatible`` counts
    only TPUs as devices, times the first of a request's batches by number, and counts spans without
    length as `xprof_spent`. Raises InputError when the profile cannot be read.
    """
    if profile.event_rules.planes is None:
        return Served([], [], [], {}, None)
    serving = _Serving(profile.with_runtime_steps(), compatible=compatible)
    if left_out := serving.events.left_out:
        text = "links of requests with batches, where too many of both meet, left out"
        profile.warn("links_left_out", text, left_out, once=True)
    return serving.served()


class _Serving:
    def __init__(self, profile: Profile, *, compatible: bool) -> None:
        self.profile, self.compatible = profile, compatible
        self.events: HostEvents = host_events(profile)
        self.models: list[str] = []
        self.requests: dict[int, Request] = {}
        self.batches: dict[int, Batch] = {}
        self.spans: dict[int, list[Span]] = defaultdict(list)
        self.batch_spans: dict[int, list[Span]] = defaultdict(list)
        self.moments: dict[int, dict[int, Moments]] = defaultdict(lambda: defaultdict(Moments))

    def served(self) -> Served:
        self._find_requests()
        self._find_batches()
        self._schedule()
        self._transfers()
        self._devices()
        self._runtime()
        self._delays()
        self._tensors()
        for request in self.requests.values():
            spans = self.spans[request.request_id] + self._parts(request)
            request.spent = (
                xprof_spent(spans)
                if self.compatible
                else spent_within(spans, request.begin_ps, request.end_ps)
            )
        for batch in self.batches.values():
            spans = self.batch_spans[batch.batch_id]
            begin, end = batch.begin_ps, batch.end_ps
            spent = xprof_spent(spans) if self.compatible else spent_within(spans, begin, end)
            batch.device_ps = spent.get(Part.DEVICE_COMPUTE, 0)
        requests = [each for each in self.requests.values() if each.end_ps > each.begin_ps]
        requests.sort(key=lambda each: (each.end_ps - each.begin_ps, each.begin_ps))
        batches = sorted(
            self.batches.values(), key=lambda each: (each.end_ps - each.begin_ps, each.begin_ps)
        )
        settings = _settings(batching_settings(self.profile), self.models)
        start_ns = self.profile.start_ns
        zero_ps = None if start_ns is None else start_ns * 1000
        if self.compatible:
            zero_ps = self.profile.zero_ps
        return Served(requests, batches, self.models, settings, zero_ps)

    # What there is.

    def _find_requests(self) -> None:
        events = self.events
        processed = {event.group for event in events.of(BATCHES)}
        model_of: dict[int, str] = {}
        named = events.of(("SessionRun", "TfrtModelRun", "ServingModelRun"))
        for event in [*named, *events.roots]:
            if "model_id" in event.stats:
                model_of[event.group] = str(event.stats["model_id"])
        types = next((each for each in REQUESTS if events.seen & set(each)), REQUESTS[-1])
        is_batching = types == REQUESTS[0]
        for event, is_root in [
            *((event, False) for event in events.of(types)),
            *((event, True) for event in events.roots),
        ]:
            group = event.group
            if group in processed or group in self.requests:
                continue
            children = events.children.get(group, [])
            model: str | None = model_of.get(group, NO_MODEL)
            if not self.events.has_groups:
                # Nobody knows what belongs together; XProf looks no further.
                model = None if self.compatible else model
            elif is_batching and not is_root:
                model = self._of_batching(children, model_of)
            elif is_root and group not in model_of:
                model = self._of_children(children, model_of)
            if model and model not in self.models:
                self.models.append(model)
            begin, end = events.begin_ps[group], events.end_ps[group]
            self.requests[group] = Request(group, model, begin, end, children)

    def _of_batching(self, children: list[int], model_of: dict[int, str]) -> str | None:
        """The model of a batching request: its sessions', which are all of one."""
        if self.compatible:
            return model_of.get(children[0], NO_MODEL) if children else None
        return next((model_of[child] for child in children if child in model_of), NO_MODEL)

    def _of_children(self, children: list[int], model_of: dict[int, str]) -> str | None:
        """The model of a request that does not say its own: that of all its batches, if of one."""
        if not children:
            return None if self.compatible else NO_MODEL
        result = [model_of.get(child, NO_MODEL) for child in children]
        for model in result:
            if model and model not in self.models:
                self.models.append(model)
        known = [model for model in result if model] if not self.compatible else result
        if not self.compatible:
            return known[0] if len(set(known)) == 1 else NO_MODEL
        # Batches without a model before the first that has one do not count.
        while known and not known[0]:
            known.pop(0)
        return known[0] if len(set(known)) == 1 else NO_MODEL

    def _find_batches(self) -> None:
        for event in self.events.of(BATCHES):
            if not self.events.has_groups:
                continue
            requests = self.events.parents.get(event.group, [])
            model: str | None = None
            if requests and requests[0] in self.requests:
                first = self.requests[requests[0]]
                model = first.model
            if not (model or self.compatible):
                known = (self.requests[each].model for each in requests if each in self.requests)
                model = next(filter(None, known), NO_MODEL)
            before = self.batches.get(event.group)
            if before is None:
                self.batches[event.group] = Batch(
                    event.group, model, event.begin_ps, event.end_ps, requests
                )
            else:
                before.begin_ps, before.end_ps = event.begin_ps, event.end_ps

    # What happened when.

    def _reached(self, group: int) -> Iterable[Request]:
        """The request that a group is, and those whose work led to it."""
        for each in (group, *self.events.parents.get(group, ())):
            if each in self.requests:
                yield self.requests[each]

    def _moments_of(self, event: Event) -> Iterable[Moments]:
        for request in self._reached(event.group):
            yield self.moments[request.request_id][event.group]

    def _add(self, group: int, span: Span) -> None:
        for request in self._reached(group):
            self.spans[request.request_id].append(span)
        if group in self.batches:
            self.batch_spans[group].append(span)

    def _schedule(self) -> None:
        for event in self.events.of(SCHEDULES):
            for moments in self._moments_of(event):
                moments.schedule = event.begin_ps
            if event.group in self.requests and "batching_input_task_size" in event.stats:
                self.requests[event.group].size = event.number("batching_input_task_size")
        for event in self.events.of(PADDINGS):
            for moments in self._moments_of(event):
                moments.concat = event.begin_ps
            batch = self.batches.get(event.group)
            if batch and {"padding_amount", "batch_size_after_padding"} <= event.stats.keys():
                batch.size = event.number("batch_size_after_padding")
                batch.padding = event.number("padding_amount")

    def _transfers(self) -> None:
        for name, part in TRANSFERS.items():
            for event in self.events.of((name,)):
                self._add(event.group, Span(part, event.begin_ps, event.end_ps))
        for name, part in ISSUED.items():
            issued = {e.number("_c"): e for e in self.events.of((name,)) if "_c" in e.stats}
            ends: dict[int, int] = {}
            for event in self.events.of((name + DONE,)):
                context = event.number("_c")
                if "_c" not in event.stats or context not in issued:
                    continue
                if issued[context].begin_ps < event.begin_ps:
                    ends[context] = event.end_ps
            for context, end in ends.items():
                self._add(issued[context].group, Span(part, issued[context].begin_ps, end))

    def _devices(self) -> None:
        for group, span, program in module_runs(self.profile):
            self._add(group, span)
            if group in self.batches and program not in self.batches[group].programs:
                self.batches[group].programs.append(program)
        if not self.compatible:
            for group, span in other_devices(self.profile):
                self._add(group, span)

    def _runtime(self) -> None:
        for event in self.events.of(EXECUTES):
            for moments in self._moments_of(event):
                moments.execute = event.begin_ps
        for event in self.events.of(LAUNCHES):
            for moments in self._moments_of(event):
                known = moments.launch
                moments.launch = event.begin_ps if known is None else min(known, event.begin_ps)
        for event in self.events.of((CALLBACK,)):
            for moments in self._moments_of(event):
                moments.callback = event.begin_ps

    def _delays(self) -> None:
        for request in self.requests.values():
            batches = [self.batches[each] for each in request.batches if each in self.batches]
            if not batches:
                continue
            first = last = batches[0]
            if not self.compatible:
                first = min(batches, key=lambda batch: batch.begin_ps)
                last = max(batches, key=lambda batch: batch.end_ps)
            request.delay_ps = first.begin_ps - request.begin_ps
            request.end_ps = max(request.end_ps, last.end_ps)
        for batch in self.batches.values():
            begins = [self.requests[n].begin_ps for n in batch.requests if n in self.requests]
            if begins:
                batch.delay_ps = batch.begin_ps - min(begins)

    def _parts(self, request: Request) -> list[Span]:
        """The parts of a request on the host, from one moment to another."""
        every = list(self.moments[request.request_id].values())
        executes = [each.execute for each in every if each.execute is not None]
        result = [
            Span(Part.HOST_RUNTIME, each.execute, each.launch)
            for each in every
            if each.execute is not None and each.launch is not None
        ]
        if executes:
            result.append(Span(Part.HOST_PREPROCESS, request.begin_ps, min(executes)))
        callbacks = [each.callback for each in every if each.callback is not None]
        if not callbacks:
            spans = self.spans[request.request_id]
            callbacks = [span.end_ps for span in spans if span.part == Part.DEVICE_COMPUTE]
        if callbacks:
            result.append(Span(Part.HOST_POSTPROCESS, max(callbacks), request.end_ps))
        schedules = [each.schedule for each in every if each.schedule is not None]
        concats = [each.concat for each in every if each.concat is not None]
        if schedules and concats:
            result.append(Span(Part.HOST_BATCH_FORMATION, schedules[0], min(concats)))
        return result

    def _tensors(self) -> None:
        moved: dict[int, list[Event]] = defaultdict(list)
        for event in self.events.of(TENSORS):
            moved[event.group].append(event)
        for group, events in moved.items():
            owner = self.requests.get(group) or self.batches.get(group)
            if owner and all({"shape", "layout"} <= event.stats.keys() for event in events):
                parts = sorted(f"{e.name} {e.stats['shape']} {e.stats['layout']}" for e in events)
                took = sum(event.end_ps - event.begin_ps for event in events)
                owner.pattern = "<br>".join(parts), took


def _settings(
    stats: Iterable[tuple[str, object]], models: Iterable[str]
) -> dict[str, dict[str, str]]:
    """The batching parameters by model: metrics name models without their versions."""
    by_name: dict[str, dict[str, str]] = {}
    for name, value in stats:
        setting, brace, labels = name.removeprefix(_SETTING).partition("{")
        inside, closing, _ = labels.rpartition("}")
        if not (name.startswith(_SETTING) and brace and closing):
            continue
        pairs = [label.split("=") for label in inside.split(", ")]
        model = next((p[1] for p in pairs if len(p) == 2 and p[0] == "model_name"), None)
        known = next((each for each in _SETTINGS if setting.startswith(each)), None)
        if model is not None and known is not None:
            by_name.setdefault(model, {})[known] = str(value)
    result = {}
    for model in models:
        name, colon, version = model.rpartition(":")
        own = name if colon and version.lstrip("+-").isdigit() else model
        if own in by_name:
            result[model] = by_name[own]
    return result
