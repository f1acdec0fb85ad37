"""What the events of a device say about the ops behind them, as paths of names for derived lines.

A path is a list of names, outermost first: an op's name scopes, or one name alone. Each is made
once per distinct value of the stats. Sources: ``derived_timeline.cc`` and ``gpu_event_stats.cc`` in
openxla/xprof (``xprof/utils``), ``tf_op_utils.cc`` in openxla/xla (``xla/tsl/profiler/utils``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int32Array, Int64Array
from peakline.tables import Names, Profile
from peakline.tables.once import once
from peakline.timing.ops.names import JAX, TENSORFLOW, TF_DATA, UNKNOWN, parse_op_name

_WANTED = frozenset(
    """
    tf_op hlo_op hlo_module program_id kernel_details cuda_graph_exec_id source _a device_id
    correlation_id
    """.split()
)
_DERIVED_FIRST, _DERIVED_LAST = 0xDEADBEEF - 2**32, 0xDEADFFFF - 2**32
_STARTS = ("copy-start", "dynamic-slice-start", "dynamic-update-slice-start")
_DONES = ("copy-done", "dynamic-slice-done", "dynamic-update-slice-done")
_IN_HOST_MEMORY = "S(5)"


@dataclass(frozen=True, eq=False)
class Paths:
    """The path of every event (-1: none): ``codes[first[p]:first[p + 1]]`` into ``texts``, each a
    name as it is shown and in full (None: no other).
    """

    path: Int64Array
    first: Int64Array
    codes: Int64Array
    texts: list[tuple[str, str | None]]

    @classmethod
    def of(cls, path: AnyArray, names: Iterable[list[tuple[str, str | None]]]) -> Paths:
        """Paths from the names of each."""
        known: dict[tuple[str, str | None], int] = {}
        codes: list[int] = []
        first = [0]
        for own in names:
            codes += [known.setdefault(name, len(known)) for name in own]
            first.append(len(codes))
        return cls(path, np.array(first, np.int64), np.array(codes, np.int64), list(known))


@dataclass(frozen=True)
class Stream:
    """A line of a device: its row in ``lines``, the number it has in the file, its events."""

    line: int
    native: int
    name: str
    rows: Int64Array


class DeviceEvents:
    """The timed events of one plane, by start, the shortest first, as upstream sorts them here.

    ``rows`` are theirs in ``events``; ``group`` is the step, -1 for none. Lines that are derived
    already do not count unless ``with_derived``.
    """

    def __init__(self, profile: Profile, plane: int, *, with_derived: bool = False) -> None:
        self.plane, self._profile = plane, profile
        events, lines = profile.columns("events"), profile.columns("lines")
        native = lines.array("native_id")
        mine = lines.array("plane_id") == plane
        if not with_derived:
            mine &= ~((native >= _DERIVED_FIRST) & (native <= _DERIVED_LAST))
        self._lines, self._native = np.flatnonzero(mine), native
        self._line_names = lines.names("name")
        rows = np.flatnonzero(mine[events.array("line_id")] & events.is_valid("start_ps"))
        start = events.array("start_ps")[rows]
        length = np.maximum(events.array("duration_ps")[rows], 0)
        order = np.lexsort((length, start))
        self.rows, self.start = rows[order], start[order]
        self.end = self.start + length[order]
        known = events.is_valid("step_id")[self.rows]
        self.group: Int64Array = np.where(known, events.array("step_id")[self.rows], -1).astype(
            np.int64
        )
        self.type: Int32Array = events.array("type_id")[self.rows]
        self.names = events.names("name").take(self.rows)
        self.line: Int32Array = events.array("line_id")[self.rows]

    def streams(self) -> list[Stream]:
        """The lines with their events, as places in this table."""
        names = self._line_names
        return [
            Stream(line, int(self._native[line]), names[line] or "",
                   np.flatnonzero(self.line == line))
            for line in self._lines.tolist()
        ]  # fmt: skip

    def has(self, name: str) -> BoolArray:
        """Which events have a stat of their own."""
        return self._places(name) >= 0

    def number(self, name: str) -> Int64Array:
        """The number that a stat holds, -1 for none."""
        place, stats = self._places(name), _typed(self._profile)
        value = np.append(stats.array("integer"), -1)
        known = np.append(stats.is_valid("integer"), False)
        return np.where(known[place], value[place], -1)

    def text(self, name: str) -> Names:
        """The text of a stat, the event's own."""
        place = self._places(name)
        text = _typed(self._profile).names("text")
        return Names(np.append(text.codes, np.int32(-1))[place], text.values)

    @cached_property
    def is_async(self) -> BoolArray:
        """Which events run beside the others."""
        kinds = StatTexts.of_kinds(self._profile, "_a")
        of_kind = np.array([text not in (None, "0") for text in [*kinds, None]], np.bool_)
        own = self.number("_a")
        return np.where(self.has("_a"), own > 0, of_kind[self.type])

    def _places(self, name: str) -> Int64Array:
        """The row of each event's last stat of that name; -1 for none."""
        stats = _typed(self._profile)
        rows = np.flatnonzero(stats.names("name").codes == stats.names("name").code_of(name))
        event = stats.array("event_id")[rows]
        result = np.full(self.rows.size, -1, np.int64)
        if event.size:
            at = np.searchsorted(event, self.rows, side="right") - 1
            hit = (at >= 0) & (event[at] == self.rows)
            result[hit] = rows[at[hit]]
        return result


