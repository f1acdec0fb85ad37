"""The memory of this process as the system sees it."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path


def address_space_bytes() -> int | None:
    """Bytes of addresses that the process has mapped; None where the system does not say."""
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def give_back_memory() -> None:
    """Return to the system what the allocators of the process hold unused.

    The C library keeps what lies below a piece that is still in use: after many small pieces, as
    gRPC makes of a large message, that may be all of them.
    """
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
