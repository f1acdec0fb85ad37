"""HTTP itself: what is no request is answered by a problem document as well."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from peakline.service.http.problems import problem_response


class ProblemProtocol(H11Protocol):
    """Uvicorn's protocol, which answers what is no request by itself, before any application."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Serve a connection, or close it if the server ends (then it has a time of grace).

        One can be accepted at that very moment. Uvicorn closes those that were made before, and
        would wait for this one, though nobody uses it, until the grace is over.
        """
        super().connection_made(transport)
        if self.config.timeout_graceful_shutdown is not None:
            self.shutdown()

    def send_400_response(self, msg: str) -> None:
        """Say what is wrong with the bytes that came, and hang up."""
        answer = problem_response(
            400,
            "INVALID_ARGUMENT",
            f"{msg.rstrip('.')}: a request line and headers in ASCII, with one Host, are wanted",
            {"Connection": "close", "X-Content-Type-Options": "nosniff"},
        )
        response = h11.Response(status_code=400, headers=answer.raw_headers, reason=b"Bad Request")
        for event in (response, h11.Data(data=bytes(answer.body)), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
