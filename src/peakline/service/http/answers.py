"""Answers as HTTP has them: media types, compression, validators, warnings in headers."""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from peakline.deadline import checked
from peakline.engine import Answer
from peakline.engine.answers import Forms

MEDIA_TYPES: Mapping[str, str] = {
    "json": "application/json",
    "proto": "application/x-protobuf",
    "text": "text/plain; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "dot": "text/vnd.graphviz; charset=utf-8",
    "markdown": "text/markdown; charset=utf-8",
    "pprof": "application/octet-stream",
    "parquet": "application/vnd.apache.parquet",
}
"""By the format of a tool or of a query's answer."""

_UNKNOWN = "application/octet-stream"
_PACKED = frozenset(("parquet", "pprof"))
_WORTH_PACKING = 1024
_COLUMNS = "bin"
"""Many requests a second while somebody zooms: a tile of 2 MB took three times as long."""
_NEAR = frozenset(("127.0.0.1", "::1"))
_FAST = 1
_PIECE = 4 << 20
_GZIP_WINDOW = 31  # zlib's word for: the largest window, in a gzip file
_LONGEST_HEADER = 4000
_TAG = re.compile(r'(?:W/)?("[^"]*")')
_QVALUE = re.compile(r"q=(0(?:\.0{0,3})?|0\.\d{0,3}|1(?:\.0{0,3})?)")


def json_response(
    request: Request, document: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """``document`` as JSON in ASCII, compressed where that pays."""
    content = json.dumps(document, allow_nan=False).encode()
    return data_response(request, content, "json", headers, status=status, cached=False)


def data_response(
    request: Request,
    content: bytes,
    kind: str,
    headers: Mapping[str, str] | None = None,
    *,
    status: int = 200,
    cached: bool = True,
    always_gzip: bool = False,
    forms: Forms | None = None,
) -> Response:
    """``content`` of the format ``kind``; call it where work is done, as it compresses.

    With ``cached`` it has an ETag made of the content, and a caller who has that content
    already gets 304. The tag is weak, as both encodings share it. With ``always_gzip`` the caller
    does not decide. ``forms`` are those of ``content``.
    """
    forms = forms or Forms()
    named = {"Content-Type": MEDIA_TYPES.get(kind, _UNKNOWN), **(headers or {})}
    if kind not in _PACKED and not always_gzip:
        named["Vary"] = "Accept-Encoding"
    if cached:
        digest = forms.get("digest", lambda: hashlib.blake2b(content, digest_size=16).digest())
        tag = f'"{digest.hex()}"'
        named["ETag"] = f"W/{tag}"
        named["Cache-Control"] = "private, no-cache"
        if names_tag(request.headers.get("if-none-match", ""), tag):
            del named["Content-Type"]
            return Response(status_code=304, headers=named)
    if always_gzip or (
        kind not in _PACKED
        and len(content) >= _WORTH_PACKING
        # On this machine packing takes longer than sending.
        and not (kind == _COLUMNS and request.client and request.client.host in _NEAR)
        and accepts_gzip(request.headers.get("accept-encoding", ""))
    ):
        named["Content-Encoding"] = "gzip"
        return Response(forms.get("gzip", lambda: gzipped(content)), status, named)
    return Response(content, status, named)


def gzipped(content: bytes) -> bytes:
    """``content`` as a gzip file, the same every time. Raises as `check_deadline`."""
    packer = zlib.compressobj(_FAST, zlib.DEFLATED, _GZIP_WINDOW)
    view = memoryview(content)
    pieces = [
        packer.compress(view[start : start + _PIECE])
        for start in checked(range(0, len(content), _PIECE), 1)
    ]
    return b"".join((*pieces, packer.flush()))


def accepts_gzip(header: str) -> bool:
    """Whether an ``Accept-Encoding`` asks for gzip (RFC 9110, section 12.5.3)."""
    wanted: dict[str, float] = {}
    for item in header.lower().split(","):
        coding, _, weight = (part.strip() for part in item.partition(";"))
        match = _QVALUE.fullmatch(weight.replace(" ", ""))
        if weight and match is None:
            continue
        wanted[coding] = 1.0 if match is None else float(match[1])
    for coding in ("gzip", "x-gzip", "*"):
        if coding in wanted:
            return wanted[coding] > 0
    return False


def answer_response(
    request: Request,
    answer: Answer,
    public_text: Callable[[str], str],
    *,
    always_gzip: bool = False,
) -> Response:
    """``answer`` as `data_response`, with ``Peakline-Warnings`` and ``Peakline-Notes``: JSON
    arrays in ASCII, absent when empty.

    ``public_text`` makes a line of the server one that callers may see.
    """
    headers = {}
    if answer.warnings:
        headers["Peakline-Warnings"] = _short_array(
            {"kind": warning.kind, "count": warning.count, "detail": public_text(warning.detail)}
            for warning in answer.warnings
        )
    headers |= notes_header(map(public_text, answer.notes))
    return data_response(
        request, answer.content, answer.format, headers, always_gzip=always_gzip, forms=answer.forms
    )


def notes_header(notes: Iterable[str]) -> dict[str, str]:
    """``Peakline-Notes`` alone."""
    lines = list(notes)
    return {"Peakline-Notes": _short_array(lines)} if lines else {}


def _short_array(items: Iterable[Any]) -> str:
    """A JSON array that fits into a header; what does not fit is a number."""
    texts, length, left_out = [], 0, 0
    for item in items:
        text = json.dumps(item)
        if left_out or length + len(text) > _LONGEST_HEADER:
            left_out += 1
            continue
        texts.append(text)
        length += len(text) + 2
    if left_out:
        texts.append(json.dumps(f"{left_out} more"))
    return f"[{', '.join(texts)}]"


def names_tag(header: str, tag: str) -> bool:
    """Whether ``If-None-Match`` names ``tag``."""
    return header.strip() == "*" or tag in _TAG.findall(header)
