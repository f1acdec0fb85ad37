"""Recording with TensorFlow's profiler: its allocators report every allocation."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from peakline.errors import UsageError

BFC = "TF_CPU_ALLOCATOR_USE_BFC"
"""The environment variable that gives TensorFlow's CPU device an allocator that reports."""


_TRUE = ("1", "true", "True", "TRUE")


def use_bfc() -> None:
    """Set the variable; raises UsageError where TensorFlow is imported already."""
    if os.environ.get(BFC) in _TRUE:
        return
    if "tensorflow" in sys.modules:
        raise UsageError(
            f"TensorFlow is imported already, so its CPU allocator is chosen: set {BFC}=1 in the "
            "environment of pytest"
        )
    os.environ[BFC] = "1"


class TensorFlow:
    """TensorFlow's profiler around a test."""

    silence = "TensorFlow's allocators reported nothing while the test ran"

    def __init__(self) -> None:
        try:
            self._tf: Any = import_module("tensorflow")
        except ImportError as error:
            raise UsageError(f"TensorFlow cannot be imported: {error}") from None
        self.at_most: Mapping[str, int] = {}

    def start(self, folder: Path) -> None:
        """Begin; raises UsageError where the profiler runs already, or memory is not reported."""
        devices = {device.device_type for device in self._tf.config.list_physical_devices()}
        if devices <= {"CPU"} and os.environ.get(BFC) not in _TRUE:
            # Its own allocator reports nothing, or with oneDNN the large buffers only.
            raise UsageError(
                f"TensorFlow's CPU device reports its memory only with {BFC}=1 in the environment "
                "before TensorFlow is imported: set it, give --peakline-tf-bfc, or put "
                "peakline_tensorflow_bfc = true into pytest's settings"
            )
        profiler = self._tf.profiler.experimental
        # Allocators report through the host's tracer, at level 2.
        options = profiler.ProfilerOptions(
            host_tracer_level=2, python_tracer_level=0, device_tracer_level=0
        )
        try:
            profiler.start(str(folder), options=options)
        except self._tf.errors.AlreadyExistsError:
            raise UsageError(
                "TensorFlow's profiler runs already; only one profile can be taken at a time"
            ) from None

    def step(self, number: int) -> Any:
        """The block is a step."""
        return self._tf.profiler.experimental.Trace("test", step_num=number, _r=1)

    def stop(self) -> None:
        """End, and write the XSpace."""
        try:
            self._tf.profiler.experimental.stop()
        except self._tf.errors.UnavailableError:
            raise UsageError("the test stopped TensorFlow's profiler itself") from None
