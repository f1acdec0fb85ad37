"""Many clients of a running server at once, over both faces, that compare every answer with the
one that is right.
"""

import contextlib
import http.client
import itertools
import json
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import grpc
from tests.service.grpc_client import Client
from tests.waiting import HANG_S

BUSY = {"RESOURCE_EXHAUSTED", "429"}
_SHOWN = 5


@dataclass(frozen=True)
class Refused:
    """The right answer is this error: the status of gRPC, the number of HTTP, and its words."""

    status: str
    number: int
    pattern: str

    def is_right(self, code: str, words: str) -> bool:
        return code in (self.status, str(self.number)) and bool(re.search(self.pattern, words))


@dataclass(frozen=True)
class GrpcQuestion:
    """``right`` is a `Refused`, the sessions with their tools, or format, content and remarks."""

    method: str
    fields: dict[str, Any]
    right: Any

    @property
    def label(self) -> tuple[str, str]:
        """What the server counts it as."""
        return "grpc", f"tensorflow.ProfileAnalysis/{self.method}"

    def ask(self, client: Client) -> tuple[str, bool, str]:
        """The code, whether the answer is right, and what it was in a few words."""
        try:
            answer = client.call(self.method, timeout=HANG_S, **self.fields)
        except grpc.RpcError as error:
            code, words = error.code().name, str(error.details())
            right = isinstance(self.right, Refused) and self.right.is_right(code, words)
            return code, right, words
        if self.method == "EnumSessions":
            result = [(one.session_id, list(one.available_tools)) for one in answer.sessions]
            return "OK", result == self.right, str(result)
        data = (answer.output_format, answer.output)
        if isinstance(self.right, Refused):
            return "OK", False, str(data)[:200]
        *expected, remarks = self.right
        is_right = data == tuple(expected) and bool(re.fullmatch(remarks, answer.error_message))
        return "OK", is_right, f"{answer.error_message!r} {data!s:.200}"


@dataclass(frozen=True)
class HttpQuestion:
    """``right`` is a `Refused`, the bytes of the answer, or what its JSON says."""

    verb: str
    path: str
    route: str
    right: Any
    body: dict[str, Any] | None = None

    @property
    def label(self) -> tuple[str, str]:
        """What the server counts it as."""
        return "http", f"{self.verb} {self.route}"

    def ask(self, connection: http.client.HTTPConnection) -> tuple[str, bool, str]:
        """The code, whether the answer is right, and what it was in a few words."""
        content = None if self.body is None else json.dumps(self.body)
        headers = {} if content is None else {"Content-Type": "application/json"}
        connection.request(self.verb, self.path, content, headers)
        response = connection.getresponse()
        answer = response.read()
        code, shown = str(response.status), answer[:200].decode("ascii", "replace")
        if response.status >= 400:
            problem = json.loads(answer)
            if code in BUSY:
                assert int(response.headers["Retry-After"]) >= 1
            right = isinstance(self.right, Refused) and self.right.is_right(code, problem["detail"])
            return code, right, problem["detail"]
        if isinstance(self.right, Refused):
            return code, False, shown
        result = answer if isinstance(self.right, bytes) else json.loads(answer)
        return code, result == self.right, shown


@dataclass
class Tally:
    """What clients saw: answers by face, method and code; ``wrong`` in words; times in seconds."""

    codes: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    requests: Counter[int] = field(default_factory=Counter)
    """By the number of the question: how often it had an answer other than "busy"."""

    def note(self, number: int, label: tuple[str, str], code: str, seconds: float) -> None:
        self.codes[*label, code] += 1
        self.seconds.append(seconds)
        if code not in BUSY:
            self.requests[number] += 1

    @property
    def busy(self) -> int:
        """How many were refused for want of a place."""
        return sum(count for (*_, code), count in self.codes.items() if code in BUSY)

    def quantile(self, share: float) -> float:
        return sorted(self.seconds)[int(share * (len(self.seconds) - 1))]

    def summary(self) -> str:
        return (
            f"{len(self.seconds)} answers, {self.busy} busy, median {self.quantile(0.5):.3f} s, "
            f"99 % {self.quantile(0.99):.3f} s, worst {self.quantile(1):.3f} s"
        )


class Ports(Protocol):
    """A server, in whichever process."""

    grpc_port: int
    http_port: int


T = TypeVar("T")


def _until(end: float, items: Sequence[T], seconds: float) -> Iterator[T]:
    """``items`` once, or where there are ``seconds`` again and again until the ``end``."""
    if not seconds:
        yield from items
        return
    for item in itertools.cycle(items):
        if time.monotonic() >= end:
            return
        yield item


def run_load(
    server: Ports,
    questions: Sequence[GrpcQuestion | HttpQuestion],
    *,
    clients: int,
    rounds: int = 1,
    seconds: float = 0,
) -> Tally:
    """Ask ``questions`` in a different order from each of ``clients``, half of them over each
    face, all beginning together, ``rounds`` times, or for ``seconds``; each has a connection of its
    own and one question at a time.
    """
    by_face = {
        face: [one for one in enumerate(questions) if one[1].label[0] == face]
        for face in ("grpc", "http")
    }
    total, lock, begin = Tally(), threading.Lock(), threading.Barrier(clients)

    def client(number: int) -> None:
        face = ("grpc", "http")[number % 2]
        mine, order = Tally(), random.Random(number)
        with contextlib.ExitStack() as stack:
            if face == "grpc":
                connection: Any = Client(f"127.0.0.1:{server.grpc_port}")
            else:
                connection = http.client.HTTPConnection(
                    "127.0.0.1", server.http_port, timeout=HANG_S
                )
            stack.callback(connection.close)
            questions_left = rounds * by_face[face]
            order.shuffle(questions_left)
            begin.wait(HANG_S)
            for which, question in _until(time.monotonic() + seconds, questions_left, seconds):
                began = time.monotonic()
                code, is_right, words = question.ask(connection)
                mine.note(which, question.label, code, time.monotonic() - began)
                if not is_right and not (code in BUSY and "try again later" in words):
                    mine.wrong.append(f"{question!r:.300}: {code}: {words}")
        with lock:
            total.codes += mine.codes
            total.requests += mine.requests
            total.wrong += mine.wrong
            total.seconds += mine.seconds

    with ThreadPoolExecutor(clients, thread_name_prefix="client") as pool:
        for ended in [pool.submit(client, number) for number in range(clients)]:
            ended.result()
    assert not total.wrong, "\n".join([f"{len(total.wrong)} wrong:", *total.wrong[:_SHOWN]])
    return total
