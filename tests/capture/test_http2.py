"""The connection to a profiler, frame by frame: what RFC 9113 allows, and what nobody may send."""

import random
import socket
import threading
from contextlib import contextmanager, suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.capture.big_peer import field
from tests.capture.dying_peer import (
    ACK,
    CONTENT_TYPE,
    DATA,
    END_HEADERS,
    HEADERS,
    PING,
    PREFACE,
    SETTINGS,
    STATUS_200,
    frame,
)
from tests.capture.peers import answer_of, peer, profile_of, space
from tests.capture.requests import good, request_for
from tests.each_row import each_row
from tests.waiting import HANG_S

from peakline.capture import capture, profile_options
from peakline.capture.call import Call, CallError
from peakline.capture.http2 import BrokenError, Exchange

RESET, GO_AWAY, WINDOW, CONTINUATION, PUSH, UNKNOWN = 3, 7, 8, 9, 5, 0x77
END_STREAM, PADDED, PRIORITY = 1, 8, 0x20
HELLO = frame(SETTINGS, 0, 0)


def literal(name, value):
    """A header as RFC 7541 writes one that nobody remembers."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


STATUS_0 = literal(b"grpc-status", b"0")
BEGIN = frame(HEADERS, END_HEADERS, 1, STATUS_200 + CONTENT_TYPE)
END = frame(HEADERS, END_HEADERS | END_STREAM, 1, STATUS_0)


def data(content, flags=0):
    return frame(DATA, flags, 1, content)


def message(content):
    return b"\0" + len(content).to_bytes(4, "big") + content


def ended(code, details=""):
    """Trailers with a status."""
    block = literal(b"grpc-status", str(code).encode()) + literal(b"grpc-message", details.encode())
    return frame(HEADERS, END_HEADERS | END_STREAM, 1, block)


@contextmanager
def speaking(*parts, after_data=b""):
    """The address of one who sends the first part, and the others when a request has come.

    ``after_data`` is sent whenever a part of it has come.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    taken = []

    def serve():
        connection, _ = listener.accept()
        with connection, suppress(OSError), connection.makefile("rb") as stream:
            stream.read(len(PREFACE))
            connection.sendall(parts[0])
            while head := stream.read(9):
                taken.append((head[3], head[4], stream.read(int.from_bytes(head[:3], "big"))))
                if head[3] == DATA and head[4] & END_STREAM:
                    connection.sendall(b"".join(parts[1:]))
                    connection.shutdown(socket.SHUT_WR)
                elif head[3] == DATA:
                    connection.sendall(after_data)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}", taken
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(HANG_S)


def call(address, request=b"request"):
    """What an answer brought, and its stages."""
    content, stages = bytearray(), []
    Call(address, "/a/B").run(request, content.extend, timeout_s=HANG_S, report=stages.append)
    return bytes(content), stages


def answer_to(*parts):
    with speaking(HELLO, *parts) as (address, _):
        return call(address)[0]


GOOD = {
    "at once": [BEGIN, data(message(b"abc")), END],
    "nothing in it": [BEGIN, data(message(b"")), END],
    "in pieces": [BEGIN, *(data(bytes([one])) for one in message(b"abc")), END],
    "padded": [BEGIN, data(b"\x03" + message(b"abc") + bytes(3), PADDED), END],
    "padding alone": [BEGIN, data(b"\x02\0\0", PADDED), data(message(b"abc")), END],
    "frames of no length": [BEGIN, data(b""), data(message(b"abc")), data(b""), END],
    "headers with a priority": [
        frame(HEADERS, END_HEADERS | PRIORITY | PADDED, 1, b"\x01" + bytes(5) + STATUS_200 + b"\0"),
        data(message(b"abc")),
        END,
    ],
    "headers in pieces": [
        frame(HEADERS, 0, 1, STATUS_200),
        frame(CONTINUATION, END_HEADERS, 1, CONTENT_TYPE),
        data(message(b"abc")),
        frame(HEADERS, END_STREAM, 1, STATUS_0[:4]),
        frame(CONTINUATION, 0, 1, STATUS_0[4:]),
        frame(CONTINUATION, END_HEADERS, 1, b""),
    ],
    "after a notice": [frame(HEADERS, END_HEADERS, 1, b"\x08\x03100"), BEGIN,
                       data(message(b"abc")), END],
    "the last one of a server that ends": [
        BEGIN, frame(GO_AWAY, 0, 0, (2**31 - 1).to_bytes(4, "big") + bytes(4)),
        frame(GO_AWAY, 0, 0, (1).to_bytes(4, "big") + bytes(4)), data(message(b"abc")), END,
    ],
    "with frames that we do not know": [frame(UNKNOWN, 255, 0, b"?" * 99), BEGIN,
                                        frame(SETTINGS, 0, 0, b"\0\x99" + bytes(4)),
                                        data(message(b"abc")), END],
    "ended twice": [BEGIN, data(message(b"abc")), END, frame(RESET, 0, 1, bytes(4))],
}  # fmt: skip


