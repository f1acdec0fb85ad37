"""The pytest plugin: marks that hold a test's device memory to limits, and a fixture that reads it.

pytest loads `peakline.pytest.plugin` by itself where Peakline is installed. docs/pytest.md says
how it is used and what is measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.lazy import door, listed

if TYPE_CHECKING:
    from peakline.pytest.recorder import Recorder

__all__ = ["Recorder"]

__getattr__ = door(__name__, {"Recorder": ".recorder"})
__dir__ = listed(__name__)
