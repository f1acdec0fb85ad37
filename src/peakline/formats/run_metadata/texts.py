"""Texts of StepStats: device names and labels, types and shapes as the runtime spells them.

Rules of device names and labels: ``tensorflow/python/client/timeline.py`` and
``tensorflow/core/common_runtime/step_stats_collector.cc``.
"""

from __future__ import annotations

import re

import numpy as np

from peakline.arrays import BoolArray
from peakline.formats.memory_log.tensors import shape_text
from peakline.tables.columns import Names
from peakline.wire import Buffer, Spans
from peakline.wire.strings import Interner

KINDS = ("executor", "stream", "stream_all", "memcpy", "sync", "rpc")
EXECUTOR, STREAM, STREAM_ALL, MEMCPY, SYNC, RPC = range(6)

_TASK = re.compile(r"/job:[^/]*(?:/replica:[^/]*)?(?:/task:[^/]*)?")


def device_kind(device: str) -> int:
    """What an entry of this name holds: an index of `KINDS`."""
    if "/stream:all" in device:
        return STREAM_ALL
    if "/stream:" in device:
        return STREAM
    if "/memcpy" in device:
        return MEMCPY
    return SYNC if device.endswith("/sync") else EXECUTOR


def hardware(device: str) -> str:
    """The device whose work a hardware tracer's entry holds: ``/device:GPU:0``."""
    for mark in ("/stream:", "/memcpy"):
        device = device.partition(mark)[0]
    return device


def task_of(device: str) -> str:
    """The task a device belongs to, such as ``/job:worker/replica:0/task:1``; empty when local."""
    result = _TASK.match(device)
    return result[0] if result else ""


def label_parts(label: str) -> tuple[str, list[str]] | None:
    r"""Op type and inputs of an executor's label ``[...] name = Op(input, ^control)``.

    They are what ``(.*) = (.*)\((.*)\)`` finds, which TensorFlow's own timeline looks for; a
    regular expression takes the cube of a strange label's length.
    """
    line = label.partition("\n")[0]
    end = line.rfind(")")
    start = line.rfind("(", 0, max(end, 0))
    equals = line.rfind(" = ", 0, max(start, 0))
    if equals < 0:
        return None
    inputs = line[start + 1 : end]
    return line[equals + 3 : start], inputs.split(", ") if inputs else []


def kernel_parts(label: str, node: str) -> tuple[str, str | None]:
    """Node and op type of a hardware tracer's row: from ``@@node:op#`` in its label, else from
    its name ``node:op``; the type is None where there is no colon.
    """
    start, end = label.find("@@"), label.find("#")
    if start >= 0 and start + 2 < end:
        node = label[start + 2 : end]
    name, *rest = node.split(":")
    return name, rest[0] if rest else None


def shape_names(buffer: Buffer, spans: Spans, known: BoolArray) -> Names:
    """Shapes such as ``[3, 3, 512, 512]`` of TensorShapeProto messages, null where not ``known``
    or damaged.

    An unknown size is ``?``, a shape of unknown rank ``<unknown>``, as the runtime prints them.
    """
    interner = Interner()
    codes = interner.add(buffer, spans)
    texts = [shape_text(interner.bytes(code)) for code in range(len(interner))]
    readable = np.array([text is not None for text in texts], np.bool_)
    if codes.size:
        known = known & readable[codes]
    return Names(np.where(known, codes, -1).astype(np.int32), [text or "" for text in texts])
