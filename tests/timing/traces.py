"""Profiles with a few events, made of tables, and a slow look at them, moment by moment."""

from collections.abc import Mapping, Sequence
from itertools import pairwise, takewhile

from tests.tables.fake import FakeReader

from peakline.tables import Profile
from peakline.tables.derived import DERIVED
from peakline.trace.activity import Activity, activity_of
from peakline.trace.device_lines import Role, devices_of
from peakline.trace.events import HOST, trace_of
from peakline.trace.steps import step_places_of

HOST_PLANE, GPU, TPU = "/host:CPU", "/device:GPU:0", "/device:TPU:0"
Event = tuple[object, ...]


def profile_of(
    planes: Mapping[str, Mapping[str, Sequence[Event]]],
    steps: Sequence[tuple[str, int, int]] = (),
    *,
    kind: str = "xplane",
    stats: Sequence[tuple[int, str, object]] = (),
) -> Profile:
    """A profile of ``planes``: the events of each line, by its plane's and its own name.

    An event is ``(name, start, end)``, then its step and its category where it has them; a step is
    ``(name, start, end)``, the begin and end of its marker. ``stats`` are of events by number.
    """
    rows: dict[str, list[dict[str, object]]] = {"planes": [], "lines": [], "events": []}
    for name, lines in planes.items():
        plane_id = len(rows["planes"])
        is_device = name.startswith("/device") or "GPU" in name
        rows["planes"].append(
            {"plane_id": plane_id, "name": name, "kind": "device" if is_device else "host"}
        )
        for line, events in lines.items():
            line_id = len(rows["lines"])
            rows["lines"].append({"line_id": line_id, "plane_id": plane_id, "name": line})
            for event, start, end, *more in events:
                step, category = [*more, None, None][:2]
                rows["events"].append({
                    "event_id": len(rows["events"]), "line_id": line_id, "name": event,
                    "start_ps": start, "duration_ps": end - start, "step_id": step,
                    "category": category,
                })  # fmt: skip
    rows["steps"] = [
        {"step_id": number, "name": name, "start_ps": start, "end_ps": end}
        for number, (name, start, end) in enumerate(steps)
    ]
    rows["event_stats"] = [
        {"event_id": event, "name": name, "value": str(value)} for event, name, value in stats
    ]
    return Profile(FakeReader(rows).of_format(kind), derived=DERIVED)


def parts_of(profile: Profile, *, all_columns: bool = False) -> list[dict[str, object]]:
    """``step_breakdown`` with the parts that are not 0, in short."""
    table = profile.columns("step_breakdown").to_pylist()
    if all_columns:
        return table
    result = ("name", "device", "start_ps", "end_ps")
    return [
        {name.removesuffix("_ps"): value for name, value in row.items() if name in result}
        | {
            name.removesuffix("_ps"): value
            for name, value in row.items()
            if name.endswith("_ps") and name not in (*result, "wall_ps") and value
        }
        for row in table
    ]


def slow_windows(profile: Profile) -> dict[str | None, dict[int, tuple[int, int]]]:
    """From when to when every step lasts on every device, by the words of docs/steps.md."""
    events = _events(profile)
    steps = profile.columns("steps").to_pylist()
    devices = devices_of(profile)
    work = {
        device.name: [e for e in events if e["line"] in dict(device.lines) and e["activity"]]
        for device in devices
    }
    marks = {}
    for number, step in enumerate(steps):
        marks[number] = next(
            (e for e in events if e["on_host"] and e["step"] == number
             and (e["start"], e["end"]) == (step["start_ps"], step["end_ps"])), None,
        )  # fmt: skip
    result: dict[str | None, dict[int, tuple[int, int]]] = {}
    for device in devices or (None,):
        if steps and not any(marks.values()) and device is not None and device.is_tpu:
            result[device.name] = _of_step_line(profile, device, events)
            continue
        earliest = _leftover(work, min((s["start_ps"] for s in steps), default=0))
        wanted = []
        for number, step in enumerate(steps):
            start, end = step["start_ps"], step["end_ps"]
            if device is not None:
                own = [e["end"] for lines in work.values() for e in lines if e["step"] == number]
                end = max([end, *own])
            elif marks[number] and marks[number]["name"] == "FunctionRun":
                end = max([end, *(e["end"] for e in events if e["step"] == number)])
            wanted.append((start, end, number))
        wanted.sort()
        windows, before = {}, None
        takes_rest = device is not None or any(
            mark and mark["name"] == "FunctionRun" for mark in marks.values()
        )
        for start, end, number in wanted:
            begin = start
            if before is None:
                begin = min(max(start, earliest), end)
            elif takes_rest and max(start, before) < end:
                begin = max(start, before)
            before = max(end, begin, before or begin)
            windows[number] = (begin, max(end, begin))
        result[device.name if device else None] = windows
    return result


def _of_step_line(profile, device, events):
    """A core's own line of steps, or of modules, tells them."""
    trace = trace_of(profile)
    for names in (("Steps",), ("XLA Modules",)):
        own = [
            e for e in events
            if e["step"] >= 0 and trace.lines[e["line"]].name in names
            and trace.planes[trace.lines[e["line"]].plane].plane_id == device.plane_id
        ]  # fmt: skip
        if own:
            return {e["step"]: (e["start"], e["end"]) for e in own}
    return {}


def _leftover(work, marked):
    events = [e for lines in work.values() for e in lines]
    first = min((e["start"] for e in events if e["step"] >= 0), default=None)
    others = [e for e in events if e["step"] < 0]
    before = [e for e in others if first is not None and e["start"] < first and e["end"] > marked]
    if not before:
        return marked
    length = sum(e["end"] - e["start"] for e in before)
    after = sum(e["end"] - e["start"] for e in others if e["start"] >= first)
    return (
        marked if length <= after or 2 * length < first - marked else max(e["end"] for e in before)
    )


