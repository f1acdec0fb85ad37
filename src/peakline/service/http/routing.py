"""Routes: what a function answers, said once, for the caller who is checked and the one who reads.

A route is a function and what its signature says of a request. After the request it may take, by
these names and in this order,

- ``path``: the parts of the path in braces, as a class of `Parameters`,
- ``query``: what stands behind the question mark, as a class of `Query`; a function without it does
  not look at that,
- ``body``: the JSON document that is sent, as a class of `Body`.

One that is only checked has an underscore before its name. Each is checked before the function is
called, and `describe` writes the operation of ``/openapi.json`` from the same classes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, get_type_hints

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

from peakline.errors import UsageError
from peakline.service.http.bodies import json_body
from peakline.service.http.documents import Body
from peakline.service.http.parameters import Query
from peakline.toolbox.parameters import Parameters

_Q = TypeVar("_Q", bound=Query)
_Answering = Callable[..., Awaitable[Response]]


class Operation(Route):
    """One route, and what ``/openapi.json`` says of it.

    ``extra_parameters`` are described beside those of the classes, ``extra`` beside all else.
    """

    def __init__(
        self,
        method: str,
        path: str,
        function: _Answering,
        *,
        tag: str,
        summary: str,
        responses: Mapping[int, Mapping[str, Any]],
        extra_parameters: Sequence[Mapping[str, Any]] = (),
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        self.method, self.function, self.tag = method, function, tag
        self.summary, self.responses = summary, responses
        self.extra_parameters, self.extra = extra_parameters, extra or {}
        taken = {name.lstrip("_"): kind for name, kind in get_type_hints(function).items()}
        self.path_kind: type[Parameters] | None = taken.get("path")
        self.query_kind: type[Query] | None = taken.get("query")
        self.body_kind: type[Body] | None = taken.get("body")
        super().__init__(path, self._answer, methods=[method], name=function.__name__)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """As `Route.matches`; the scope names the route too: the log and the counters have it."""
        match, result = super().matches(scope)
        return match, result if match is Match.NONE else {**result, "route": self}

    async def _answer(self, request: Request) -> Response:
        given: list[Any] = [request]
        if self.path_kind is not None:
            given.append(self.path_kind.read(request.path_params))
        if self.query_kind is not None:
            given.append(query_of(request, self.query_kind))
        if self.body_kind is not None:
            given.append(await json_body(request, self.body_kind))
        return await self.function(*given)


@dataclass(frozen=True)
class Routes:
    """The routes of one module, all below ``prefix``."""

    tag: str
    prefix: str = ""
    operations: list[Operation] = field(default_factory=list)

    def get(self, path: str, **says: Any) -> Callable[[_Answering], _Answering]:
        """Make a function the answer to GET; ``says`` as of `Operation`."""
        return self._route("GET", path, says)

    def post(self, path: str, **says: Any) -> Callable[[_Answering], _Answering]:
        """Make a function the answer to POST; ``says`` as of `Operation`."""
        return self._route("POST", path, says)

    def _route(
        self, method: str, path: str, says: dict[str, Any]
    ) -> Callable[[_Answering], _Answering]:
        declared = {"tag": self.tag, **says}

        def add(function: _Answering) -> _Answering:
            self.operations.append(Operation(method, self.prefix + path, function, **declared))
            return function

        return add


def query_of(request: Request, kind: type[_Q]) -> _Q:
    """The parameters of a request.

    Raises UsageError for one that is none, is missing or, unless ``kind`` takes others, is given
    twice: nobody knows which is meant.
    """
    if kind.takes_others:
        given = request.query_params
        return kind.read({name: given[name] for name in kind.declared() if name in given})
    result = kind.read(request.query_params)
    refuse_repeated(request)
    return result


def refuse_repeated(request: Request) -> None:
    """Raise UsageError where a parameter is given twice."""
    seen = set()
    for name, _ in request.query_params.multi_items():
        if name in seen:
            shown = f"{name!r:.100}"
            raise UsageError(f"parameter {shown} is given twice").quoting(shown)
        seen.add(name)
