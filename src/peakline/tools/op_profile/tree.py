"""The tree of ``op_profile`` (``convert/op_profile_builder.cc`` in openxla/xprof), also as JSON.

The JSON is in the form of protobuf's own of the message ``Node``
(``plugin/xprof/protobuf/op_profile.proto`` there).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from peakline.timing.ops.metrics import HBM, READ, WRITE, OpMetrics, OpTable, Source, added
from peakline.timing.ops.names import IDLE
from peakline.timing.programs.rates import GIBI, PeakRates, gibi, ratio

PROGRAM, CATEGORY, PROVENANCE = "program", "category", "provenance"
_WHOLE_LEVELS = {PROGRAM: 2, CATEGORY: 1, PROVENANCE: 100}
_MOST_CHILDREN, _MOST_SCOPES = 100, 200
_SPARSE_CORE = "SparseCore"


Take = Callable[[list["Node"], int, Callable[["Node"], float]], list["Node"]]


@dataclass(eq=False)
class Node:
    """A part of the tree: an op (``op`` is set), or a group of them.

    ``sums`` is what its numbers are made of, None where nothing is shown; ``count`` how many
    children it has, some of which are left out; ``whole`` the time of the tree, for its root.
    """

    name: str
    op: OpMetrics | None = None
    is_group_of_duplicates: bool = False
    children: list[Node] = field(default_factory=list)
    sums: OpMetrics | None = None
    count: int = 0
    whole: int | None = None
    by_key: dict[tuple[str, object], Node] = field(default_factory=dict)

    @property
    def is_fusion(self) -> bool:
        """Whether it is a fusion, whose parts are sorted by what they compute."""
        return self.op is not None and self.op.facts.category.endswith(" fusion")

    def child(self, kind: str, key: object, name: str) -> Node:
        """The group of a kind with this key below it, made on first use."""
        if (kind, key) not in self.by_key:
            self.by_key[kind, key] = Node(name)
            self.children.append(self.by_key[kind, key])
        return self.by_key[kind, key]

    def add(self, op: OpMetrics) -> None:
        """Count an op as a whole."""
        if self.sums is None:
            self.sums = OpMetrics("")
        self.sums.add(op)

    def add_self(self, op: OpMetrics) -> None:
        """Count the self time of an op, and what it computes unless it holds others."""
        if self.sums is None:
            self.sums = OpMetrics("")
        sums = self.sums
        sums.total_ps = (sums.total_ps + op.self_ps) % 2**64
        sums.normalized_ps += op.normalized_ps
        if op.total_ps == op.self_ps:
            sums.flops += op.flops
            sums.model_flops += op.model_flops
            sums.moved = added(sums.moved, op.moved)


def build_tree(
    table: OpTable, programs: Mapping[int, str], group_by: str, *, with_idle: bool, take: Take
) -> Node:
    """The tree of these ops; ``programs`` are the names of the compiled programs by id, ``take``
    gives the children with the largest of some number, those first.
    """
    root = Node(f"by_{group_by}")
    root.sums = OpMetrics("")
    for op in table.ops.values():
        if op.name.startswith("region") or (_is_idle(op) and not with_idle):
            continue
        _add(root, op, programs, group_by)
    root.whole = root.sums.total_ps = table.total_ps if with_idle else table.op_ps
    _prune(root, _WHOLE_LEVELS[group_by], take)
    _join_duplicates(root)
    return root


def _is_idle(op: OpMetrics) -> bool:
    return op.facts.category == IDLE


def _add(root: Node, op: OpMetrics, programs: Mapping[int, str], group_by: str) -> None:
    root.add_self(op)
    at = root
    if not _is_idle(op) and group_by != CATEGORY:
        known = programs.get(op.program)
        name = "main" if known is None else f"{known}({op.program})"
        at = root.child("program", op.program, name)
        at.add_self(op)
    parts = op.facts.children or ()
    if op.total_ps != op.self_ps and not any(part.facts.core == _SPARSE_CORE for part in parts):
        return
    if _is_idle(op):
        groups = []
    else:
        if group_by == PROVENANCE:
            for scope in scopes(op.provenance):
                at = at.child("scope", scope, scope)
                at.add_self(op)
        category = at.child("category", op.facts.category, op.facts.category)
        own = op.facts.deduplicated_name or op.name
        groups = [category, category.child("duplicates", own, own)]
        at = groups[-1]
    leaf = Node(op.name, op)
    leaf.children = list(_parts(op))
    at.children.append(leaf)
    for node in (*groups, leaf):
        node.add(op)


def scopes(provenance: str) -> list[str]:
    """The scopes of the framework's op, without its type; all beyond 200 are one."""
    parts = [part for part in provenance.split("/") if part]
    if len(parts) > _MOST_SCOPES:
        parts[_MOST_SCOPES - 1 :] = ["/".join(parts[_MOST_SCOPES - 1 :])]
    if parts:
        parts[-1] = parts[-1].partition(":")[0]
    return parts


