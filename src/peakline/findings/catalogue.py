"""Every kind of finding: the modules of `peakline.findings.kinds`, in the order they are said in.

A kind is its module, which has ``KIND`` and ``find(context)``; there is nothing else to add.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING

from peakline.findings import kinds as folder
from peakline.findings.overlaps import without_lesser_savings, without_overlaps

if TYPE_CHECKING:
    from peakline.findings.context import MemoryContext
    from peakline.findings.finding import Finding
    from peakline.findings.kind import Kind
    from peakline.findings.time_context import TimeContext

_ORDER = tuple(
    tuple(line.split())
    for line in """
    out_of_memory
    accounting near_capacity fragmentation_at_peak
    peak_outside_steps peak_in_evaluation peak_in_one_step
    deferred_frees
    leak one_pass cache step_up sawtooth fragmentation huge_temporary redundant_copy \
    optimizer_state zeroed_gradients per_example_gradients held_after_use batches_ahead \
    input_buffers peak_saving rounding accumulated_in_step float64_memory captured_constants \
    scan_residuals churn
    remade_each_step input_bound workers_restarted host_bound host_sync python_work lock_wait \
    allocation_wait host_callback launch_bound graph_breaks growing_work communication_each_pass \
    communication_not_overlapped idle_between_steps time_in_copies model_copied model_loaded \
    dense_embedding_update expensive_op tiny_ops unfused_elementwise float64_compute straggler \
    step_variation work_after_steps recompilation first_use
    """.strip().splitlines()
)
"""Findings of memory that stand in one line come allocator by allocator; kinds that are in none
come last, by name. The last line is of time, the others of memory."""
_LINE = {name: line for line, names in enumerate(_ORDER) for name in names}
_OF_MEMORY, _OF_TIME = range(len(_ORDER) - 1), range(len(_ORDER) - 1, len(_ORDER))


@cache
def _names() -> tuple[str, ...]:
    known = list(_LINE)
    names = sorted(one.name for one in iter_modules(folder.__path__))
    names.sort(key=lambda name: known.index(name) if name in _LINE else len(known))
    return tuple(names)


@cache
def _modules(about: str) -> tuple[ModuleType, ...]:
    """Those about ``memory`` or ``time``: of the others none is loaded that has a line above."""
    others = _OF_TIME if about == "memory" else _OF_MEMORY
    names = (name for name in _names() if _LINE.get(name) not in others)
    modules = (import_module(f"{folder.__name__}.{name}") for name in names)
    return tuple(module for module in modules if module.KIND.about == about)


class _Kinds(Mapping[str, "Kind"]):
    def __getitem__(self, name: str) -> Kind:
        if name not in _names():
            raise KeyError(name)
        kind: Kind = import_module(f"{folder.__name__}.{name}").KIND
        return kind

    def __iter__(self) -> Iterator[str]:
        return iter(_names())

    def __len__(self) -> int:
        return len(_names())


@cache
def kinds() -> Mapping[str, Kind]:
    """All kinds by name, in order; each is loaded when it is looked up."""
    return _Kinds()


def kind_names(about: str) -> tuple[str, ...]:
    """The names of the kinds about ``memory`` or ``time``, in alphabetical order.

    Those in a line above are not loaded for it.
    """
    own = _OF_MEMORY if about == "memory" else _OF_TIME
    return tuple(
        sorted(
            name
            for name in _names()
            if (_LINE[name] in own if name in _LINE else kinds()[name].about == about)
        )
    )


def memory_findings(context: MemoryContext) -> list[Finding]:
    """What deserves attention about memory."""
    place = {one.allocator: number for number, one in enumerate(context.allocators)}

    def order(finding: Finding) -> tuple[int, int]:
        # What failed stands in order of time.
        is_error = finding.severity == "error"
        name = str(finding.evidence.get("allocator"))
        return _LINE.get(finding.kind, len(_ORDER)), 0 if is_error else place.get(name, 0)

    return sorted(without_lesser_savings(list(_found("memory", context))), key=order)


def time_findings(context: TimeContext) -> list[Finding]:
    """What deserves attention about time."""
    return without_overlaps(list(_found("time", context)))


def _found(about: str, context: MemoryContext | TimeContext) -> Iterator[Finding]:
    for module in _modules(about):
        yield from module.find(context)
