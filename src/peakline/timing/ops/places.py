"""Where in the model the time of ops goes: by module, and by the shapes of their inputs; its
functions are in `peakline.timing.ops.functions`.

The module of an op is the innermost ``nn.Module: Linear_3`` around it, which PyTorch's profiler
records with Python's frames (torch/csrc/autograd/profiler_python.cpp); that of an op of a backward
pass is the module of the op whose gradient it computes (`peakline.trace.autograd`), and that of a
kernel the module of the op that launched it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.tables import Columns, Names, Profile
from peakline.tables.joins import summed
from peakline.tables.once import once
from peakline.timing.op_stats import DEVICE, HOST, joined_runs
from peakline.timing.ops.device import framework_executions, launching_runs
from peakline.timing.ops.functions import FunctionTime, function_times
from peakline.timing.ops.host import Executions, host_executions
from peakline.timing.ops.in_steps import StepOps
from peakline.timing.ops.stat_columns import op_stats_of
from peakline.trace.autograd import autograd_of
from peakline.trace.distribution import distinct, distribution
from peakline.trace.events import nesting_of, trace_of
from peakline.trace.frames import module_of
from peakline.trace.op_inputs import all_dims_of

_LARGEST = 64 << 20
"""Bytes of programs that are looked through for lines."""


def source_of(profile: Profile, ops: StepOps, chosen: BoolArray) -> tuple[str, int]:
    """File and line that most of the time of the ``chosen`` executions comes from; empty and 0
    where they are no instructions, or nothing says it.

    Raises InputError when the profile cannot be read.
    """
    mine = np.flatnonzero(chosen & ops.is_hlo)
    programs = profile.programs()
    if not mine.size or programs is None:
        return "", 0
    if sum(len(programs.data(number)) for number in range(len(programs))) > _LARGEST:
        return "", 0
    event = ops.event[mine]
    program = op_stats_of(profile)["program_id"].integers_at(ops.trace.rows(event))
    pairs = np.stack([program, ops.trace.name.codes[event].astype(np.int64)])
    distinct, place = np.unique(pairs, axis=1, return_inverse=True)
    totals = summed(place.ravel(), ops.trace.end[event] - ops.trace.start[event], distinct.shape[1])
    number_of = {programs.program_id(number): number for number in range(len(programs))}
    columns = frozenset(("module_id", "name", "source_file", "source_line"))
    table = profile.columns("hlo_instructions", columns)
    names, files = table.names("name"), table.names("source_file")
    for best in np.argsort(-totals, kind="stable").tolist():
        identity, code = distinct[:, best].tolist()
        number = number_of.get(identity % 2**64)
        if number is None or code < 0:
            continue
        same = names.codes == names.code_of(ops.trace.name.values[code])
        rows = np.flatnonzero(same & (table.array("module_id") == number))
        for row in rows.tolist():
            if files[row]:
                return files[row] or "", int(table.array("source_line")[row])
    return "", 0


By = Literal["function", "module", "shape", "type"]
_MISSING = frozenset(("module", "input_shape", "function", "file"))


@dataclass(frozen=True)
class ModuleTime:
    """The ops of one module on one side (host or device), times in ps.

    ``self_ps`` is theirs, ``total_ps`` with those of the modules within it; ``occurrences`` is how
    many ran in the module itself. What runs in none is the module with the empty name.
    """

    side: str
    module: str
    occurrences: int
    total_ps: int
    self_ps: int


@dataclass(frozen=True)
class ShapeTime:
    """An op of one side with inputs of one shape, times in ps; ``input_shape`` lists those of all
    inputs that are tensors (``[8, 64], [64, 4]``), empty where it is not recorded.
    """

    side: str
    op: str
    input_shape: str
    occurrences: int
    total_ps: int
    self_ps: int
    median_ps: int
    p95_ps: int
    max_ps: int


@dataclass(frozen=True)
class TypeTime:
    """The executions of all ops of one type, of a host or its devices; times are in ps.

    An op whose type the profile does not say has its name for one, as PyTorch's ops have.
    """

    side: str
    type: str
    occurrences: int
    total_ps: int
    self_ps: int


@once
def type_times(profile: Profile) -> tuple[TypeTime, ...]:
    """The time of ops by type, devices first and the most self time first.

    Raises InputError when the profile cannot be read.
    """
    result: list[TypeTime] = []
    for side, runs, _ in _sides(profile):
        numbers: dict[str, int] = {}
        of_key = [numbers.setdefault(key.op_type or key.name, len(numbers)) for key in runs.keys]
        code = np.array(of_key, np.int64)[runs.op]
        count = np.bincount(code, minlength=len(numbers))
        total, own = (summed(code, ps, len(numbers)) for ps in (runs.total_ps, runs.own_ps))
        result += [
            TypeTime(side, text, int(count[n]), int(total[n]), int(own[n]))
            for text, n in numbers.items()
            if count[n]
        ]
    return tuple(sorted(result, key=lambda one: (one.side != DEVICE, -one.self_ps, one.type)))


@once
def module_times(profile: Profile) -> tuple[ModuleTime, ...]:
    """The time of each module's ops, devices first and the most self time first; nothing where no
    op ran in any.

    Raises InputError when the profile cannot be read.
    """
    names = trace_of(profile).name
    modules = [module_of(text) for text in names.values]
    if not any(modules):
        return ()
    result: list[ModuleTime] = []
    for side, runs, event in _sides(profile):
        inner, total = _by_module(profile, runs, event, modules)
        code = inner + 1  # 0 is that of no module
        count = np.bincount(code, minlength=len(modules) + 1)
        own = summed(code, runs.own_ps, len(modules) + 1)
        result += [
            ModuleTime(
                side,
                (["", *modules])[n],
                int(count[n]),
                int(total[n] if n else own[n]),
                int(own[n]),
            )
            for n in np.flatnonzero((count > 0) | (total > 0)).tolist()
        ]
    return tuple(sorted(result, key=lambda one: (one.side != DEVICE, -one.self_ps, one.module)))


@once
def shape_times(profile: Profile) -> tuple[ShapeTime, ...]:
    """The time of ops by the shapes of their inputs, devices first and the most self time first;
    nothing where no shape is recorded.

    Raises InputError when the profile cannot be read.
    """
    shape, texts = all_dims_of(profile)
    if not texts:
        return ()
    result: list[ShapeTime] = []
    for side, runs, event in _sides(profile):
        code = np.where(event >= 0, shape[event], -1) if shape.size else event
        first, group = distinct(runs.op, code)
        spread = distribution(group, runs.total_ps, first.size)
        own = summed(group, runs.own_ps, first.size)
        result += [
            ShapeTime(
                side,
                runs.keys[int(runs.op[place])].name,
                texts[int(code[place])] if code[place] >= 0 else "",
                int(spread.count[n]),
                int(spread.total[n]),
                int(own[n]),
                int(spread.median[n]),
                int(spread.p95[n]),
                int(spread.longest[n]),
            )
            for n, place in enumerate(first.tolist())
        ]
    order = sorted(result, key=lambda one: (one.side != DEVICE, -one.self_ps, one.op))
    return tuple(order)


_Row = FunctionTime | ModuleTime | ShapeTime | TypeTime


def rows_by(profile: Profile, by: By) -> list[dict[str, object]]:
    """`module_times`, `shape_times`, `type_times` or `function_times` as rows.

    Raises InputError when the profile cannot be read.
    """
    times: dict[By, Callable[[Profile], Sequence[_Row]]] = {
        "function": function_times, "module": module_times, "shape": shape_times,
        "type": type_times,
    }  # fmt: skip
    return [asdict(one) for one in times[by](profile)]


def columns_from(rows: Sequence[_Row], texts: Sequence[str], numbers: Sequence[str]) -> Columns:
    """``rows`` as columns; an empty module, file or shape is null, an op may have an empty name."""
    every: dict[str, list[str]] = {name: [getattr(one, name) for one in rows] for name in texts}
    return Columns(
        {
            **{
                name: Names.encode([text or None for text in said] if name in _MISSING else said)
                for name, said in every.items()
            },
            **{name: np.array([getattr(one, name) for one in rows], np.int64) for name in numbers},
        }
    )


def _sides(profile: Profile) -> list[tuple[str, Executions, Int64Array]]:
    """The executions of each side, and the op of the host that ran or launched each (-1: none)."""
    host = host_executions(profile)
    device = joined_runs(profile, framework_executions(profile))
    run = launching_runs(profile)[device.event]
    launcher = np.full(run.size, -1, np.int64)
    launcher[run >= 0] = host.event[run[run >= 0]]
    sides = [(DEVICE, device, launcher), (HOST, host, host.event.astype(np.int64))]
    return [side for side in sides if side[1].event.size]


def _by_module(
    profile: Profile, runs: Executions, event: Int64Array, modules: list[str]
) -> tuple[Int64Array, Int64Array]:
    """Per execution the number of its innermost module, -1 for none; and the self time of all in
    each, by that number + 1.
    """
    is_module = np.array([*(bool(text) for text in modules), False], np.bool_)
    forward = autograd_of(profile).forward_of(event)
    event = np.where(forward >= 0, forward, event)
    parent, code = nesting_of(profile).parent, trace_of(profile).name.codes
    inner = np.full(event.size, -1, np.int64)
    total = np.zeros(is_module.size, np.int64)
    at: AnyArray = event
    while (at >= 0).any():
        here = np.flatnonzero(at >= 0)
        name = code[at[here]]
        inside = here[is_module[name]]
        own = code[at[inside]]
        np.add.at(total, own + 1, runs.own_ps[inside])
        is_first = inner[inside] < 0
        inner[inside[is_first]] = own[is_first]
        at = np.where(at >= 0, parent[at], -1)
    return inner, total
