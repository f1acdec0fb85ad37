"""A view as tfprof prints it: a header line and one line per row.

The same characters as upstream's file output from its header line on
(tensorflow/core/profiler/internal/tfprof_show.cc, tfprof_show_multi.cc, tfprof_op.cc,
tfprof_code.cc).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from peakline.deadline import checked
from peakline.errors import UsageError
from peakline.tfprof import GRAPH_PARENT, MEASURES, SCOPE_PARENT, OpNodes, Shown
from peakline.tfprof.shown import format_memory, format_number, format_time

_MOST_SPACES = 1 << 28

_COLUMN = {name: column for column, name in enumerate(MEASURES)}

_BYTES = {
    "bytes": ("requested_bytes", "requested bytes"),
    "peak_bytes": ("peak_bytes", "peak bytes"),
    "residual_bytes": ("residual_bytes", "residual bytes"),
    "output_bytes": ("output_bytes", "output bytes"),
}
_TIMES = {
    "micros": ("exec_micros", "total execution time"),
    "accelerator_micros": ("accelerator_exec_micros", "accelerator execution time"),
    "cpu_micros": ("cpu_exec_micros", "cpu execution time"),
}
_COUNTS = {"params": ("parameters", "# parameters"), "float_ops": ("float_ops", "# float_ops")}
_MEASURED = {**_BYTES, **_TIMES, **_COUNTS}
_OTHERS = {
    "device": "assigned devices",
    "op_types": "op types",
    "occurrence": "op count (run|defined)",
    "input_shapes": "input shapes",
}
_OP_OCCURRENCE = "op occurrence (run|defined)"
_COUNT_UNITS = {"params": "params", "float_ops": "flops"}
_OP_COUNT_UNITS = {"params": "params", "float_ops": "float_ops"}


def view_text(view: str, shown: Shown | None, select: Sequence[str]) -> bytes:
    """The printed form of ``view`` with the columns ``select``; empty for None."""
    if shown is None:
        return b""
    if view != "op":
        _check_depth(shown)
    wanted = set(select)
    if "micros" in wanted:
        # Total time is always followed by its two parts.
        wanted |= {"accelerator_micros", "cpu_micros"}
    collected = shown.members is not None
    order = [*_BYTES, *_TIMES, *_COUNTS] if collected else [*_COUNTS, *_BYTES, *_TIMES]
    measures = [name for name in order if name in wanted]
    others = [name for name in _OTHERS if name in wanted]
    legend = [_MEASURED[name][1] for name in measures]
    legend += [
        _OP_OCCURRENCE if collected and name == "occurrence" else _OTHERS[name] for name in others
    ]
    line: Callable[[int], str]
    if view == "op":
        line = _OpLines(shown, measures, others).line
    else:
        line = _TreeLines(view, shown, measures, others).line
    rows = range(1 if view == "op" else 0, shown.rows)
    text = f"node name | {' | '.join(legend)}\n" + "".join(map(line, checked(rows)))
    return text.encode("utf-8", "replace")


def _check_depth(shown: Shown) -> None:
    """Every level is indented by two more: a long chain of nodes would take its length squared."""
    spaces = 2 * int(shown.depth.sum())
    if spaces > _MOST_SPACES:
        raise UsageError(
            f"as text the view would be {spaces >> 20} MiB of indentation, being "
            f"{int(shown.depth.max())} levels deep; ask for json, or set max_depth"
        )


def advice_text(reports: dict[str, list[str]]) -> bytes:
    """The reports by checker."""
    text = "".join(
        f"\n{name}:\n" + "".join(f"{report}\n" for report in result)
        for name, result in reports.items()
    )
    return text.encode("utf-8", "replace")


def _formatted(name: str, value: int) -> str:
    if name in _BYTES:
        return format_memory(value)
    return format_time(value) if name in _TIMES else format_number(value)


class _TreeLines:
    """Lines of the views scope, graph and code."""

    def __init__(
        self, view: str, shown: Shown, measures: Sequence[str], others: Sequence[str]
    ) -> None:
        self._parent = SCOPE_PARENT if view == "scope" else GRAPH_PARENT
        self._shown, self._measures, self._others = shown, measures, others

    def line(self, row: int) -> str:
        shown, info = self._shown, []
        item = int(shown.item[row])
        for name in self._measures:
            if name == "params" and item >= 0 and (shape := shown.nodes.shape(item)):
                info.append("x".join(map(str, shape)))
            column = _COLUMN[_MEASURED[name][0]]
            own = _formatted(name, int(shown.own[row, column])) if shown.accounted[row] else "--"
            total = _formatted(name, int(shown.totals[row, column]))
            unit = _COUNT_UNITS.get(name)
            info.append(f"{own}/{total} {unit}" if unit else f"{own}/{total}")
        for name in self._others:
            if shown.members is not None:
                text = self._of_members(name, shown.members[row])
            else:
                text = self._of_node(name, row, item)
            if text is not None:
                info.append(text)
        return f"{'  ' * int(shown.depth[row])}{shown.names[row]} ({', '.join(info)})\n"

    def _of_node(self, name: str, row: int, item: int) -> str | None:
        nodes = self._shown.nodes
        if name == "device":
            return nodes.devices[item] if item >= 0 else None
        if name == "op_types":
            return "|".join(nodes.types(item)) if item >= 0 else self._parent
        if name == "occurrence":
            return self._occurrence(row)
        return "|".join(_shapes_of(nodes, item)) if item >= 0 else ""

    def _occurrence(self, row: int) -> str:
        shown = self._shown
        parts = []
        for measure, own in (
            ("run_count", format_number(int(shown.own[row, _COLUMN["run_count"]]))),
            ("definition_count", "1"),
        ):
            total = format_number(int(shown.totals[row, _COLUMN[measure]]))
            parts.append(f"{own if shown.accounted[row] else '--'}/{total}")
        return "|".join(parts)

    def _of_members(self, name: str, members: Sequence[int]) -> str | None:
        if name == "device":
            return _devices_of(self._shown.nodes, members) if members else None
        if name == "op_types":
            return _types_of(self._shown.nodes, members)
        return f"{name} N/A in code view"


class _OpLines:
    """Lines of the view op."""

    def __init__(self, shown: Shown, measures: Sequence[str], others: Sequence[str]) -> None:
        self._shown, self._measures, self._others = shown, measures, others

    def line(self, row: int) -> str:
        shown = self._shown
        members = shown.members[row] if shown.members is not None else ()
        cells = [self._share(name, row) for name in self._measures]
        for name in self._others:
            if name == "device":
                cells.append(_devices_of(shown.nodes, members))
            elif name == "op_types":
                cells.append(_types_of(shown.nodes, members))
            elif name == "occurrence":
                runs = sum(
                    int(shown.nodes.measures[node, _COLUMN["run_count"]]) for node in members
                )
                cells.append(f"{f'{runs}|{len(members)}':>10}")
        name = shown.names[row]
        # Widths count bytes.
        text = name + " " * (25 - len(name.encode())) + ", ".join(cells) + "\n"
        if "input_shapes" in self._others and (shapes := self._input_shapes(members)):
            text += f"\n{shapes}\n\n"
        return text

    def _share(self, name: str, row: int) -> str:
        """A value, the share of it and all after it in the whole, and its own share."""
        column = _COLUMN[_MEASURED[name][0]]
        own, total = int(self._shown.own[row, column]), int(self._shown.totals[row, column])
        whole = int(self._shown.totals[0, column])
        # Memory is left at zero where the row has none itself, the others where nothing follows.
        counts = own > 0 if name in _BYTES else total > 0
        below, share = (100.0 * total / whole, 100.0 * own / whole) if counts else (0.0, 0.0)
        unit = f" {_OP_COUNT_UNITS[name]}" if name in _COUNTS else ""
        return f"{f'{_formatted(name, own)}{unit} ({below:.2f}%, {share:.2f}%)':>30}"

    def _input_shapes(self, members: Sequence[int]) -> str:
        """Per kind of inputs, how often it ran and for how long, the most frequent first."""
        nodes = self._shown.nodes
        kinds: dict[str, list[int]] = {}
        for node in members:
            kind = "input_type: " + ",\t".join(_shapes_of(nodes, node))
            counts = kinds.setdefault(kind, [0, 0, 0])
            counts[0] += 1
            counts[1] += int(nodes.measures[node, _COLUMN["run_count"]])
            counts[2] += int(nodes.measures[node, _COLUMN["exec_micros"]])
        ordered = sorted(sorted(kinds.items()), key=lambda kind: kind[1][1], reverse=True)
        return "\n".join(
            f"{kind}\t(run*{runs}|defined*{defined})\texec_time: {format_time(micros)}"
            for kind, (defined, runs, micros) in ordered
        )


def _shapes_of(nodes: OpNodes, node: int) -> list[str]:
    return [
        f"{place}:{'x'.join(map(str, shape)) if shape else 'unknown'}"
        for place, shape in nodes.input_shapes(node)
    ]


def _devices_of(nodes: OpNodes, members: Sequence[int]) -> str:
    return "|".join(sorted({nodes.devices[node] or "" for node in members}))


def _types_of(nodes: OpNodes, members: Sequence[int]) -> str:
    return "|".join(sorted({text for node in members for text in nodes.types(node)}))
