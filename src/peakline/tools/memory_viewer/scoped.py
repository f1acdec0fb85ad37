"""Fast memory that instructions of TPU programs take only while they run (scoped VMEM)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from peakline import schema
from peakline.tables.programs import INSTRUCTIONS
from peakline.wire import Plan, decode

if TYPE_CHECKING:
    from peakline.tables.programs import Programs

_FAST = 1
"""The memory space of a TPU's VMEM."""
_KEY = "used_scoped_memory_configs"


def largest_scoped(programs: Programs, number: int, space: int) -> tuple[int, str]:
    """The most bytes that an instruction takes so in a memory space, and its name: the first.

    XLA writes it into the configuration of the back end (``used_scoped_memory_configs``).
    """
    if space != _FAST:
        return 0, ""
    data = programs.data(number)
    shared = decode(data, Plan(schema.shape("xla.HloProto"), ("hlo_module.payloads",)))
    payloads = shared["hlo_module.payloads"].spans("value")
    paths = ("name", "backend_config", "backend_config_payload.value", "backend_config_payload.id?")
    plan = Plan(schema.shape("xla.HloInstructionProto"), paths)
    decoded = decode(data, plan, programs.parts(number, ())[INSTRUCTIONS].spans("@span"))
    head, indirect = decoded[""], decoded["backend_config_payload"]
    configs = head.spans("backend_config")
    sizes = {
        int(row): _scoped(configs.bytes(data, int(row)), space)
        for row in configs.length.nonzero()[0].tolist()
    }
    ids = indirect.array("id").tolist()
    is_shared = indirect.array("id?").tolist()
    known: dict[int, int] = {}
    for at, row in enumerate(indirect.parent.tolist()):
        one = ids[at]
        if not is_shared[at]:
            sizes[row] = _scoped(indirect.spans("value").bytes(data, at), space)
        elif 0 <= one < len(payloads):
            if one not in known:
                known[one] = _scoped(payloads.bytes(data, one), space)
            sizes[row] = known[one]
    most, owner = 0, -1
    for row, size in sorted(sizes.items()):
        if size > most:
            most, owner = size, row
    return most, head.spans("name").bytes(data, owner).decode("utf-8", "replace") if most else ""


def _scoped(text: bytes, space: int) -> int:
    """The largest entry of one configuration; 0 where it is none that says it."""
    if _KEY.encode() not in text:
        return 0
    try:
        result = json.loads(text)
    except (ValueError, RecursionError):
        return 0
    listed = result.get(_KEY) if isinstance(result, dict) else None
    if not isinstance(listed, list):
        return 0
    entries = [one for one in listed if isinstance(one, dict)]
    sizes = (_whole(one.get("size")) for one in entries if _whole(one.get("memory_space")) == space)
    return max(sizes, default=0)


def _whole(value: Any) -> int:
    """A number, or the text of one, as an int64; 0 for anything else."""
    try:
        number = int(value) if isinstance(value, (int, float, str)) else 0
    except (ValueError, OverflowError):
        return 0
    is_one = not isinstance(value, bool) and -(2**63) <= number < 2**63
    return number if is_one else 0
