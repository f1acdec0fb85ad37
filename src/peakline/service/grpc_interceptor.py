"""What every call goes through: token, status of an error, access log, metrics."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import grpc

from peakline.capture import WorkerError
from peakline.errors import BusyError, PeaklineError
from peakline.service.access import Access
from peakline.service.access_log import AccessLog
from peakline.service.core import Analysis
from peakline.service.grpc_servicers import PROFILER, Call, Method, run
from peakline.service.metrics import Metrics

_FACE = "grpc"
_OPEN = "/grpc.health.v1.Health/"
_REQUEST_ID = "x-request-id"
_UNAUTHENTICATED = "a token is needed: send the metadata authorization: Bearer TOKEN"


class TokenInterceptor(grpc.ServerInterceptor):  # type: ignore[misc]  # grpc has no types
    """Refuses calls without the token, unary and streaming, known or not; health is open."""

    def __init__(self, access: Access, log: AccessLog, metrics: Metrics) -> None:
        self._access = access
        self._log = log
        self._metrics = metrics

    def intercept_service(self, continuation: Callable[[Any], Any], details: Any) -> Any:
        """The call's own handler, or one that refuses it."""
        start = time.perf_counter()
        if details.method.startswith(_OPEN):
            return continuation(details)
        shown = [value for key, value in details.invocation_metadata if key == "authorization"]
        # Two headers would leave it open which of them counts.
        if len(shown) <= 1 and self._access.token_matches(_text(*shown)):
            return continuation(details)
        handler = continuation(details)
        streams = handler is not None and handler.request_streaming
        returns = handler is not None and handler.response_streaming
        make = {
            (False, False): grpc.unary_unary_rpc_method_handler,
            (False, True): grpc.unary_stream_rpc_method_handler,
            (True, False): grpc.stream_unary_rpc_method_handler,
            (True, True): grpc.stream_stream_rpc_method_handler,
        }[streams, returns]

        def refuse(_: object, context: Any) -> None:
            name, code = details.method[1:], "UNAUTHENTICATED"
            seconds = time.perf_counter() - start
            self._metrics.refused("token")
            self._metrics.observe(_FACE, name, code, seconds)
            request_id = _request_id(details.invocation_metadata, self._access)
            self._log.write(_FACE, name, context.peer(), code, seconds, request_id=request_id)
            context.abort(grpc.StatusCode.UNAUTHENTICATED, _UNAUTHENTICATED)

        return make(refuse)


class Answering:
    """Makes handlers of methods: errors become statuses, and every call is logged and counted."""

    def __init__(
        self, analysis: Analysis, access: Access, log: AccessLog, metrics: Metrics
    ) -> None:
        self._analysis = analysis
        self._access = access
        self._log = log
        self._metrics = metrics

    def handler(self, name: str, method: Method) -> Any:
        """The handler of the method with the full name ``name`` (``package.Service/Method``)."""
        self._metrics.know(_FACE, [name])

        def answer(content: bytes, context: Any) -> bytes:
            with self._metrics.in_flight(_FACE):
                return self._answer(name, method, content, context)

        return grpc.unary_unary_rpc_method_handler(answer)

    def _answer(self, name: str, method: Method, content: bytes, context: Any) -> bytes:
        start = time.perf_counter()
        call = Call(context)
        request_id = _request_id(context.invocation_metadata(), self._access)
        code, details, answer = "OK", "", b""
        try:
            answer = run(method, content, call)
        except PeaklineError as error:
            code, details = _status(name, error), self._analysis.public_text(error)
            if isinstance(error, BusyError):
                self._metrics.refused("busy")
        except Exception as error:  # noqa: BLE001 (whatever it is, the caller gets an id)
            code, details = "INTERNAL", f"internal error ({request_id})"
            self._log.failure(request_id, error)
        seconds = time.perf_counter() - start
        self._metrics.observe(_FACE, name, code, seconds)
        self._log.write(
            _FACE, name, context.peer(), code, seconds, len(answer),
            session=call.session, tool=call.tool, host=call.host, request_id=request_id,
        )  # fmt: skip
        if code != "OK":
            context.abort(grpc.StatusCode[code], details)
        return answer


def _status(name: str, error: PeaklineError) -> str:
    """The name of the status; where a call is passed on, that which the profiler answered."""
    if isinstance(error, WorkerError) and name.startswith(f"{PROFILER}/"):
        return error.code
    return error.grpc_status


def _request_id(metadata: Iterable[tuple[str, str | bytes]], access: Access) -> str:
    given = (_text(value) or "" for key, value in metadata if key == _REQUEST_ID)
    return access.request_id(given)


def _text(value: str | bytes | None = None) -> str | None:
    return value.decode("latin-1") if isinstance(value, bytes) else value
