"""One request and its answer over HTTP/2 (RFC 9113), as bytes in and bytes out.

gRPC's own library gives a message when it is whole, and holds it three times by then; of an answer
of a gigabyte here nothing stays in memory: what comes is passed on, a piece at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from peakline.extras import require

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEAD = 9
_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _GO_AWAY, _WINDOW, _CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
_END_STREAM = _ACK = 0x1
_END_HEADERS, _PADDED, _PRIORITY = 0x4, 0x8, 0x20
_TABLE_SIZE, _PUSH, _INITIAL_WINDOW, _MAX_FRAME, _MAX_HEADERS = 1, 2, 4, 5, 6
_NO_ERROR, _CANCEL = 0, 8
_STREAM = 1

_FIRST_WINDOW = 65_535
_LARGEST_WINDOW = 2**31 - 1
_OPEN_AGAIN = 1 << 29
"""After so many bytes the other side may send as many more: its window never closes."""
_FRAME = 1 << 20
_MOST_HEADERS = 1 << 16
_MOST_CONTROL = 1 << 16
"""Bytes of a frame that is no data; the specification gives such frames a few dozen."""


class BrokenError(Exception):
    """The other side does not speak HTTP/2, or ended the connection: ``str()`` is how."""


class Exchange:
    """A connection with one stream, without its socket.

    ``on_headers`` gets headers, then trailers, ``on_data`` the content in pieces. ``is_open``: the
    other side has said that it speaks HTTP/2; ``is_over``: the stream has ended, with
    ``reset_code`` where it was reset.
    """

    def __init__(
        self,
        on_headers: Callable[[dict[bytes, bytes]], object],
        on_data: Callable[[memoryview], object],
    ) -> None:
        require("serve", "peakline.capture")
        from hpack import Decoder, Encoder

        self._on_headers, self._on_data = on_headers, on_data
        self._encoder, self._decoder = Encoder(), Decoder(max_header_list_size=_MOST_HEADERS)
        self.is_open = False
        self.is_over = False
        self.reset_code: int | None = None
        self._to_send = bytearray(_PREFACE)
        self._body = memoryview(b"")
        self._is_begun = False
        self._peer_frame, self._peer_first_window = 1 << 14, _FIRST_WINDOW
        self._windows = [_FIRST_WINDOW, _FIRST_WINDOW]  # what we may send: connection, stream
        self._received = 0
        self._head = bytearray()
        self._content = bytearray()
        self._left = self._padding = 0
        self._headers, self._ends_stream = bytearray(), False
        settings = (
            (_PUSH, 0),
            (_INITIAL_WINDOW, _LARGEST_WINDOW),
            (_MAX_FRAME, _FRAME),
            (_MAX_HEADERS, _MOST_HEADERS),
        )
        self._frame(_SETTINGS, 0, 0, b"".join(_setting(*one) for one in settings))
        self._frame(_WINDOW, 0, 0, (_LARGEST_WINDOW - _FIRST_WINDOW).to_bytes(4, "big"))

    def begin(self, headers: Sequence[tuple[str, str]], body: bytes) -> None:
        """Send the request."""
        self._is_begun = True
        block = self._encoder.encode(headers)
        self._frame(_HEADERS, _END_HEADERS, _STREAM, block)
        self._body = memoryview(body)
        self._windows[1] = self._peer_first_window
        self._send_body()

    def ping(self) -> None:
        """Ask for a sign of life."""
        self._frame(_PING, 0, 0, bytes(8))

    def cancel(self) -> None:
        """End the stream, and the connection."""
        if self._is_begun and not self.is_over:
            self._frame(_RESET, 0, _STREAM, _CANCEL.to_bytes(4, "big"))
        self._frame(_GO_AWAY, 0, 0, bytes(4) + _NO_ERROR.to_bytes(4, "big"))

    def to_send(self) -> bytes:
        """What is to be sent, once."""
        content = bytes(self._to_send)
        self._to_send.clear()
        return content

    def receive(self, content: memoryview) -> None:
        """What has come. Raises BrokenError, and whatever ``on_headers`` and ``on_data`` raise."""
        at = 0
        while at < len(content) and not self.is_over:
            if len(self._head) < _HEAD:
                piece = content[at : at + _HEAD - len(self._head)]
                self._head += piece
                at += len(piece)
                if len(self._head) == _HEAD:
                    self._begin_frame()
            else:
                piece = content[at : at + self._left]
                at += len(piece)
                self._left -= len(piece)
                self._take(piece)
            if len(self._head) == _HEAD and not self._left:
                self._end_frame()

    def _begin_frame(self) -> None:
        length, kind = int.from_bytes(self._head[:3], "big"), self._head[3]
        if not self.is_open and kind != _SETTINGS:
            raise BrokenError("what is there does not speak HTTP/2")
        if length > (_FRAME if kind == _DATA else _MOST_CONTROL):
            raise BrokenError(f"a frame of {length} bytes")
        if self._headers and kind != _CONTINUATION:
            raise BrokenError("headers that break off")
        self._left, self._padding = length, -1
        if kind == _DATA and not self._flag(_PADDED):
            self._padding = 0

    def _take(self, piece: memoryview) -> None:
        """A part of the frame that is being read."""
        if self._head[3] != _DATA:
            self._content += piece
            return
        self._received += len(piece)
        if self._padding < 0 and len(piece):
            self._padding = piece[0]
            if self._padding > self._left + len(piece) - 1:
                raise BrokenError("more padding than content")
            piece = piece[1:]
        # What is left of the frame ends with the padding.
        content = piece[: max(0, len(piece) + self._left - self._padding)]
        if len(content) and self._is_ours():
            self._on_data(content)

    def _end_frame(self) -> None:
        kind, content = self._head[3], bytes(self._content)
        ends = self._flag(_END_STREAM) and self._is_ours()
        if kind == _DATA:
            self.is_over |= ends
            self._open_windows()
        elif kind == _HEADERS:
            self._headers, self._ends_stream = _without_padding(content, self._head[4]), ends
            self._end_headers()
        elif kind == _CONTINUATION:
            self._headers += content
            self._end_headers()
        elif kind == _SETTINGS and not self._flag(_ACK):
            self._apply(content)
        elif kind == _PING and not self._flag(_ACK):
            self._frame(_PING, _ACK, 0, content)
        elif kind == _WINDOW:
            self._windows[self._is_ours()] += _number(content)
            self._send_body()
        elif kind == _RESET and self._is_ours():
            self.is_over, self.reset_code = True, _number(content)
        elif kind == _GO_AWAY and _number(content) < _STREAM:
            raise BrokenError("it takes no more calls")
        self._head.clear()
        self._content.clear()

    def _end_headers(self) -> None:
        from hpack import HPACKError

        if len(self._headers) > _MOST_HEADERS:
            raise BrokenError("headers without an end")
        if not self._flag(_END_HEADERS):
            return
        try:
            result = self._decoder.decode(bytes(self._headers), raw=True)
        except HPACKError as error:
            raise BrokenError(f"headers that cannot be read: {error}") from None
        self._headers.clear()
        if self._is_ours():
            self.is_over |= self._ends_stream
            self._on_headers({bytes(name): bytes(value) for name, value in result})

    def _apply(self, content: bytes) -> None:
        """Obey the other side's settings."""
        for at in range(0, len(content) - 5, 6):
            name, value = int.from_bytes(content[at : at + 2], "big"), _number(content[at + 2 :])
            if name == _TABLE_SIZE:
                self._encoder.header_table_size = min(value, 4096)
            elif name == _INITIAL_WINDOW:
                self._windows[1] += value - self._peer_first_window
                self._peer_first_window = value
            elif name == _MAX_FRAME:
                self._peer_frame = max(1 << 14, value)
        self.is_open = True
        self._frame(_SETTINGS, _ACK, 0, b"")
        self._send_body()

    def _send_body(self) -> None:
        """As much of the request as the other side takes now."""
        while self._body:
            size = min(len(self._body), self._peer_frame, *self._windows)
            if size <= 0:
                return
            piece, self._body = self._body[:size], self._body[size:]
            self._windows = [window - size for window in self._windows]
            self._frame(_DATA, 0 if self._body else _END_STREAM, _STREAM, piece)

    def _open_windows(self) -> None:
        if self._received >= _OPEN_AGAIN:
            for stream in (0, _STREAM):
                self._frame(_WINDOW, 0, stream, self._received.to_bytes(4, "big"))
            self._received = 0

    def _flag(self, flag: int) -> bool:
        return bool(self._head[4] & flag)

    def _is_ours(self) -> bool:
        return _number(self._head[5:]) == _STREAM

    def _frame(self, kind: int, flags: int, stream: int, content: bytes | memoryview) -> None:
        head = len(content).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big")
        self._to_send += head
        self._to_send += content


def _setting(name: int, value: int) -> bytes:
    return name.to_bytes(2, "big") + value.to_bytes(4, "big")


def _number(content: bytes | bytearray) -> int:
    """The first four bytes, without the bit that is reserved."""
    return int.from_bytes(content[:4], "big") & 0x7FFFFFFF


def _without_padding(content: bytes, flags: int) -> bytearray:
    """The headers in a frame, without its padding and the priority, which nobody heeds."""
    begin = bool(flags & _PADDED) + 5 * bool(flags & _PRIORITY)
    end = len(content) - (content[0] if flags & _PADDED and content else 0)
    if end < begin:
        raise BrokenError("more padding than content")
    return bytearray(content[begin:end])