@each_row(("name", "parts"), GOOD.items())
def test_what_an_answer_may_be_sent_as(name, parts):
    assert answer_to(*parts) == (b"" if name == "nothing in it" else b"abc")


REFUSED = {
    "UNAVAILABLE: it closed the connection": [[], [BEGIN], [BEGIN, data(message(b"abc"))]],
    "UNAVAILABLE: it takes no more calls": [[frame(GO_AWAY, 0, 0, bytes(8))]],
    "UNAVAILABLE: a frame of": [[frame(HEADERS, 0, 1, bytes(1 << 17))],
                                [BEGIN, b"\xff\xff\xff\0\0\0\0\0\x01"]],
    "UNAVAILABLE: headers that break off": [[frame(HEADERS, 0, 1, STATUS_200), HELLO]],
    "UNAVAILABLE: headers without an end": [
        [frame(HEADERS, 0, 1, STATUS_200), *[frame(CONTINUATION, 0, 1, bytes(1 << 14))] * 5]],
    "UNAVAILABLE: headers that cannot be read": [
        [frame(HEADERS, END_HEADERS, 1, b"\xff" * 9)],
        # A table of names that unpacks without an end.
        [frame(HEADERS, END_HEADERS, 1, literal(b"a", b"b" * 127)[:1] + b"\x40\x01a\x7f\x81\x1f"
               + b"b" * 4096 + b"\xbe" * 60_000)]],
    "UNAVAILABLE: more padding than content": [
        [BEGIN, data(b"\x09abc", PADDED)], [frame(HEADERS, END_HEADERS | PADDED, 1, b"\x09\x88")]],
    "UNAVAILABLE: an answer without headers": [[data(message(b"abc"))]],
    "INTERNAL: it did not send one answer": [
        [BEGIN, END], [BEGIN, data(message(b"abc")[:-1]), END],
        [BEGIN, data(message(b"abc") + b"d"), END], [BEGIN, data(message(b"") * 2), END]],
    "INTERNAL: its answer ends without a status": [
        [BEGIN, data(message(b"abc"), END_STREAM)],
        [BEGIN, frame(HEADERS, END_HEADERS | END_STREAM, 1, literal(b"a", b"b"))]],
    "INTERNAL: it sent a compressed answer": [[BEGIN, data(b"\x01\0\0\0\0"), END]],
    "RESOURCE_EXHAUSTED: its answer is larger than 2 GiB": [
        [BEGIN, data(b"\0\xff\xff\xff\xff")], [BEGIN, data(b"\0\x80\0\0\0")]],
    "INTERNAL: it ended the call": [[frame(RESET, 0, 1, bytes(4))]],
    "CANCELLED: it ended the call": [[BEGIN, frame(RESET, 0, 1, b"\0\0\0\x08")]],
    "UNAVAILABLE: it ended the call": [[frame(RESET, 0, 1, b"\0\0\0\x07")]],
    "PERMISSION_DENIED: go \u00e9": [[ended(7, "go %C3%A9")], [BEGIN, ended(7, "go %C3%A9")]],
    "UNKNOWN: ": [[ended(99)], [ended("x")], [ended("9" * 120)], [ended("0" * 9 + "99")]],
    "UNIMPLEMENTED: it answers with HTTP 404": [[frame(HEADERS, END_HEADERS, 1, b"\x8d")]],
    "UNKNOWN: it answers with HTTP 0": [[frame(HEADERS, END_HEADERS, 1, b"\x08\x03abc")]],
}  # fmt: skip


@each_row(("why", "parts"), [(why, parts) for why, all_ in REFUSED.items() for parts in all_])
def test_what_is_no_answer(why, parts):
    with pytest.raises(CallError) as raised:
        answer_to(*parts)
    assert f"{raised.value.code}: {raised.value}".startswith(why)


@each_row("first", [b"HTTP/1.1 400 Bad Request\r\n\r\n", bytes(99), b"\xff" * 99, BEGIN])
def test_who_does_not_speak_http_2_is_sent_nothing(first):
    with speaking(first) as (address, taken):
        with pytest.raises(CallError, match=r"HTTP/2|frame of") as raised:
            call(address)
        assert raised.value.code == "UNAVAILABLE"
    assert DATA not in [kind for kind, _, _ in taken]


def test_who_says_nothing_is_waited_for_no_longer_than_the_call_may_take():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(CallError) as raised:
            Call(address, "/a/B").run(b"", print, timeout_s=0.1, report=print)
    assert raised.value.code == "DEADLINE_EXCEEDED"


def test_one_of_several_addresses_is_enough(monkeypatch):
    """A name that has two, at the first of which nobody is."""
    looked_up = socket.getaddrinfo

    def two(_host, port, **options):
        return [
            result
            for host in ("127.0.0.2", "127.0.0.1")
            for result in looked_up(host, port, **options)
        ]

    with speaking(HELLO, BEGIN, data(message(b"abc")), END) as (address, _):
        monkeypatch.setattr(socket, "getaddrinfo", two)
        assert call(f"box:{address.rpartition(':')[2]}")[0] == b"abc"


