"""A slow reader of the collectives in a trace of PyTorch's profiler, straight from its JSON."""

import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from math import prod

Event = Mapping[str, object]
BYTES = {"float": 4, "half": 2, "bfloat16": 2, "long": 8, "int": 4, "signed char": 1}
WORDS = [
    ("reduce-scatter", "reduce_scatter"), ("all-reduce", "all_?reduce"),
    ("all-gather", "all_?gather"), ("all-to-all", "all_?to_?all"), ("broadcast", "broadcast"),
    ("send-recv", "sendrecv"), ("barrier", "barrier"), ("send", "send"), ("recv", "recv"),
]  # fmt: skip


def kind_in(text: str) -> str | None:
    """The first kind whose word the text holds."""
    return next((kind for kind, word in WORDS if re.search(word, text.lower())), None)


def slow_collectives(trace: Mapping[str, object]) -> list[dict[str, object]]:
    """The rows of `collectives`, less ids and what several devices have in common."""
    events = [one for one in trace["traceEvents"] if one.get("ph") == "X"]
    zero = min(Decimal(str(one["ts"])) for one in events)
    info = trace.get("distributedInfo", {})
    groups = {str(one["pg_name"]): one for one in info.get("pg_config", ())}

    def ps(time: object) -> int:
        return int((Decimal(str(time)) - zero) * 10**6)

    def around(event: Event) -> list[Event]:
        """What lies around an event on its thread, the innermost first; itself too."""
        own = [
            one for one in events
            if (one["pid"], one["tid"]) == (event["pid"], event["tid"])
            and one["ts"] <= event["ts"] and one["ts"] + one["dur"] >= event["ts"] + event["dur"]
        ]  # fmt: skip
        return sorted(own, key=lambda one: one["dur"])

    launches = {
        one["args"]["correlation"]: one for one in events
        if one["cat"] == "cuda_runtime"
    }  # fmt: skip
    rows = []
    for event in events:
        if event["cat"] == "kernel":
            place = (event["pid"] + 1, event["ts"])
            launch = launches.get(event["args"]["correlation"])
            outer = around(launch) if launch else []
            record = next((one for one in outer if one["name"] == "record_param_comms"), None)
            if record is None and "nccl" not in event["name"]:
                continue
            call = next((one for one in outer if one["name"].startswith("c10d::")), None)
            stats = {**(record or {}).get("args", {}), **event["args"]}
            texts = [stats.get("Collective name", ""), call["name"] if call else "", event["name"]]
            row = of_stats(stats, next(kind for kind in map(kind_in, texts) if kind), groups)
            outermost = call or record or launch
            row["launch_ps"] = ps(outermost["ts"]) if outermost else None
            if row["size_bytes"] is None and call and "Input Dims" in call["args"]:
                annotation = next((one for one in outer if one["name"].startswith("nccl:")), None)
                add_shapes(row, call["args"], (annotation or call)["args"])
        elif event["name"].startswith("gloo:"):
            place = (0, event["ts"])
            row = of_gloo(event, groups)
            row["launch_ps"] = None
        else:
            continue
        row["arrive_ps"] = ps(event["ts"])
        row["end_ps"] = ps(event["ts"]) + int(Decimal(str(event["dur"])) * 10**6)
        rows.append((place, event, row))
    rows.sort(key=lambda one: one[0])
    note_calls(events, [(event, row) for _, event, row in rows if event["cat"] != "kernel"], ps)
    return [row for _, _, row in rows]


def plain(value: object) -> str:
    """A text without the quotes that some versions write around it."""
    return str(value).strip('"')


def as_ranks(value: object) -> list[int] | None:
    """A whole list of ranks; None for one that is cut short."""
    try:
        result = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return None
    return result or None


