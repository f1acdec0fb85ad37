"""The pytest plugin: marks that hold a test's device memory to limits, and a fixture that asks it.

pytest loads `peakline.pytest.plugin` by itself where Peakline is installed. docs/pytest.md tells
how it is used and what is measured.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from peakline.pytest.recorder import Recorder

__all__ = ["Recorder"]


def __getattr__(name: str) -> Any:
    """Load the recorder only for those who name its class."""
    if name == "Recorder":
        return import_module("peakline.pytest.recorder").Recorder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
