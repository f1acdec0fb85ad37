"""Which format a file has, decided from its content.

Binary messages carry no name: the first fields are compared with those of the messages
that Peakline reads, and the one that explains them best is taken. Of two that explain them
equally well it is the one in which every device is named like one, with a colon, and then the
first by its rank: a StepStats of one device and a GraphDef of one node without an op are the same
bytes, but for the name.

Text is recognised by its first field (protobuf's text format) or its outermost keys (JSON); any
other text is taken for a log, whose reader knows when it holds nothing to read.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache

from peakline import schema
from peakline.formats.common.format import formats, message_names
from peakline.formats.common.other_files import note_of, note_of_message
from peakline.formats.common.translate import camel
from peakline.formats.xplane.detect import names_its_planes, varint, why_not_xspace
from peakline.safe_text import one_line
from peakline.schema.shapes import FieldShape, MessageShape
from peakline.wire import as_buffer

_OTHER_MESSAGES = {"tfprof's profile": "tensorflow.tfprof.ProfileProto"}
"""Messages that are known so that they are recognised, and named."""

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_FIXED_BYTES = {_FIXED64: 8, _FIXED32: 4}
_MOST_FIELDS = 3000
_FIRST_FIELDS = 100
"""Enough where one message fits wholly and no other by half."""
_MOST_DEPTH = 5
_FEW_BAD = 0.02
_MOST_BAD = int(_FEW_BAD * _MOST_FIELDS)
"""What has more of them does not fit, whatever follows."""


@dataclass(frozen=True)
class Form:
    """A format and how it is written down: ``binary``, ``text`` or ``json`` for a protobuf
    message, ``binary`` or ``text`` for what is its own format. ``note`` says what an unknown
    file looks like; ``format`` is then empty.
    """

    format: str
    encoding: str = "binary"
    note: str = ""


def recognise(head: bytes) -> Form:
    """The form of the file that begins with ``head`` (up to 1 MiB; all of a shorter file)."""
    if note := note_of(head):
        return Form("", note=note)
    # What a running program's log lost to another one who emptied it is zeros.
    start = head.lstrip(b"\0")[:_LOOK]
    if _is_text(start):
        form = _recognise_text(head)
        # A tiny message may hold nothing but printable bytes and line ends.
        if form.format != "log" or not head.startswith(b"\n"):
            return form
        message = _recognise_message(head, exact=True)
        return message if message.format else form
    own = _begins(head, is_text=False)
    form = own or _recognise_message(head)
    return _recognise_text(head) if not form.format and _is_nearly_text(start) else form


_LOOK = 512
"""So many first bytes show whether a file is text."""
_NOT_PRINTED = bytes({*range(32), 127} - {*b"\b\t\n\v\f\r\x1b"})
"""Control characters, without those that lay out text, move a terminal's cursor or colour it."""


def _is_text(start: bytes) -> bool:
    # A log may hold a few bytes that are no UTF-8.
    undecodable = sum("\udc80" <= c <= "\udcff" for c in start.decode("utf-8", "surrogateescape"))
    return (
        start != b""
        and start.translate(None, _NOT_PRINTED) == start
        and undecodable <= len(start) // 64
    )


def _is_nearly_text(start: bytes) -> bool:
    """Whether what is no message may be a log that something else wrote into."""
    strange = len(start) - len(start.translate(None, _NOT_PRINTED))
    strange += start.decode("utf-8", "replace").count("\ufffd")
    return start != b"" and strange <= len(start) // 16


# Text.

_FIELD = re.compile(rb"\s*+(?:#[^\n]*+\n\s*+)*+(\w++)\s*+(?::?+\s*+[{<]|:\s*+[\[\d\"'])")


@cache
def _text_fields() -> dict[bytes, str]:
    return {field.encode(): one.name for one in formats().values() for field in one.fields}


