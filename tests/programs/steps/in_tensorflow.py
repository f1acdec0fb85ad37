"""The profile of a TensorFlow program: small, with neutral names."""

import gzip
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import tensorflow as tf
from account import Account
from neutral import with_neutral_folders, with_neutral_host


def mark(name: str, number: int) -> Callable[[], tf.profiler.experimental.Trace]:
    """What makes the mark of a step that the profiler shall group by: ``_r=1`` makes it a root."""
    return partial(tf.profiler.experimental.Trace, name, step_num=number, _r=1)


@contextmanager
def profile(account: Account, output: Path) -> Iterator[None]:
    """Profile what runs inside."""
    options = tf.profiler.experimental.ProfilerOptions(
        host_tracer_level=2, python_tracer_level=0, device_tracer_level=0
    )
    with tempfile.TemporaryDirectory() as folder:
        account.starts()
        tf.profiler.experimental.start(folder, options=options)
        yield
        tf.profiler.experimental.stop()
        account.stopped()
        written(folder, output)


def written(folder: str, output: Path) -> None:
    """Put the one profile below ``folder`` where it belongs."""
    (space,) = Path(folder).glob("**/plugins/profile/*/*.xplane.pb")
    content = with_neutral_folders(with_neutral_host(space.read_bytes()), folder)
    output.write_bytes(gzip.compress(content, 9, mtime=0))
