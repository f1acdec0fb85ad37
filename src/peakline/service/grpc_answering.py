"""How gRPC's calls are answered: who may call, how many at once, and what becomes of errors.

Every call goes through a check of its token and `Answering`: what is raised becomes a status, a
line in the access log and a count. A call whose request has not come holds no thread, only a place
of `Calls`, and not for long.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc
from grpc import aio

from peakline.capture import WorkerError
from peakline.deadline import Deadline
from peakline.engine.gate import Caller
from peakline.errors import BusyError, DeadlineError, PeaklineError, UnforeseenError, UsageError
from peakline.service.access import Access
from peakline.service.access_log import AccessLog
from peakline.service.callers import caller_of, grpc_address, peer_of
from peakline.service.core import Analysis
from peakline.service.deliveries import Deliveries
from peakline.service.grpc_calls import PROFILER, Call, Metadata, Method
from peakline.service.http.problems import RETRY_AFTER_S
from peakline.service.metrics import Metrics
from peakline.service.places import Places
from peakline.wire.encode import message

_FACE = "grpc"
_OPEN = "/grpc.health.v1.Health/"
_REQUEST_ID = "x-request-id"
_AUTHORIZATION = "authorization"
_UNAUTHENTICATED = "a token is needed: send the metadata authorization: Bearer TOKEN"


class Calls:
    """The places of the calls in flight: ``most``, and ``most_each`` for each peer.

    Those whose clients have sent no request yet give way, or have not read the answer: then
    ``hang_up`` is called with the name of the connection, as ``begins`` is for every call.
    ``head_s`` is how long a request may be on its way. For the thread of one event loop.
    """

    def __init__(
        self,
        most: int,
        most_each: int,
        head_s: float,
        begins: Callable[[str], object],
        hang_up: Callable[[str], object],
    ) -> None:
        self._places: Places[_Place] = Places(most, most_each)
        self._head_s = head_s
        self._begins, self._hang_up = begins, hang_up
        self.at_work: Counter[str] = Counter()
        """By the connection (what gRPC calls the peer): how many calls the server works for."""

    @contextmanager
    def place(self, context: Any) -> Iterator[_Place]:
        """A place for the call of ``context``, which it has until its answer is read; BusyError
        when there is none, or when it has to give way in the block.
        """
        place = _Place(context.peer(), self._hang_up)
        self._begins(place.group)
        if not self._places.take(place):
            raise BusyError("there are as many calls as this server takes; try again later")
        context.add_done_callback(lambda _: self._places.leave(place))
        try:
            yield place
        except asyncio.CancelledError:
            if not place.gave_way:
                raise
            place.stay()
            raise BusyError("others came while this call waited for its client") from None
        finally:
            place.is_ended = True
            self.waits(place)

    async def request(self, place: _Place, context: Any) -> bytes:
        """The only request of the call. Raises UsageError where there is none, DeadlineError where
        it is not there in time.
        """
        try:
            async with asyncio.timeout(self._head_s):
                content = await context.read()
        except TimeoutError:
            raise DeadlineError(f"the request did not come within {self._head_s:g} s") from None
        if content is aio.EOF:
            raise UsageError("the call has no request")
        self._places.works(place)
        self.at_work[place.group] += 1
        place.works = True
        return bytes(content)

    def waits(self, place: _Place) -> None:
        """The call goes on for as long as its client likes, and gives way to others."""
        self._places.waits(place)
        if place.works:
            place.works = False
            self.at_work[place.group] -= 1
            if not self.at_work[place.group]:
                del self.at_work[place.group]


class _Place:
    """The place of one call."""

    def __init__(self, connection: str, hang_up: Callable[[str], object]) -> None:
        self.group = connection
        self._hang_up = hang_up
        self.is_ended = False
        self.peer = peer_of(grpc_address(connection))
        self.gave_way = self.works = False
        self._task = asyncio.current_task()

    def give_way(self) -> None:
        """End the call; it gets to know why, if it still can."""
        if self.is_ended:
            self._hang_up(self.group)
        elif self._task is not None:
            self.gave_way = True
            self._task.cancel()

    def stay(self) -> None:
        """Go on, to say so."""
        if self._task is not None:
            self._task.uncancel()


class TokenInterceptor(aio.ServerInterceptor):  # type: ignore[misc]  # grpc has no types
    """Refuses calls without the token, unary and streaming, known or not; health is open."""

    def __init__(self, access: Access, log: AccessLog, metrics: Metrics) -> None:
        self._access = access
        self._log = log
        self._metrics = metrics

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], details: Any
    ) -> Any:
        """The call's own handler, or one that refuses it, without waiting for a request."""
        start = time.perf_counter()
        shown = _values(details.invocation_metadata, _AUTHORIZATION)
        # Two headers would leave it open which of them counts.
        if details.method.startswith(_OPEN) or (
            len(shown) <= 1 and self._access.token_matches(*shown or (None,))
        ):
            return await continuation(details)

        async def refuse(_: object, context: Any) -> None:
            name, code = details.method[1:], "UNAUTHENTICATED"
            seconds = time.perf_counter() - start
            self._metrics.refused("token")
            self._metrics.observe(_FACE, name, code, seconds)
            request_id = _request_id(details.invocation_metadata, self._access)
            self._log.write(_FACE, name, context.peer(), code, seconds, request_id=request_id)
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, _UNAUTHENTICATED)

        return grpc.stream_unary_rpc_method_handler(refuse)