@cache
def _json_fields() -> dict[str, str]:
    return {
        spelling: form
        for name, form in _text_fields().items()
        for spelling in (name.decode(), camel(name.decode()))
    }


_JSON_KEY = re.compile(r'[\s,]*+"([^"\\]*+(?:\\.[^"\\]*+)*+)"\s*+:\s*+')


def _recognise_text(head: bytes) -> Form:
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:1] in {b"{", b"["}:
        form = _recognise_json(text.decode("utf-8", "replace"))
        if form is not None:
            return form
    own = _begins(head, is_text=True)
    if own is not None:
        return own
    field = _FIELD.match(text)
    if field is not None and field[1] in _text_fields():
        return Form(_text_fields()[field[1]], "text")
    return Form("log", "text")


def _begins(head: bytes, *, is_text: bool) -> Form | None:
    """A binary format that is no message, by its first bytes."""
    for one in formats().values():
        if one.begins is not None and (one.is_text or not is_text) and one.begins(head):
            return Form(one.name)
    return None


def _recognise_json(text: str) -> Form | None:
    keys, rest = _first_keys(text) if text[0] == "{" else ({}, "")
    for one in formats().values():
        if one.json is not None and one.json(text, keys):
            return Form(one.name, "text")
    for key in keys:
        if key in _json_fields():
            return Form(_json_fields()[key], "json")
    # One object after the other is a log whose lines someone wrapped.
    if keys and not rest.startswith("{"):
        return Form("", note=f"JSON with {one_line(', '.join(sorted(keys)[:5]))[:100]}")
    return None


def _first_keys(text: str) -> tuple[dict[str, None], str]:
    """The keys of the outermost object in their order, as far as ``text`` goes, and what follows
    the object.
    """
    keys: dict[str, None] = {}
    decoder, at = json.JSONDecoder(), 1
    while match := _JSON_KEY.match(text, at):
        keys[match[1]] = None
        if match[1] == "traceEvents":
            break
        try:
            _, at = decoder.raw_decode(text, match.end())
        except (ValueError, RecursionError):
            # Cut, damaged, or nested as nothing is that someone wrote.
            return keys, ""
    return keys, text[at:].lstrip().removeprefix("}").lstrip()


# Protobuf messages.


def _recognise_message(head: bytes, *, exact: bool = False) -> Form:
    """The message that fits best; with ``exact`` only one that is whole, to the last byte."""
    form, is_clear = _best_message(head, _FIRST_FIELDS, exact=exact)
    return form if is_clear else _best_message(head, _MOST_FIELDS, exact=exact)[0]


def _best_message(head: bytes, fields: int, *, exact: bool) -> tuple[Form, bool]:
    """The message that fits the first ``fields`` best, and whether more would not change it:
    everything fits and no other message comes near, or there are no more.
    """
    reason = why_not_xspace(as_buffer(head))
    if not (reason or exact) and names_its_planes(as_buffer(head)):
        # In no other message a text stands where a plane's name does: no need to compare them.
        return Form("xplane"), True
    best, best_walk = Form("xplane"), _Walk(b"", 0, 0)
    if reason:
        is_message = reason.startswith("another")
        best = Form("", note=note_of_message(head) if is_message else "")
    # The first walks show who comes near, and every message is compared with an XSpace.
    walks = {
        name: _walked(
            schema.shape(full_name), head, fields,
            fields if fields < _MOST_FIELDS or name == "xplane" else _MOST_BAD,
        )
        for name, full_name in {**message_names(), **_OTHER_MESSAGES}.items()
    }  # fmt: skip
    if not reason:
        best_walk = walks["xplane"]
    for name, walk in walks.items():
        # A log of steps alone fits XSpace as well, as planes that have no names.
        as_good = name == "memory_log" and walk.score == best_walk.score > (0, 0)
        fits = walk.fits(exact=exact) and (walk.score > best_walk.score or as_good)
        # Messages of others fit by the way: what a format's own begin with must be there.
        known = formats()[name].fields if name in formats() else ()
        fits &= not known or not walk.fields.isdisjoint(known)
        if name != "xplane" and fits:
            best_walk = walk
            best = Form(name) if name in message_names() else Form("", note=name)
    is_alone = best_walk.good >= fields and all(
        walk is best_walk or walk.score <= (0, 0) for walk in walks.values()
    )
    has_more = any(walk.good + walk.bad >= fields for walk in walks.values())
    return best, is_alone or not has_more


