"""A server over jobs on GPUs, made by hand: no CPU records what they show."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.analysis.timing.gpu_jobs import COLLECTIVES, Job, Work, write
from tests.service.server_process import running_server
from tests.web.conftest import PageServer

from reference.op_spaces import random_op_space

__all__ = ["gpu_server"]


@contextmanager
def gpu_server(logdir: Path) -> Iterator[PageServer]:
    """Two sessions: ``gpus``, the second of which keeps the others waiting; ``kernels``, of all
    kinds.
    """
    spaces = {
        "gpus": write(Job(_work, devices=3)),
        "kernels": random_op_space(11).SerializeToString(),
    }
    for name, content in spaces.items():
        session = logdir / "plugins" / "profile" / name
        session.mkdir(parents=True)
        (session / "host.xplane.pb").write_bytes(content)
    with running_server(logdir, "--read-only", "--access-log", "off") as process:
        yield PageServer(process, logdir)


def _work(_step: int, device: int) -> list[Work]:
    computes = 6000 if device == 1 else 3000
    return [
        Work("gemm", 100, computes, launched=50),
        Work("ncclAllReduce", 100 + computes, 9000 - computes, COLLECTIVES, launched=60),
    ]
