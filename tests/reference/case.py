"""A named input: what it is called, which rule it covers, and how to build it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from peakline.schema import XSpace
from reference.xspace_builder import LineBuilder, SpaceBuilder, StatValue


@dataclass(frozen=True)
class Case:
    """``rule`` says what is covered, as ``grouping: ...`` or ``memory: ...`` with the subject."""

    name: str
    rule: str
    doc: str
    build: Callable[[], XSpace]


class Registry(dict[str, Case]):
    """Cases by name; `add` decorates a function that fills a `SpaceBuilder`."""

    def add(self, rule: str) -> Callable[[Callable[[SpaceBuilder], None]], None]:
        def register(fill: Callable[[SpaceBuilder], None]) -> None:
            def build() -> XSpace:
                builder = SpaceBuilder()
                fill(builder)
                return builder.space

            self[fill.__name__] = Case(fill.__name__, rule, fill.__doc__ or "", build)

        return register


def memory_stats(
    address: int = 1, size: int = 64, *, in_use: int = 64, **other: Any
) -> dict[str, StatValue]:
    """The stats that the BFC allocator writes, with ``other`` set, replaced or (None) left out."""
    stats: dict[str, StatValue] = {
        "bytes_reserved": 0,
        "bytes_allocated": in_use,
        "bytes_available": 4096 - in_use,
        "fragmentation": 0.25, "peak_bytes_in_use": in_use, "requested_bytes": size,
        "allocation_bytes": size, "addr": address, "allocator_name": "GPU_0_bfc",
        "tf_op": "net/layer", "id": 5, "region_type": "output", "data_type": 1, "shape": "[4, 4]",
    }  # fmt: skip
    stats |= other
    return {name: value for name, value in stats.items() if value is not None}


def allocate(
    line: LineBuilder,
    offset_ps: int,
    address: int = 1,
    size: int = 64,
    *,
    in_use: int = 64,
    **other: Any,
) -> None:
    """An allocation on ``line``; see `memory_stats`."""
    line.event(
        "MemoryAllocation", offset_ps, 0, memory_stats(address, size, in_use=in_use, **other)
    )


def free(
    line: LineBuilder,
    offset_ps: int,
    address: int = 1,
    size: int = 64,
    *,
    in_use: int = 0,
    **other: Any,
) -> None:
    """A deallocation on ``line``, without an op, as the runtime writes it."""
    bare: dict[str, StatValue] = {"tf_op": None, "region_type": "", "data_type": 0, "shape": ""}
    stats = memory_stats(address, size, in_use=in_use, **(bare | other))
    line.event("MemoryDeallocation", offset_ps, 0, stats)