def test_a_name_that_nobody_has(monkeypatch):
    too_long = "a" * 64
    with pytest.raises(CallError, match=f"^{too_long}: ") as raised:
        call(f"{too_long}:80")
    assert raised.value.code == "UNAVAILABLE"

    def nobody(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", nobody)
    with pytest.raises(CallError, match=r"^box: Name or service not known$"):
        call("box:80")


def test_a_lookup_without_an_end_ends_with_the_call(monkeypatch):
    over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: over.wait(HANG_S))
    with pytest.raises(CallError) as raised:
        Call("box:80", "/a/B").run(b"", print, timeout_s=0.1, report=print)
    over.set()
    assert raised.value.code == "DEADLINE_EXCEEDED"


def test_a_sign_of_life_is_answered_and_the_end_is_told():
    with speaking(HELLO, frame(PING, 0, 0, b"12345678"), BEGIN, data(message(b"a")), END) as (
        address,
        taken,
    ):
        call(address)
    assert (PING, ACK, b"12345678") in taken
    assert taken[-1][0] == GO_AWAY


def test_the_settings_of_the_other_side_are_obeyed():
    """A window of 10 bytes, which opens by 1,000 whenever some came; no table of headers."""
    small = b"\0\x04" + (10).to_bytes(4, "big") + b"\0\x01" + bytes(4)
    more = frame(WINDOW, 0, 1, (1000).to_bytes(4, "big"))
    request = bytes(range(256)) * 8
    parts = [frame(SETTINGS, 0, 0, small), BEGIN, data(message(b"a")), END]
    with speaking(*parts, after_data=more) as (address, taken):
        assert call(address, request) == (b"a", ["recording", "receiving"])
    pieces = [content for kind, _, content in taken if kind == DATA]
    assert b"".join(pieces) == message(request)
    assert list(map(len, pieces)) == [10, 1000, 1000, 43]


def test_a_request_that_is_larger_than_any_window(tmp_path):
    """With gRPC's own server, which opens its window as it reads."""
    from peakline.repository import Repository

    options = profile_options({"text": "x" * 3_000_000})
    with peer(good) as worker:
        capture(request_for(worker.address, options=options), Repository(tmp_path))
    (sent,) = worker.requests
    assert len(sent.opts.advanced_configuration["text"].string_value) == 3_000_000


CONVERSATION = b"".join(
    [HELLO, frame(SETTINGS, ACK, 0), BEGIN, frame(PING, 0, 0, bytes(8)),
     data(b"\x05" + message(profile_of())[:90] + bytes(5), PADDED),
     data(message(profile_of())[90:]), END]
)  # fmt: skip


def received(content, cuts=()):
    """What an exchange passes on of these bytes, cut there."""
    headers, passed = [], bytearray()
    exchange = Exchange(headers.append, passed.extend)
    places = [0, *sorted(cuts), len(content)]
    for begin, end in pairwise(places):
        exchange.receive(memoryview(content)[begin:end])
        if exchange.is_open and not exchange.to_send().startswith(PREFACE):
            exchange.ping()
    return headers, bytes(passed), exchange.is_over


@given(st.lists(st.integers(0, len(CONVERSATION)), max_size=20))
def test_how_bytes_are_cut_does_not_matter(cuts):
    whole = received(CONVERSATION)
    assert whole[1:] == (message(profile_of()), True)
    assert received(CONVERSATION, cuts) == whole


@pytest.mark.parametrize("rounds", [3000, pytest.param(300_000, marks=pytest.mark.soak)])
def test_damaged_frames_are_refused_or_read(rounds):
    chance = random.Random(rounds)
    refused = 0
    for _ in range(rounds):
        content = bytearray(CONVERSATION)
        for _ in range(chance.randint(1, 4)):
            content[chance.randrange(len(content))] = chance.randrange(256)
        try:
            received(bytes(content[: chance.randint(1, len(content))]), [chance.randrange(60)])
        except BrokenError:
            refused += 1
    assert rounds // 10 < refused < rounds * 9 // 10


def test_an_answer_of_garbage_is_one_line(tmp_path):
    """Sound frames around what is none: nothing is stored, and each says why in a line."""
    from peakline.errors import RemoteError
    from peakline.repository import Repository

    for content in (b"\xff" * 99, field(8, b"\x0a\xff\xff\xff\xff\x07"), answer_of(space())[:-3]):
        with speaking(HELLO, BEGIN, data(message(content)), END) as (address, _):
            with pytest.raises(RemoteError, match=r"sent|its answer is damaged") as raised:
                capture(request_for(address, attempts=1), Repository(tmp_path))
            assert "\n" not in str(raised.value)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