def of_stats(stats: Mapping[str, object], kind: str, groups: Mapping[str, Event]) -> dict:
    """What the stats of a kernel and of its record say."""
    name = plain(stats["Process Group Name"]) if "Process Group Name" in stats else None
    size, ranks = stats.get("Group size"), as_ranks(stats.get("Process Group Ranks"))
    listed = groups.get(name)
    if ranks is None and size and "Global rank start" in stats:
        first, step = stats["Global rank start"], stats["Global rank stride"]
        ranks = [first + step * number for number in range(size)]
    elif ranks is None and listed and listed["pg_size"] == size:
        ranks = as_ranks(listed["ranks"])
    data_type = plain(stats["dtype"]) if "dtype" in stats else None
    elements = [stats.get(f"{side} msg nelems") for side in ("In", "Out")]
    bytes_ = None
    if elements[0] is not None:
        is_joined = kind in ("all-gather", "reduce-scatter")
        bytes_ = (max(elements) if is_joined else elements[0]) * BYTES[data_type.lower()]
    peer = stats.get({"send": "Dst Rank", "recv": "Src Rank"}.get(kind, ""))
    return {
        "kind": kind, "group_name": name, "group_ranks": json.dumps(ranks) if ranks else None,
        "group_size": size or (len(ranks) if ranks else None), "peer": peer,
        "sequence": stats.get("Seq"), "size_bytes": bytes_, "data_type": data_type,
    }  # fmt: skip


def elements_of(shapes: Sequence[object]) -> list[int]:
    """The elements of each input that is a tensor or a list of them."""
    result = []
    for shape in shapes:
        if shape and isinstance(shape[0], list):
            result.append(sum(prod(one) for one in shape))
        elif shape:
            result.append(prod(shape))
    return result


def add_shapes(row: dict, call: Mapping, given: Mapping) -> None:
    """Size and type by the shapes of the call's inputs, else of those of what it enqueued."""
    sizes = elements_of(call.get("Input Dims", []))
    types = [*call.get("Input type", []), *given.get("Input type", [])]
    known = [one for one in types if one.replace("c10::", "").lower() in BYTES]
    if row["kind"] == "all-gather":
        row["group_size"], elements = sizes[0] // sizes[1], sizes[0]
    elif row["kind"] == "all-to-all":
        elements = sizes[1]
    else:
        elements = (sizes or elements_of(given["Input Dims"]))[0]
    row["data_type"] = known[0]
    row["size_bytes"] = elements * BYTES[known[0].replace("c10::", "").lower()]


def of_gloo(event: Event, groups: Mapping[str, Event]) -> dict:
    """What an event of gloo says, and the only group that it can be of."""
    several = [
        one for one in groups.values()
        if one["pg_size"] > 1 and "gloo" in one["backend_config"]
    ]  # fmt: skip
    group = several[0] if len(several) == 1 else None
    kind = kind_in(event["name"])
    sizes = elements_of(event["args"].get("Input Dims", []))
    bytes_ = 4 * sizes[0] if sizes else None
    if kind == "all-gather":
        bytes_ = None
    return {
        "kind": kind, "group_name": group and group["pg_name"],
        "group_ranks": group and json.dumps(as_ranks(group["ranks"])),
        "group_size": group and group["pg_size"], "peer": None, "sequence": None,
        "size_bytes": bytes_, "data_type": "float" if sizes else None,
    }  # fmt: skip


def note_calls(events: Sequence[Event], works: Sequence[tuple[Event, dict]], ps) -> None:
    """When each work of gloo was enqueued: by the first call before it that is of its size."""
    calls = sorted(
        (one for one in events if one["name"].startswith("c10d::")), key=lambda one: one["ts"]
    )
    members = {}
    for event, row in sorted(works, key=lambda one: one[0]["ts"]):
        size = elements_of(event["args"].get("Input Dims", []))
        for call in calls:
            sizes = elements_of(call["args"].get("Input Dims", []))
            same = size[0] in sizes if size and sizes else row["kind"] == kind_in(call["name"])
            if call["ts"] <= event["ts"] and same:
                row["launch_ps"] = ps(call["ts"])
                if "allgather_base" in call["name"]:
                    members[event["tid"]] = sizes[0] // sizes[1]
                calls.remove(call)
                break
    for event, row in works:
        # A thread of gloo is of one group.
        row["group_size"] = row["group_size"] or members.get(event["tid"])
        if row["kind"] == "all-gather" and row["group_size"]:
            sizes = elements_of(event["args"]["Input Dims"])
            row["size_bytes"] = 4 * sizes[0] * row["group_size"]
