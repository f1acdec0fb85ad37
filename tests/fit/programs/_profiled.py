"""What a program needs around it: one process, seeds, threads, TensorFlow's profiler."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.tsl.profiler.protobuf.xplane_pb2 import XSpace

FITS, EXHAUSTED = 0, 3
"""Exit codes of a program that ended, and of one that ran out of memory."""


def in_child(name: str, limit: int, folder: Path, log: Path) -> None:
    """Run the program under ``limit`` MiB in this process, and end it with an exit code.

    The profile goes to ``folder``, standard error to ``log``.
    """
    code = 1
    try:
        os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT, 0o600), 2)
        os.environ["TF_CPU_BFC_MEM_LIMIT_IN_MB"] = str(limit)
        code = _run(name, folder)
    except BaseException:  # noqa: BLE001 - the parent reads it in the log
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _run(name: str, folder: Path) -> int:
    module = importlib.import_module(f"tests.fit.programs.{name}")
    tf.config.threading.set_inter_op_parallelism_threads(module.THREADS)
    tf.config.threading.set_intra_op_parallelism_threads(module.THREADS)
    tf.keras.utils.set_random_seed(1)
    options = tf.profiler.experimental.ProfilerOptions(
        host_tracer_level=2, python_tracer_level=0, device_tracer_level=0
    )
    tf.profiler.experimental.start(str(folder), options=options)
    try:
        module.run()
    except tf.errors.ResourceExhaustedError:
        return EXHAUSTED
    else:
        return FITS
    finally:
        tf.profiler.experimental.stop()


def space_in(folder: Path) -> Any:
    """The XSpace that the profiler wrote."""
    (written,) = folder.glob("plugins/profile/*/*.xplane.pb")
    return XSpace.FromString(written.read_bytes())
