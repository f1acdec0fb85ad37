"""What every TensorFlow program here shares: the profile, the step marks, the file, the truth.

A program is started by ``record.py``, which sets the environment that puts the BFC allocator under
the CPU device. It trains, writes its profile, and says on standard output, as one JSON object,
what it knows itself about the memory that it held. That account is made from the tensors the
program holds in its hands (number of elements times the size of one), never from the profile.
"""

import argparse
import contextlib
import gzip
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf
from neutral import with_neutral_folders, with_neutral_host

ALLOCATOR = "bfc_cpu_allocator_for_gpu"
"""The name that TensorFlow gives the BFC allocator of the CPU device."""


def arguments(description: str | None, *variants: str) -> argparse.Namespace:
    """The command line of a program; ``variants`` are the forms of its fault."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--output", type=Path, required=True, help="the recording (gzip)")
    parser.add_argument("--healthy", action="store_true", help="the twin without the fault")
    if variants:
        parser.add_argument("--variant", choices=variants, default=variants[0])
    chosen = parser.parse_args()
    if os.environ.get("TF_CPU_ALLOCATOR_USE_BFC") != "1":
        parser.error("start this through record.py, which sets the allocator")
    tf.keras.utils.set_random_seed(1)
    return chosen


def tensor_bytes(*tensors: tf.Tensor | tf.Variable) -> int:
    """Bytes of the elements of ``tensors``."""
    return sum(tensor.dtype.size * tensor.shape.num_elements() for tensor in tensors)


class Recording:
    """The profile of one program, and the account that the program keeps of what it holds."""

    def __init__(self, output: Path, *, marked: bool = True) -> None:
        """With ``marked``, every step is inside the annotation that makes it a step."""
        self._output = output
        self._marked = marked
        self._held: list[int] = []
        self._names: list[int] = []

    @contextlib.contextmanager
    def profile(self) -> Iterator[None]:
        """Profile what runs inside and write it, compressed and with neutral names."""
        options = tf.profiler.experimental.ProfilerOptions(
            host_tracer_level=2, python_tracer_level=0, device_tracer_level=0
        )
        with tempfile.TemporaryDirectory() as folder:
            tf.profiler.experimental.start(folder, options=options)
            yield
            tf.profiler.experimental.stop()
            (written,) = Path(folder).glob("plugins/profile/*/*.xplane.pb")
            content = with_neutral_folders(with_neutral_host(written.read_bytes()), folder)
        self._output.write_bytes(gzip.compress(content, 9, mtime=0))

    @contextlib.contextmanager
    def step(self, number: int) -> Iterator[None]:
        """One step of the training."""
        self._names.append(number)
        if self._marked:
            with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
                yield
        else:
            yield

    def holds(self, *tensors: tf.Tensor) -> None:
        """Note what the step that is ending keeps in the memory that the truth is about."""
        self._held.append(tensor_bytes(*tensors))

    def tell(self, *faults: dict[str, Any], **more: Any) -> None:
        """Print the truth: the faults, and the bytes held at the end of every step."""
        truth = {
            "allocator": ALLOCATOR,
            "steps": len(self._names),
            "first_step_number": self._names[0],
            "marked": self._marked,
            "faults": list(faults),
            "held_bytes": self._held,
            **more,
        }
        json.dump(truth, sys.stdout)

    def tell_time(self, fault: dict[str, Any], *, healthy: bool) -> None:
        """Print the truth of a program whose fault is one of time; the twin has none."""
        truth = {"steps": len(self._names), "faults": [] if healthy else [fault]}
        json.dump(truth, sys.stdout)
