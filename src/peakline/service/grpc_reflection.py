"""Server reflection over the private descriptor pool, so that a client needs no .proto file."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from google.protobuf import descriptor_pool
from grpc_reflection.v1alpha.reflection import ReflectionServicer

from peakline import schema

_STREAM_S = 60.0
_STANDARD = ("grpc.health.", "grpc.reflection.", "grpc/health/", "grpc/reflection/")


class _Pools:
    """The schema's pool, and of the default one only what describes gRPC's own services.

    The default pool holds whatever other packages of the process have put there, which is no
    business of a caller.
    """

    def __getattr__(self, method: str) -> Callable[..., Any]:
        """A method of DescriptorPool; its first argument is a name, or a message that has one."""

        def find(of: Any, *more: Any) -> Any:
            name = of if isinstance(of, str) else of.full_name
            pool = descriptor_pool.Default() if name.startswith(_STANDARD) else schema.POOL
            return getattr(pool, method)(of, *more)

        return find


class _Reflection(ReflectionServicer):  # type: ignore[misc]  # grpc_reflection has no types
    """A stream holds a thread while it is open, so it is ended after a while."""

    def ServerReflectionInfo(self, requests: Iterator[Any], context: Any) -> Iterator[Any]:  # noqa: N802
        timer = threading.Timer(_STREAM_S, context.cancel)
        timer.daemon = True
        timer.start()
        try:
            yield from super().ServerReflectionInfo(requests, context)
        finally:
            timer.cancel()


def reflection(services: Sequence[str]) -> Any:
    """The servicer that tells of ``services``."""
    return _Reflection(services, pool=_Pools())


def in_pool(behaviour: Callable[..., Any], pool: ThreadPoolExecutor) -> Callable[..., Any]:
    """A method that gRPC runs in ``pool`` and not in the server's own."""

    @functools.wraps(behaviour)
    def wrapped(*arguments: Any) -> Any:
        return behaviour(*arguments)

    wrapped.experimental_thread_pool = pool  # type: ignore[attr-defined]
    return wrapped
