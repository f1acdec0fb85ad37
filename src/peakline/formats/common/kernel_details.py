"""How kernels were launched, as profilers write it in texts."""

from __future__ import annotations

import re
from collections.abc import Mapping

from peakline.tables.event_rules import Dim, LaunchParameters

_NUMBER = re.compile(r"[ \t\n\v\f\r]*\+?([0-9]{1,20})[ \t\n\v\f\r]*")
_MOST = 2**32
WORDS: Mapping[str, str] = {
    "regs": "registers", "static_shared": "static_shared", "group_mem": "static_shared",
    "dynamic_shared": "dynamic_shared",
}  # fmt: skip
"""What NVIDIA's and AMD's words for parameters of a launch set."""


def parse_details(text: str, words: Mapping[str, str] = WORDS) -> LaunchParameters:
    """The parameters in a ``kernel_details`` text: ``key:value``, separated by blanks or newlines.

    ``words`` gives for keys of whole numbers the parameter that they set.
    """
    result = LaunchParameters()._asdict()
    for token in re.split("[ \n]", text):
        key, colon, value = token.partition(":")
        if not colon or ":" in value:
            continue
        if key == "occ_pct":
            result["occupancy_percent"] = real(value, result["occupancy_percent"])
        elif key in ("grid", "block"):
            result[key] = dim(value, result[key])
        elif key in words and (number := unsigned(value)) is not None:
            result[words[key]] = number
    return LaunchParameters(**result)


def dim(text: str, otherwise: Dim = (1, 1, 1)) -> Dim:
    """``4,64,1``; ``otherwise`` for any other text."""
    sizes = [unsigned(size) for size in text.split(",")]
    if len(sizes) != 3 or None in sizes:
        return otherwise
    x, y, z = (size or 0 for size in sizes)
    return x, y, z


def unsigned(text: str) -> int | None:
    """A whole number below 2^32; None for any other text."""
    match = _NUMBER.fullmatch(text)
    return int(match[1]) if match and int(match[1]) < _MOST else None


def real(text: str, otherwise: float = 0.0) -> float:
    """A number as C reads it; ``otherwise`` for any other text."""
    try:
        return float.fromhex(text) if "0x" in text.lower() else float(text.replace("_", "?"))
    except (ValueError, OverflowError):
        return otherwise