def slow_parts(profile: Profile) -> dict[tuple[str | None, int], dict[str, int]]:
    """What every step's time went to, by looking at every piece of time between two events."""
    events = _events(profile)
    trace = trace_of(profile)
    steps = profile.columns("steps").to_pylist()
    marked = set()
    for step in steps:
        span = step["start_ps"], step["end_ps"]
        of_step = [
            (e["line"], n) for n, e in enumerate(events)
            if e["on_host"] and e["step"] == step["step_id"] and (e["start"], e["end"]) == span
        ]  # fmt: skip
        marked |= set(of_step[:1])
    threads = {line for line, _ in marked}
    markers = {n for _, n in marked}
    host = [
        e for n, e in enumerate(events)
        if e["on_host"] and n not in markers and e["end"] > e["start"]
        and _tells(e, trace.lines[e["line"]].name, threads)
    ]  # fmt: skip
    compiles = [e for e in host if e["activity"] == Activity.COMPILE]
    result = {}
    devices = {device.name: device for device in devices_of(profile)}
    for name, windows in slow_windows(profile).items():
        lines = dict(devices[name].lines) if name else {}
        own = [e for e in events if e["line"] in lines and e["activity"] != Activity.NOTHING]
        times = sorted({t for e in [*host, *own] for t in (e["start"], e["end"])}
                       | {t for window in windows.values() for t in window})  # fmt: skip
        for number, (begin, end) in windows.items():
            parts: dict[str, int] = {}
            inside = [t for t in times if begin <= t <= end]
            here_own, here_host = (
                sorted(
                    (e for e in events if e["start"] < end and e["end"] > begin),
                    key=lambda e: e["start"],
                )
                for events in (own, host)
            )
            for a, b in pairwise(inside):
                now_own, now_host = (
                    [e for e in takewhile(lambda e: e["start"] <= a, here) if a < e["end"]]  # noqa: B023
                    for here in (here_own, here_host)
                )
                part = _explained(
                    now_own, lines, now_host, threads, compiles, a, has_device=bool(name)
                )
                parts[part] = parts.get(part, 0) + b - a
            result[name, number] = parts
    return result


def _events(profile):
    trace, activity, step = trace_of(profile), activity_of(profile), step_places_of(profile)
    result = []
    for number, line in enumerate(trace.lines):
        on_host = trace.planes[line.plane].kind == HOST
        result += [
            {"line": number, "name": trace.name[e], "start": int(trace.start[e]),
             "end": int(trace.end[e]), "activity": Activity(int(activity[e])),
             "step": int(step[e]), "on_host": on_host, "place": e}
            for e in range(line.first, line.last)
        ]  # fmt: skip
    return result


def _tells(event, line, threads):
    if event["activity"] == Activity.NOTHING:
        return False
    if event["line"] in threads:
        return True
    if event["activity"] == Activity.INPUT_WORK:
        return False
    runs = event["activity"] in (Activity.HOST_OP, Activity.COMMUNICATION)
    return event["step"] >= 0 or (line.startswith("tf_XLA") and runs)


def _explained(own, lines, now_host, threads, compiles, moment, *, has_device):
    """The part that a moment belongs to."""
    on_device = set()
    of_core = [e for e in own if lines[e["line"]] is not Role.ASYNC]
    for line in {e["line"] for e in of_core}:
        there = [e for e in of_core if e["line"] == line]
        if lines[line] is Role.OPS:
            there = [max(there, key=lambda e: (e["start"], -e["end"], e["place"]))]
        on_device |= {e["activity"] for e in there}
    if not of_core:
        on_device |= {e["activity"] for e in own}
    of_threads = {
        _of_thread([e for e in now_host if e["line"] == line],
                   [e for e in compiles if e["line"] == line], moment, is_thread=line in threads)
        for line in {e["line"] for e in now_host}
    }  # fmt: skip
    order = [
        (Activity.COMPUTE, "compute"), (Activity.COMMUNICATION, "communication"),
        (Activity.DEVICE_TO_DEVICE, "device_to_device"),
        (Activity.DEVICE_TO_HOST, "device_to_host"), (Activity.HOST_TO_DEVICE, "host_to_device"),
        (Activity.INPUT_WAIT, "input_wait"),
    ]  # fmt: skip
    for activity, part in order:
        if activity in on_device:
            return part
    order = [
        (Activity.COMMUNICATION, "communication"), (Activity.INPUT_WAIT, "input_wait"),
        (Activity.COMPILE, "compile"), (Activity.LAUNCH, "launch"),
        (Activity.HOST_OP, "host_compute"), (Activity.HOST, "host_compute"),
    ]  # fmt: skip
    if not has_device:
        order.insert(0, order.pop(4))
    for activity, part in order:
        if activity in of_threads:
            return part
    return "idle" if has_device else "unknown"


def _of_thread(now, compiles, moment, *, is_thread):
    """What one thread is at."""
    waits = {Activity.INPUT_WAIT} | ({Activity.INPUT_WORK} if is_thread else set())
    if any(e["activity"] in waits for e in now):
        return Activity.INPUT_WAIT
    if any(e["activity"] == Activity.COMPILE for e in now):
        return Activity.COMPILE
    for call in (e for e in now if e["activity"] == Activity.LAUNCH):
        compiled = [min(e["end"], call["end"]) for e in compiles if e["start"] < call["end"]]
        if compiled and moment < max(compiled):
            return Activity.COMPILE
    inner = [e for e in now if e["activity"] not in (Activity.HOST, Activity.INPUT_WORK)]
    if inner:
        return max(inner, key=lambda e: (e["start"], -e["end"], e["place"]))["activity"]
    return now[-1]["activity"]
