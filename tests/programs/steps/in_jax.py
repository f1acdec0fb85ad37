"""The profile of a JAX program: small, with neutral names."""

import gzip
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import jax
from account import Account
from neutral import with_neutral_folders, with_neutral_host


@contextmanager
def profile(
    account: Account, output: Path, *, python: bool = False
) -> Iterator[Callable[[], None]]:
    """Profile what runs inside, with JAX's Python tracer if wished.

    Gives what stops the profile; where nobody calls it, it stops at the end.
    """
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = int(python)
    stopped = False

    def stop() -> None:
        nonlocal stopped
        jax.profiler.stop_trace()
        account.stopped()
        stopped = True

    with tempfile.TemporaryDirectory() as folder:
        account.starts()
        jax.profiler.start_trace(folder, profiler_options=options)
        yield stop
        if not stopped:
            stop()
        (space,) = Path(folder).glob("plugins/profile/*/*.xplane.pb")
        content = with_neutral_folders(with_neutral_host(space.read_bytes()), folder)
        output.write_bytes(gzip.compress(content, 9, mtime=0))