def _walked(shape: MessageShape, head: bytes, fields: int, most_bad: int) -> _Walk:
    walk = _Walk(head, fields, most_bad)
    walk.message(shape, 0, len(head), 0)
    return walk


class _Walk:
    """Counts fields that fit a message (``good``) and that do not (``bad``), and devices whose
    name no device has. ``fields`` are those of the outermost message that are there.
    """

    def __init__(self, data: bytes, most_fields: int, most_bad: int = 0) -> None:
        self._data = data
        self._most_fields, self._most_bad = most_fields, most_bad
        self.good = self.bad = self.odd_devices = 0
        self.is_cut = False
        self.fields: set[str] = set()

    @property
    def score(self) -> tuple[int, int]:
        """How well the bytes fit: by their fields, then by the devices' names."""
        return self.good - 10 * self.bad, -self.odd_devices

    def fits(self, *, exact: bool) -> bool:
        """Whether hardly anything does not fit; ``exact``: nothing at all, and nothing is cut."""
        if exact:
            return not self.bad and not self.is_cut
        return self.bad <= max(1, _FEW_BAD * self.good)

    def message(self, shape: MessageShape, at: int, end: int, depth: int) -> None:
        data = self._data
        fields = shape.fields_by_number
        while at < end and self.good + self.bad < self._most_fields and self.bad <= self._most_bad:
            tag, at = varint(data, at, end)
            if at < 0:
                self.is_cut = True
                return
            number, wire = tag >> 3, tag & 7
            start = at
            if wire == _VARINT:
                _, at = varint(data, at, end)
            elif wire in _FIXED_BYTES:
                at += _FIXED_BYTES[wire]
            elif wire == _LENGTH:
                length, start = varint(data, at, end)
                at = start + length
            else:
                at = -1
            if at < 0:
                self.bad += 1
                return
            if at > end and end < len(data):
                self.bad += 1
                return
            self.is_cut |= at > end
            field = fields.get(number)
            if field is None or not self._fits(field, wire, start, at):
                self.bad += 1
                continue
            if at > end and field.message_type is None:
                # Any bytes may be the begin of a text that is cut: that says nothing.
                return
            self.good += 1
            if depth == 0:
                self.fields.add(field.name)
            if field.name == "device" and field.type == _STRING:
                self.odd_devices += at > start and b":" not in data[start:at]
            if field.message_type is not None and depth < _MOST_DEPTH:
                self.message(field.message_type, start, min(at, len(data)), depth + 1)

    def _fits(self, field: FieldShape, wire: int, start: int, end: int) -> bool:
        if field.type in _LENGTH_TYPES:
            if wire != _LENGTH:
                return False
            if field.type != _STRING or end > len(self._data):
                return True
            try:
                self._data[start:end].decode()
            except UnicodeDecodeError:
                return False
            return True
        if wire == _WIRE_TYPES.get(field.type, _VARINT):
            return True
        # Repeated numbers may be packed.
        return wire == _LENGTH and field.is_repeated


_STRING = 9
_LENGTH_TYPES = {_STRING, 11, 12}
"""Types of fields (google/protobuf/descriptor.proto): texts, messages and bytes."""
_WIRE_TYPES = {1: _FIXED64, 6: _FIXED64, 16: _FIXED64, 2: _FIXED32, 7: _FIXED32, 15: _FIXED32}
"""By type of the field; those of other numbers are varints."""
