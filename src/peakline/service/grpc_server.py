"""The gRPC server: its port and credentials, its event loop, its services, and its end."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import grpc
from google.protobuf import descriptor_pool
from google.protobuf.message import DecodeError
from grpc import aio
from grpc_health.v1 import health, health_pb2
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha.reflection import aio as reflection

from peakline import schema
from peakline.errors import BusyError, UsageError
from peakline.service.access import Access
from peakline.service.access_log import AccessLog
from peakline.service.addresses import join_port
from peakline.service.capturing import HELD_THREADS
from peakline.service.core import LISTS, Analysis
from peakline.service.deliveries import Deliveries
from peakline.service.grpc_answering import Answering, Calls, TokenInterceptor, refusal, refusing
from peakline.service.grpc_calls import Servicers
from peakline.service.grpc_connections import GrpcConnections
from peakline.service.metrics import Metrics
from peakline.service.places import connection_limits
from peakline.service.settings import Settings, read_file
from peakline.service.workers import Workers

_HEALTH = health.SERVICE_NAME
_REFLECTION = reflection_pb2.DESCRIPTOR.services_by_name["ServerReflection"].full_name
_SPARE_CALLS = 512
_HEALTH_CALLS, _HEALTH_CALLS_EACH = 1024, 256
_PEERS = 4
"""So many peers that have as many calls as one may have."""
_CALLS_EACH_CONNECTION = 256
"""A client sends the next one when it has an answer."""
_MOST_PENDING = 16_384
_LARGEST_REQUEST = 1 << 20
"""Requests are names and options; only answers are large."""
_LARGEST_METADATA = 64 << 10
_PING_MS = 60_000
_PING_TIMEOUT_MS = 20_000
_IDLE_MS = 300_000
"""A connection without calls is closed then; clients open another one by themselves."""
_LAST_S = 5.0

_T = TypeVar("_T")


class GrpcServer:
    """A running server. ``port`` is the one it listens on."""

    def __init__(self) -> None:
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="grpc", daemon=True)
        self._thread.start()
        self._server: aio.Server | None = None
        self._checks = health.aio.HealthServicer()
        self._workers: list[Workers] = []
        self._connections: GrpcConnections | None = None

    def start(
        self,
        settings: Settings,
        analysis: Analysis,
        access: Access,
        log: AccessLog,
        metrics: Metrics,
    ) -> None:
        """Begin to serve. Raises UsageError when the port is taken or the credentials are none."""
        try:
            self._await(self._start(settings, analysis, access, log, metrics))
        except BaseException:
            self.stop()
            raise

    def drain(self) -> None:
        """Report to whoever checks its health that this server is about to end."""
        self._await(self._checks.enter_graceful_shutdown())

    def stop(self, grace: float | None = None) -> None:
        """Take no more calls, let those that run finish for ``grace`` seconds, end the others.

        Returns when the last one has ended. Calls that were ended get CANCELLED, and their
        work stops where it looks at its deadline.
        """
        if not self._thread.is_alive():
            return
        self.drain()
        if self._connections is not None:
            self._await(self._connections.close())
        if self._server is not None:
            self._await(self._server.stop(grace))
        for workers in self._workers:
            workers.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_LAST_S)
        # The library's contexts of calls are in cycles, and its polling thread ends with the last.
        gc.collect()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        finally:
            self._loop.close()

    def _await(self, work: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _start(
        self,
        settings: Settings,
        analysis: Analysis,
        access: Access,
        log: AccessLog,
        metrics: Metrics,
    ) -> None:
        most, most_each = connection_limits(settings)
        waiting = settings.max_concurrent + settings.max_queued + LISTS + settings.max_queued
        calls_each = waiting + HELD_THREADS + _SPARE_CALLS
        connections = self._connections = GrpcConnections(most, most_each, metrics)
        limits = settings.head_timeout_s, connections.begins, connections.hang_up
        calls = Calls(_PEERS * calls_each, calls_each, *limits)
        checks = Calls(_HEALTH_CALLS, _HEALTH_CALLS_EACH, *limits)
        answers = Workers(settings.max_concurrent + LISTS, "grpc-answer")
        captures = Workers(HELD_THREADS, "grpc-capture")
        self._workers = [answers, captures]
        server = self._server = aio.server(
            interceptors=(TokenInterceptor(access, log, metrics),),
            options=(
                ("grpc.max_send_message_length", settings.max_message_bytes),
                (
                    "grpc.max_receive_message_length",
                    min(settings.max_message_bytes, _LARGEST_REQUEST),
                ),
                ("grpc.max_metadata_size", _LARGEST_METADATA),
                ("grpc.max_allowed_incoming_connections", most),
                ("grpc.max_concurrent_streams", _CALLS_EACH_CONNECTION),
                ("grpc.server.max_pending_requests", _MOST_PENDING),
                ("grpc.server.max_pending_requests_hard_limit", _MOST_PENDING + _MOST_PENDING // 4),
                ("grpc.server_handshake_timeout_ms", int(1000 * settings.head_timeout_s)),
                ("grpc.max_connection_idle_ms", _IDLE_MS),
                # A caller that vanished without a word is noticed, and its capture ended; callers
                # may look after us just as often.
                ("grpc.keepalive_time_ms", _PING_MS),
                ("grpc.keepalive_timeout_ms", _PING_TIMEOUT_MS),
                ("grpc.http2.min_recv_ping_interval_without_data_ms", _PING_MS // 6),
                ("grpc.keepalive_permit_without_calls", 1),
                # A second server on the same port would get every other call.
                ("grpc.so_reuseport", 0),
            ),
        )
        deliveries = Deliveries(settings)
        answering = Answering(analysis, access, log, metrics, calls, deliveries)
        services = Servicers(analysis, settings).methods(answers, captures)
        for service, methods in services.items():
            handlers = {
                name: answering.handler(f"{service}/{name}", method)
                for name, method in methods.items()
            }
            _add(server, service, handlers)
        await self._add_health(services, checks)
        servicer = _Reflection((*services, _HEALTH, _REFLECTION), calls)
        handler = grpc.stream_stream_rpc_method_handler(
            servicer.ServerReflectionInfo,
            reflection_pb2.ServerReflectionRequest.FromString,
            reflection_pb2.ServerReflectionResponse.SerializeToString,
        )
        _add(server, _REFLECTION, {"ServerReflectionInfo": handler})
        self.port = analysis.captures.grpc_port = _bind(server, settings)
        await server.start()
        connections.watch(self.port, calls, checks)

    async def _add_health(self, services: Iterable[str], calls: Calls) -> None:
        """Health has places of its own: no number of calls makes the server look dead."""
        checks = self._checks
        for service in services:
            await checks.set(service, health_pb2.HealthCheckResponse.SERVING)

        async def check(_: object, context: Any) -> Any:
            with calls.place(context) as place:
                request = _parsed(await calls.request(place, context))
                return await checks.Check(request, context)

        async def watch(_: object, context: Any) -> None:
            with calls.place(context) as place:
                request = _parsed(await calls.request(place, context))
                calls.waits(place)
                await checks.Watch(request, context)

        response = health_pb2.HealthCheckResponse.SerializeToString
        handlers = {
            "Check": grpc.stream_unary_rpc_method_handler(refusing(check), None, response),
            "Watch": grpc.stream_stream_rpc_method_handler(refusing(watch), None, response),
        }
        if self._server is not None:
            _add(self._server, _HEALTH, handlers)


def start_grpc(
    settings: Settings, analysis: Analysis, access: Access, log: AccessLog, metrics: Metrics
) -> GrpcServer:
    """Start to serve. Raises UsageError when the port is taken or the credentials are none."""
    server = GrpcServer()
    server.start(settings, analysis, access, log, metrics)
    return server


def _add(server: aio.Server, service: str, handlers: dict[str, Any]) -> None:
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))


def _parsed(content: bytes) -> Any:
    try:
        return health_pb2.HealthCheckRequest.FromString(content)
    except DecodeError:
        raise UsageError("the request is no grpc.health.v1.HealthCheckRequest") from None


def _bind(server: aio.Server, settings: Settings) -> int:
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


class _Reflection(reflection.ReflectionServicer):  # type: ignore[misc]  # it has no types
    """Describes services, so that a client needs no .proto file.

    Whoever holds such a stream open keeps the server waiting: it is ended after a while, and gives
    way to other calls.
    """

    def __init__(self, services: Sequence[str], calls: Calls) -> None:
        super().__init__(services, pool=_Pools())
        self._calls = calls

    async def ServerReflectionInfo(  # noqa: N802
        self, requests: AsyncIterator[Any], context: Any
    ) -> AsyncIterator[Any]:
        try:
            with self._calls.place(context):
                async with asyncio.timeout(_STREAM_S):
                    async for answer in super().ServerReflectionInfo(requests, context):
                        yield answer
        except TimeoutError:
            await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "this stream is over")
        except BusyError as error:
            await context.abort(*refusal(error))
