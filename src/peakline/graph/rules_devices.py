"""Device specifications, and nodes that are to be placed together.

``import_graph_def`` reads a device with Python's ``DeviceSpec``
(tensorflow/python/framework/device_spec.py) and writes it down again in its canonical form;
that form is read by ``DeviceNameUtils::ParseFullName`` (tensorflow/core/util/
device_name_utils.cc) when the node is placed. Neither is the grammar of the comment in
graph.proto, which knows no ``/cpu:0`` and no 0, and has ``@node``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from peakline.graph.index import GraphIndex
from peakline.graph.rules import BrokenRule, broken_at, quoted
from peakline.tables.columns import Columns

_TYPES = {"CPU", "GPU", "TPU", "EPU", "CUSTOM"}
"""Device types that DeviceSpec knows by themselves (TensorFlow 2.21); others need /device:."""

_NAME = re.compile(r"\*|[A-Za-z][A-Za-z0-9_]*")
_GROUP = "loc:@"
_STRINGS = re.compile(r'"((?:[^"\\]++|\\.)*+)"?+', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


@dataclass(frozen=True)
class DeviceProblem:
    """Why a device is refused; with ``is_error`` importing the graph fails for it."""

    message: str
    is_error: bool


def device_problem(device: str) -> DeviceProblem | None:
    """What is wrong with a device; None when nothing is."""
    job: str | None = None
    numbers: dict[str, int] = {}
    kind: str | None = None
    for part in device.split("/"):
        words = part.split(":")
        word = words[0]
        if not word:
            continue
        is_type = word.upper() in _TYPES and len(words) <= 2
        is_device = word == "device" and len(words) == 3
        if len(words) == 2 and word == "job":
            job = words[1]
        elif len(words) == 2 and word in {"replica", "task"}:
            number = _number(words[1])
            if number is None:
                return DeviceProblem(_no_number(device, word, words[1]), is_error=True)
            numbers[word] = number
        elif is_type or is_device:
            if kind is not None:
                return DeviceProblem(f"{quoted(device)} has two device types", is_error=True)
            kind = words[1] if is_device else word.upper()
            place = words[-1] if len(words) == 3 or not is_device else "*"
            if len(words) > 1 and place != "*":
                number = _number(place)
                if number is None:
                    return DeviceProblem(_no_number(device, word, place), is_error=True)
                numbers["index"] = number
        else:
            return DeviceProblem(_unknown(device, words), is_error=True)
    return _malformed(device, job, kind, numbers)


def _malformed(
    device: str, job: str | None, kind: str | None, numbers: dict[str, int]
) -> DeviceProblem | None:
    """What placing the node refuses of a device that importing has read."""
    if job is not None and not _NAME.fullmatch(job):
        what = f"job {quoted(job)} is no * or letter followed by letters, digits and _"
    elif kind is not None and not _NAME.fullmatch(kind):
        what = f"type {quoted(kind)} is no * or letter followed by letters, digits and _"
    elif below := [name for name, number in numbers.items() if number < 0]:
        what = f"the {below[0]} is negative"
    else:
        return None
    return DeviceProblem(
        f"{quoted(device)} can be imported, but no node can be placed there: {what}", is_error=False
    )


def _number(text: str) -> int | None:
    """As Python's ``int`` reads it, which is what DeviceSpec does."""
    try:
        return int(text)
    except ValueError:
        return None


def _no_number(device: str, word: str, text: str) -> str:
    message = f"{quoted(device)}: {quoted(text)} is no number for {word!r}"
    if text == "*" and word in {"replica", "task"}:
        message += "; leave the part out to mean any (the C++ runtime alone takes the *)"
    return message


def _unknown(device: str, words: list[str]) -> str:
    message = f"{quoted(device)}: {quoted(':'.join(words))} is no part of a device"
    if words[0].startswith("@"):
        return (
            f"{message}; TensorFlow reads no '@node', whatever the comment in graph.proto says: "
            f"the attribute _class with '{_GROUP}node' places nodes together"
        )
    if words[0] == "device":
        return f"{message}; it is written /device:TYPE:INDEX, with * for any index"
    if words[0] == "stream":
        return f"{message}; streams occur in step statistics only"
    return f"{message}; parts are /job:NAME, /replica:N, /task:N and /device:TYPE:INDEX"


def check_devices(index: GraphIndex, colocated: set[int]) -> Iterator[BrokenRule]:
    """The device of every node; not of those in rows ``colocated``, whose device nobody reads."""
    devices = index.nodes.names("device")
    problems = {
        code: problem
        for code, value in enumerate(devices.values)
        if (problem := device_problem(value)) is not None
    }
    if not problems:
        return
    for row in np.flatnonzero(np.isin(devices.codes, list(problems))).tolist():
        if row not in colocated:
            problem = problems[int(devices.codes[row])]
            yield broken_at(index, row, "device", problem.message, is_error=problem.is_error)


def check_colocation(index: GraphIndex, attrs: Columns) -> tuple[list[BrokenRule], set[int]]:
    """The nodes that others are to be placed with (attribute ``_class``).

    Also returns the rows of nodes that are placed with another. Calling a function does not
    look at the colocation of its nodes, so inside a body a missing node is no error.
    """
    keys = attrs.names("attr")
    result = attrs.take(keys.codes == keys.code_of("_class"))
    scopes, names = index.scopes_of(result), index.strings.codes(result.names("name"))
    rows = index.find_nodes(scopes, names)
    kinds, values = result.names("kind"), result.names("value")
    groups = {code: _groups(values.values[code]) for code in np.unique(values.codes).tolist()}
    of_row = [groups[code] for code in values.codes.tolist()]
    is_list = np.isin(kinds.codes, [kinds.code_of("list"), kinds.code_of("")])
    broken = []
    for at, targets in enumerate(of_row):
        if targets is None or not is_list[at]:
            message = "_class is no list of strings"
            broken.append(_of_class(index, rows[at], "attribute_kind", message))
            of_row[at] = None
    pairs = [(at, target) for at, targets in enumerate(of_row) for target in targets or ()]
    entry = np.fromiter((at for at, _ in pairs), np.int64, len(pairs))
    wanted = np.fromiter((index.strings.code(target) for _, target in pairs), np.int64, len(pairs))
    there = index.find_nodes(scopes[entry], wanted)
    for at in np.flatnonzero(there < 0).tolist():
        message = f"to be placed with {quoted(pairs[at][1])}, which is not there"
        broken.append(_of_class(index, rows[entry[at]], "colocation", message))
    with_other = entry[(there >= 0) & (there != rows[entry])]
    return broken, set(rows[with_other].tolist())


def _of_class(index: GraphIndex, row: int, rule: str, message: str) -> BrokenRule:
    in_body = index.scopes[int(index.node_scope[row])].function is not None
    return broken_at(index, row, rule, message, is_error=not in_body)


def _groups(value: str) -> list[str] | None:
    """The nodes that a ``_class`` list names; None when it is no list of strings."""
    strings = [_ESCAPE.sub(r"\1", text) for text in _STRINGS.findall(value)]
    if not strings and value not in {"", "[]"}:
        return None
    return [text.removeprefix(_GROUP) for text in strings if text.startswith(_GROUP)]
