"""The gRPC server: its port and credentials, its threads, its services, and its end."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import grpc
from google.protobuf import descriptor_pool
from grpc_health.v1 import health, health_pb2
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha.reflection import ReflectionServicer

from peakline import schema
from peakline.errors import UsageError
from peakline.service.access import Access
from peakline.service.access_log import AccessLog
from peakline.service.addresses import join_port
from peakline.service.capturing import HELD_THREADS
from peakline.service.core import LISTS, Analysis
from peakline.service.grpc_calls import Answering, Servicers, TokenInterceptor
from peakline.service.metrics import Metrics
from peakline.service.settings import Settings
from peakline.service.settings_check import read_file

_HEALTH = health.SERVICE_NAME
_REFLECTION = reflection_pb2.DESCRIPTOR.services_by_name["ServerReflection"].full_name
_SPARE_THREADS = 32
"""For calls that are refused at once or answered from memory while others work and wait."""
_SPARE_CALLS = 256
_LARGEST_REQUEST = 16 << 20
"""Requests are names and options; only answers are large."""
_LARGEST_METADATA = 64 << 10
_PING_MS = 60_000
_PING_TIMEOUT_MS = 20_000


class GrpcServer:
    """A running server. ``port`` is the one it listens on."""

    def __init__(
        self,
        server: grpc.Server,
        port: int,
        checks: health.HealthServicer,
        pools: list[ThreadPoolExecutor],
    ) -> None:
        self.port = port
        self._server = server
        self._checks = checks
        self._pools = pools

    def drain(self) -> None:
        """Report to whoever checks its health that this server is about to end."""
        self._checks.enter_graceful_shutdown()

    def stop(self, grace: float | None = None) -> None:
        """Take no more calls, let those that run finish for ``grace`` seconds, end the others.

        Returns when the last one has ended. Calls that were ended get CANCELLED, and their
        work stops where it looks at its deadline.
        """
        self.drain()
        self._server.stop(grace).wait()
        for pool in self._pools:
            pool.shutdown(wait=False, cancel_futures=True)


def start_grpc(
    settings: Settings, analysis: Analysis, access: Access, log: AccessLog, metrics: Metrics
) -> GrpcServer:
    """Start to serve. Raises UsageError when the port is taken or the credentials are none."""
    # Whoever waits at a gate holds a thread, so there are threads for all who may; what is
    # beyond the gates is refused there, with a word why. gRPC's own limit is the last line.
    asking = settings.max_concurrent + LISTS + 2 * settings.max_queued
    threads = asking + HELD_THREADS + _SPARE_THREADS
    calls = ThreadPoolExecutor(threads, thread_name_prefix="grpc")
    # Their own threads: no number of slow calls makes the server look dead.
    checking = ThreadPoolExecutor(2, thread_name_prefix="grpc-health")
    describing = ThreadPoolExecutor(4, thread_name_prefix="grpc-reflection")
    pools = [calls, checking, describing]
    server = grpc.server(
        calls,
        interceptors=(TokenInterceptor(access, log, metrics),),
        options=(
            ("grpc.max_send_message_length", settings.max_message_bytes),
            (
                "grpc.max_receive_message_length",
                min(settings.max_message_bytes, _LARGEST_REQUEST),
            ),
            ("grpc.max_metadata_size", _LARGEST_METADATA),
            # A caller that vanished without a word is noticed, and its capture ended; callers may
            # look after us just as often.
            ("grpc.keepalive_time_ms", _PING_MS),
            ("grpc.keepalive_timeout_ms", _PING_TIMEOUT_MS),
            ("grpc.http2.min_recv_ping_interval_without_data_ms", _PING_MS // 6),
            ("grpc.keepalive_permit_without_calls", 1),
            # A second server on the same port would get every other call.
            ("grpc.so_reuseport", 0),
        ),
        maximum_concurrent_rpcs=threads + _SPARE_CALLS,
    )
    try:
        answering = Answering(analysis, access, log, metrics)
        services = Servicers(analysis, settings).methods()
        for service, methods in services.items():
            handlers = {
                name: answering.handler(f"{service}/{name}", method)
                for name, method in methods.items()
            }
            _add(server, service, handlers)
        checks = _add_health(server, services, checking)
        servicer = reflection((*services, _HEALTH, _REFLECTION))
        handler = grpc.stream_stream_rpc_method_handler(
            in_pool(servicer.ServerReflectionInfo, describing),
            reflection_pb2.ServerReflectionRequest.FromString,
            reflection_pb2.ServerReflectionResponse.SerializeToString,
        )
        _add(server, _REFLECTION, {"ServerReflectionInfo": handler})
        port = analysis.captures.grpc_port = _bind(server, settings)
        server.start()
    except BaseException:
        server.stop(None)
        for pool in pools:
            pool.shutdown(wait=False)
        raise
    return GrpcServer(server, port, checks, pools)


def _add(server: grpc.Server, service: str, handlers: dict[str, Any]) -> None:
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))


def _add_health(
    server: grpc.Server, services: Iterable[str], pool: ThreadPoolExecutor
) -> health.HealthServicer:
    checks = health.HealthServicer()
    for service in services:
        checks.set(service, health_pb2.HealthCheckResponse.SERVING)
    request = health_pb2.HealthCheckRequest.FromString
    response = health_pb2.HealthCheckResponse.SerializeToString
    one, many = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
    handlers = {
        "Check": one(in_pool(checks.Check, pool), request, response),
        "Watch": many(in_pool(checks.Watch, pool), request, response),
    }
    _add(server, _HEALTH, handlers)
    return checks


def _bind(server: grpc.Server, settings: Settings) -> int:
    """Listen; returns the port."""
    address = join_port(settings.host.strip("[]"), settings.grpc_port or 0)
    credentials = _credentials(settings)
    with suppress(RuntimeError):
        port: int = (
            server.add_insecure_port(address)
            if credentials is None
            else server.add_secure_port(address, credentials)
        )
        if port:
            return port
    hint = "" if credentials is None else ", or the certificate and the key do not fit"
    raise UsageError(
        f"--grpc-port {settings.grpc_port}: cannot listen on {address}:"
        f" the port is in use or not allowed{hint}; choose another port, or 0 for any free one"
    )


def _credentials(settings: Settings) -> Any:
    """The server's certificate, and whose clients it accepts; None for plaintext."""
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    certificate = read_file("--tls-cert", settings.tls_cert)
    key = read_file("--tls-key", settings.tls_key)
    trusted = settings.tls_client_ca
    authority = None if trusted is None else read_file("--tls-client-ca", trusted)
    return grpc.ssl_server_credentials(
        ((key, certificate),), authority, require_client_auth=authority is not None
    )


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
    """The servicer that describes ``services``, so that a client needs no .proto file."""
    return _Reflection(services, pool=_Pools())


def in_pool(behaviour: Callable[..., Any], pool: ThreadPoolExecutor) -> Callable[..., Any]:
    """A method that gRPC runs in ``pool`` and not in the server's own."""

    @functools.wraps(behaviour)
    def wrapped(*arguments: Any) -> Any:
        return behaviour(*arguments)

    wrapped.experimental_thread_pool = pool  # type: ignore[attr-defined]
    return wrapped