@once
def _typed(profile: Profile) -> Any:
    return profile.typed_stats(_WANTED)


@dataclass(frozen=True, eq=False)
class StatTexts:
    """Kinds of events that start or end a transfer to or from the host's memory.

    ``code`` is by kind (-1: no such), of ``names``.
    """

    code: AnyArray
    is_start: BoolArray
    names: list[str]
    details: list[tuple[str | None, str | None]]

    @staticmethod
    def of_kinds(profile: Profile, name: str) -> list[str | None]:
        """The text of a stat by kind of event; of several the last."""
        stats = profile.columns("event_type_stats")
        result: list[str | None] = [None] * profile.columns("event_types").rows
        rows = np.flatnonzero(stats.names("name").codes == stats.names("name").code_of(name))
        values = stats.names("value")
        for row, kind in zip(rows.tolist(), stats.array("type_id")[rows].tolist(), strict=True):
            result[kind] = values[row]
        return result

    @classmethod
    def offloads(cls, profile: Profile) -> StatTexts:
        """Which kinds these are."""
        types = profile.columns("event_types")
        code = np.full(types.rows + 1, -1, np.int64)
        is_start = np.zeros(types.rows + 1, np.bool_)
        names: list[str] = []
        shown, full = types.names("display_name"), types.names("name")
        for kind in range(types.rows):
            display = shown[kind] or ""
            if _IN_HOST_MEMORY not in (full[kind] or "") or not any(
                word in display for word in (*_STARTS, *_DONES)
            ):
                continue
            code[kind], is_start[kind] = len(names), "-start" in display
            base = display.partition("-start" if is_start[kind] else "-done")[0]
            suffix = display.rpartition(".")[2] if "." in display else "0"
            names.append(f"offload-{base}.{suffix}")
        bytes_, shapes = (
            cls.of_kinds(profile, n) for n in ("raw_bytes_accessed", "shape_with_layout")
        )
        return cls(code, is_start, names, list(zip(bytes_, shapes, strict=True)))

    def arguments(self, opens: int, closes: int) -> list[tuple[str, str | int | float]]:
        """The arguments of a transfer between events of two kinds."""
        size, shape = self.details[closes][0], self.details[opens][1]
        arguments: list[tuple[str, str | int | float]] = [("_a", 1)]
        if size is not None:
            arguments.append(("raw_bytes_accessed", int(size)))
        if shape is not None:
            arguments.append(("shape_with_layout", shape))
        return arguments


@dataclass(frozen=True)
class TpuPaths:
    """Paths for the lines that are derived for a TPU."""

    scopes: Paths
    ops: Paths
    source: Paths


@dataclass(frozen=True)
class GpuPaths(TpuPaths):
    """Paths for the lines that are derived for a stream of a GPU."""

    modules: Paths
    hlo: Paths


def tpu_paths(profile: Profile, events: DeviceEvents, rows: AnyArray) -> TpuPaths:
    """Paths of the events ``rows``: their own stats, else those of their kind."""

    def texts(name: str) -> Names:
        own = events.text(name).take(rows)
        values = list(own.values)
        of_kind = StatTexts.of_kinds(profile, name)
        codes = [len(values) + k if text else -1 for k, text in enumerate(of_kind)]
        values += [text or "" for text in of_kind]
        kind = np.array([*codes, -1], np.int32)[events.type[rows]]
        return Names(np.where(own.codes >= 0, own.codes, kind).astype(np.int32), values)

    ops, sources = texts("tf_op"), texts("source")
    return TpuPaths(
        Paths.of(*_named(ops, _scopes)), Paths.of(*_named(ops, _op)),
        Paths.of(*_named(sources, lambda text: [(text, None)])),
    )  # fmt: skip