class Answering:
    """Makes handlers of methods: errors become statuses, and every call is logged and counted."""

    def __init__(
        self,
        analysis: Analysis,
        access: Access,
        log: AccessLog,
        metrics: Metrics,
        calls: Calls,
        deliveries: Deliveries,
    ) -> None:
        self._analysis = analysis
        self._access = access
        self._log = log
        self._metrics = metrics
        self._calls = calls
        self._deliveries = deliveries

    def handler(self, name: str, method: Method) -> Any:
        """The handler of the method with the full name ``name`` (``package.Service/Method``)."""
        self._metrics.know(_FACE, [name])

        async def answer(_: object, context: Any) -> bytes:
            with self._metrics.in_flight(_FACE):
                return await self._answer(name, method, context)

        # To the client it is unary all the same. Here it begins before the request is there.
        return grpc.stream_unary_rpc_method_handler(answer)

    async def _answer(self, name: str, method: Method, context: Any) -> bytes:
        start = time.perf_counter()
        metadata: Metadata = tuple(context.invocation_metadata() or ())
        call = Call(metadata)
        request_id = _request_id(metadata, self._access)
        left = context.time_remaining()
        deadline = Deadline(method.limit_s if left is None else min(method.limit_s, left))
        code, details, answer = "OK", "", b""
        trailing: Metadata = ()
        try:
            answer = await self._result(method, call, context, deadline)
        except UnforeseenError as error:
            code, details = self._unforeseen(request_id, error)
        except PeaklineError as error:
            code, details = _status(name, error), self._analysis.public_text(error)
            if isinstance(error, BusyError):
                self._metrics.refused("busy")
                *_, trailing = refusal(error)
        except asyncio.CancelledError:
            # By the client, by its deadline, or because the server ends.
            is_late = left is not None and time.perf_counter() - start >= left
            code = "DEADLINE_EXCEEDED" if is_late else "CANCELLED"
            raise
        except Exception as error:  # noqa: BLE001 (whatever it is, the caller gets an id)
            code, details = self._unforeseen(request_id, error)
        finally:
            seconds = time.perf_counter() - start
            self._metrics.observe(_FACE, name, code, seconds)
            self._log.write(
                _FACE, name, context.peer(), code, seconds, len(answer),
                session=call.session, tool=call.tool, host=call.host, request_id=request_id,
            )  # fmt: skip
        if code != "OK":
            await context.abort(grpc.StatusCode[code], details, trailing)
        return answer

    def _unforeseen(self, request_id: str, error: Exception) -> tuple[str, str]:
        self._log.failure(request_id, error)
        return "INTERNAL", f"internal error ({request_id})"

    async def _result(self, method: Method, call: Call, context: Any, deadline: Deadline) -> bytes:
        with self._calls.place(context) as place:
            content = await self._calls.request(place, context)
            answer = await method.workers.run(
                lambda: method.answer(content, call),
                deadline=deadline,
                caller=self._caller(call.metadata, context),
                gate=method.gate,
            )
        delivery = self._deliveries.add(answer, place.give_way)
        context.add_done_callback(lambda _: self._deliveries.remove(delivery))
        return answer

    def _caller(self, metadata: Metadata, context: Any) -> Caller:
        shown = "".join(_values(metadata, _AUTHORIZATION))
        return caller_of(self._access, shown, grpc_address(context.peer()))


def refusing(behaviour: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """A method of gRPC's own services, whose errors become statuses."""

    async def answer(requests: object, context: Any) -> Any:
        try:
            return await behaviour(requests, context)
        except PeaklineError as error:
            return await context.abort(*refusal(error))

    return answer


def refusal(error: PeaklineError) -> tuple[grpc.StatusCode, str, Metadata]:
    """The status of an error, its text, and where there is no place what says when to try again.

    That is the pushback of gRPC's own retries (proposal A6), and a google.rpc.Status with a
    RetryInfo (google/rpc/error_details.proto).
    """
    code, details = grpc.StatusCode[error.grpc_status], str(error)
    if not isinstance(error, BusyError):
        return code, details, ()
    delay = b"\x08" + bytes((RETRY_AFTER_S,))  # google.protobuf.Duration.seconds
    info = message(1, b"type.googleapis.com/google.rpc.RetryInfo") + message(2, message(1, delay))
    status = b"\x08" + bytes((code.value[0],)) + message(2, details.encode()) + message(3, info)
    return (
        code,
        details,
        (
            ("grpc-retry-pushback-ms", str(1000 * RETRY_AFTER_S)),
            ("grpc-status-details-bin", status),
        ),
    )


def _status(name: str, error: PeaklineError) -> str:
    """The name of the status; where a call is passed on, that which the profiler answered."""
    if isinstance(error, WorkerError) and name.startswith(f"{PROFILER}/"):
        return error.code
    return error.grpc_status


def _request_id(metadata: Iterable[tuple[str, str | bytes]], access: Access) -> str:
    return access.request_id(_values(metadata, _REQUEST_ID))


def _values(metadata: Iterable[tuple[str, str | bytes]], name: str) -> list[str]:
    return [
        value.decode("latin-1") if isinstance(value, bytes) else value
        for key, value in metadata or ()
        if key == name
    ]