def _parts(op: OpMetrics) -> Iterator[Node]:
    for part in op.facts.children or ():
        node = Node(part.name, part)
        node.add(part)
        node.children = list(_parts(part))
        yield node


def _prune(node: Node, level: int, take: Take) -> None:
    """Sort the children of every node, and leave out those beyond the first hundred, but for the
    highest levels.
    """
    node.count = len(node.children)
    for child in node.children:
        _prune(child, level - 1, take)
    if node.count > 1:
        most = node.count if level > 0 else _MOST_CHILDREN
        key = _model_flops if node.is_fusion else _time
        node.children = take(node.children, most, key)


def _model_flops(node: Node) -> float:
    return node.sums.model_flops if node.sums else 0.0


def _time(node: Node) -> float:
    return float(node.sums.total_ps) if node.sums else 0.0


def _join_duplicates(node: Node) -> None:
    """Name groups of duplicates by the first; one alone takes the place of its group."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if node.op is not None or not node.children:
            continue
        if any(child.op is None for child in node.children):
            waiting += node.children
            continue
        first = node.children[0]
        if len(node.children) == 1:
            node.name, node.op, node.children = first.name, first.op, first.children
            node.sums, node.count = first.sums, first.count
        else:
            node.name, node.op = f"{first.name} and its duplicate(s)", first.op
            node.is_group_of_duplicates = True


def metrics(sums: OpMetrics, peaks: PeakRates, total_ps: int) -> dict[str, object]:
    """The numbers of a node, with the time of the whole tree."""
    nanoseconds = sums.total_ps / 1e3
    rate = ratio(sums.flops, nanoseconds)
    if sums.normalized_ps:
        rate *= ratio(sums.total_ps, sums.normalized_ps)
    use = ratio(rate, peaks.gigaflops)
    share = ratio(sums.total_ps, total_ps)
    chip = [(space, way) for space, way in sums.moved if space != HBM]
    speeds = [
        gibi(ratio(sums.moved.get((HBM, READ), 0), nanoseconds))
        + gibi(ratio(sums.moved.get((HBM, WRITE), 0), nanoseconds)),
        *(
            gibi(ratio(sum(sums.moved[place] for place in chip if place[1] == way), nanoseconds))
            for way in (READ, WRITE)
        ),
    ]
    limits = [gibi(peaks.bandwidth(kind)) for kind in range(3)]
    return {
        "flops": min(use, 1.0) * share,
        "bandwidthUtils": [
            min(ratio(speed, limit), 1.0) for speed, limit in zip(speeds, limits, strict=True)
        ],
        "rawTime": sums.total_ps,
        "rawFlops": sums.model_flops,
        "rawBytesAccessedArray": [speed * GIBI * nanoseconds for speed in speeds],
        "occurrences": sums.occurrences % 2**32,
        "avgTimePs": ratio(sums.total_ps, sums.occurrences),
        "bf16Flops": sums.flops,
        "uncappedFlops": use * share,
        "normalizedTimePs": sums.normalized_ps,
    }


_NO_SOURCE = Source()
_KERNEL = re.compile(r'kernel_metadata=(\{|")')


def as_json(root: Node, peaks: PeakRates) -> dict[str, Any]:
    """A tree as values of JSON."""
    total_ps = 0 if root.whole is None else root.whole

    def shown(node: Node) -> dict[str, Any]:
        result: dict[str, Any] = {"name": node.name}
        if node.sums is not None:
            numbers = metrics(node.sums, peaks, total_ps)
            result["metrics"] = {name: _plain(value) for name, value in numbers.items()}
        result["children"] = [shown(child) for child in node.children]
        if node.op is not None:
            result["xla"] = _instruction(node)
        result["numChildren"] = node.count
        return result

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
    result: dict[str, Any] = {
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
        result["layout"] = {"dimensions": []}
    return result


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
        result = value["xprof_metadata"]
        if isinstance(result, str):
            result = json.loads(result)
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return json.dumps(result, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