def _named(names: Names, path_of: Any) -> tuple[AnyArray, list[list[tuple[str, str | None]]]]:
    """A path for every distinct text; the empty one has none."""
    used = np.unique(names.codes)
    used = used[used >= 0]
    paths = [path_of(names.values[code]) if names.values[code] else [] for code in used.tolist()]
    place = np.full(len(names.values) + 1, -1, np.int64)
    for number, (code, path) in enumerate(zip(used.tolist(), paths, strict=True)):
        place[code] = number if path else -1
    return place[names.codes], paths


def _scopes(text: str) -> list[tuple[str, str | None]]:
    op = parse_op_name(text)
    if op.category not in (TENSORFLOW, JAX):
        return []
    return [(scope, None) for scope in op.name.split("/")[:-1]]


def _op(text: str) -> list[tuple[str, str | None]]:
    op = parse_op_name(text)
    if op.category == UNKNOWN:
        shown = op.name.rstrip(" \t\n\v\f\r")
    elif op.category == TF_DATA:
        shown = "Iterator::" + op.name.rsplit("::", 1)[-1]
    else:
        shown = op.op_type
    return [(shown, text)] if shown else [(text, None)]


def gpu_paths(profile: Profile, events: DeviceEvents, rows: Int64Array) -> GpuPaths:
    """Paths of the events ``rows`` of a stream; only kernels and whole graphs have some."""
    details = events.text("kernel_details").take(rows)
    is_kernel = np.array([bool(text) for text in [*details.values, ""]], np.bool_)[details.codes]
    is_kernel |= events.has("cuda_graph_exec_id")[rows]
    module, op, tf = (events.text(n).take(rows) for n in ("hlo_module", "hlo_op", "tf_op"))
    has_program = events.has("program_id")[rows]
    program = np.where(has_program, events.number("program_id")[rows], 0).astype(np.int64)
    keys = np.stack([module.codes, op.codes, tf.codes, program, has_program])
    keys[:, ~is_kernel] = -2
    distinct, place = np.unique(keys, axis=1, return_inverse=True)
    symbols = _Symbols(profile)
    made: list[list[list[tuple[str, str | None]]]] = [[] for _ in range(5)]
    for m, o, t, p, has in distinct.T.tolist():
        own: list[list[tuple[str, str | None]]] = [[] for _ in range(5)]
        if m != -2:
            text = module.values[m] if m >= 0 else ""
            own = _of_kernel(
                text, op.values[o] if o >= 0 else None, tf.values[t] if t >= 0 else "",
                p % 2**64 if has else None, symbols,
            )  # fmt: skip
        for line, path in zip(made, own, strict=True):
            line.append(path)

    def paths(lines: list[list[tuple[str, str | None]]]) -> Paths:
        leads = np.array([bool(path) for path in lines] or [False], np.bool_)
        return Paths.of(np.where(leads[place], place, -1), lines)

    modules, hlo, scopes, ops, source = map(paths, made)
    return GpuPaths(scopes, ops, source, modules, hlo)


def _of_kernel(
    module: str, op: str | None, tf_op: str, program: int | None, symbols: _Symbols
) -> list[list[tuple[str, str | None]]]:
    """Module, HLO ops, scopes, op and source line of a kernel."""
    own = f"{module}({program})" if program is not None else module
    modules: list[tuple[str, str | None]] = [(own, None)] if module else []
    if op is None:
        if not tf_op:
            return [modules, [], [], [], []]
        return [modules, [], _scopes(tf_op), _op(tf_op), []]
    prefix = f"{program}/" if program is not None else f"{module}/"
    levels: list[tuple[str, str | None]] = [
        (name or prefix, prefix + name if name else None) for name in op.split("::")
    ]
    full, source = symbols.of(program, op.rsplit("::", 1)[-1])
    line: list[tuple[str, str | None]] = [(source, None)] if source else []
    return [modules, levels, _scopes(full) if full else [], _op(full) if full else [], line]


class _Symbols:
    """What the compiled programs say about an HLO op."""

    def __init__(self, profile: Profile) -> None:
        from peakline.hlo.modules import modules_of

        self._modules = {
            module.program_id: module
            for module in reversed(modules_of(profile))
            if module.program_id is not None
        }

    def of(self, program: int | None, op: str) -> tuple[str, str]:
        """The framework's name of the op, and its file and line; empty where nobody knows."""
        module = self._modules.get(program) if program is not None else None
        result = module.instructions.get(op) if module is not None else None
        if result is None:
            return "", ""
        return f"{result.op_name}:{result.op_type}", result.source.rsplit("/", 1)[-1]
