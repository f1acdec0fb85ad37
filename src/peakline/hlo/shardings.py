"""How a value is divided between devices, as XLA writes it (``xla/hlo/ir/hlo_sharding.cc``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peakline.schema import OpSharding

_WORDS = {0: "replicated", 4: "manual", 5: "unknown"}
_MAXIMAL, _TUPLE = 1, 2


def sharding_text(sharding: OpSharding) -> str:
    """A sharding in braces; those of a tuple's parts one after the other."""
    if sharding.type == _TUPLE:
        return "{" + ", ".join(_one(part) for part in sharding.tuple_shardings) + "}"
    return _one(sharding)


def _one(sharding: OpSharding) -> str:
    if sharding.type in _WORDS:
        return "{" + _WORDS[sharding.type] + "}"
    if sharding.type == _MAXIMAL:
        devices = list(sharding.tile_assignment_devices)
        return f"{{maximal device={devices[0] if devices else 0}}}"
    text = f"devices=[{_list(sharding.tile_assignment_dimensions)}]"
    if sharding.iota_reshape_dims:
        text += f"<=[{_list(sharding.iota_reshape_dims)}]"
        if len(sharding.iota_transpose_perm) > 1:
            text += f"T({_list(sharding.iota_transpose_perm)})"
    else:
        text += _list(sharding.tile_assignment_devices)
    if sharding.replicate_on_last_tile_dim:
        text += " last_tile_dim_replicate"
    elif sharding.last_tile_dims:
        words = (_WORDS.get(kind, "") for kind in sharding.last_tile_dims)
        text += f" last_tile_dims={{{', '.join(words)}}}"
    return f"{{{text}}}"


def _list(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))
