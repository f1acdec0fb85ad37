"""The tree of ``op_profile`` as JSON, in the form of protobuf's own of the message ``Node``
(``plugin/xprof/protobuf/op_profile.proto`` in openxla/xprof).
"""

from __future__ import annotations

import json
import re
from typing import Any

from peakline.timing.ops.metrics import Source
from peakline.timing.programs.rates import PeakRates
from peakline.tools.op_profile.tree import Node, metrics

_NO_SOURCE = Source()
_KERNEL = re.compile(r'kernel_metadata=(\{|")')


def as_json(root: Node, peaks: PeakRates) -> dict[str, Any]:
    """A tree as values of JSON."""
    total_ps = 0 if root.whole is None else root.whole

    def shown(node: Node) -> dict[str, Any]:
        found: dict[str, Any] = {"name": node.name}
        if node.sums is not None:
            numbers = metrics(node.sums, peaks, total_ps)
            found["metrics"] = {name: _plain(value) for name, value in numbers.items()}
        found["children"] = [shown(child) for child in node.children]
        if node.op is not None:
            found["xla"] = _instruction(node)
        found["numChildren"] = node.count
        return found

    return shown(root)


def _plain(value: Any) -> Any:
    """Whole numbers without a decimal."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _instruction(node: Node) -> dict[str, Any]:
    op = node.op
    if op is None:
        return {}
    facts, source = op.facts, op.facts.source or _NO_SOURCE
    is_joined = node.is_group_of_duplicates
    found: dict[str, Any] = {
        "op": "",
        "expression": facts.long_name,
        "provenance": "" if is_joined and node.is_fusion else op.provenance,
        "category": facts.category,
        "computationPrimitiveSize": 0,
        "fingerprint": "0",
        "programId": str(op.program),
        "sourceInfo": {
            "fileName": source.file, "lineNumber": source.line, "stackFrame": source.stack,
        },
        "xprofKernelMetadata": _kernel_metadata(facts.long_name),
    }  # fmt: skip
    if is_joined and not node.is_fusion:
        found["layout"] = {"dimensions": []}
    return found


def _kernel_metadata(text: str) -> str:
    """What a kernel's author says of it to XProf, among the attributes of its call."""
    place = _KERNEL.search(text) if "xprof_metadata" in text else None
    if place is None:
        return ""
    try:
        start = place.start(1)
        value, _ = json.JSONDecoder().raw_decode(text, start)
        if isinstance(value, str):
            value = json.loads(value)
        found = value["xprof_metadata"]
        if isinstance(found, str):
            found = json.loads(found)
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return json.dumps(found, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
