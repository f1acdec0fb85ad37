"""The routes of the page: the document at ``/``, and the files that it is made of.

They hold no data and are answered without a token. What a browser may do with them is the policy of
`peakline.web.content_policy`.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from peakline.errors import NotFoundError
from peakline.service.http.answers import accepts_gzip, names_tag
from peakline.service.http.describe import answer, described
from peakline.service.http.requests import context_of
from peakline.web import content_policy, needed_modules, page_files

router = APIRouter(tags=["page"])

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
    "Vary": "Accept-Encoding",
}
_files = cache(page_files)
_TAG = {"ETag": "names the content; sent back as If-None-Match it is answered with 304"}
_UNCHANGED = {"description": "the caller has this content already"}
_OPEN: dict[str, object] = {"security": []}


@router.get(
    "/",
    summary="The page",
    responses=described(
        _200=answer("HTML", {"text/html": {"schema": {"type": "string"}}}, headers=_TAG),
        _304=_UNCHANGED,
    ),
    openapi_extra=_OPEN,
)
async def page(request: Request) -> Response:
    """Answer with the document that loads everything else."""
    return await _answer(request, "/")


@router.get(
    "/assets/{name:path}",
    summary="A file of the page",
    responses=described(
        404,
        _200=answer(
            "the file",
            {
                kind: {"schema": {"type": "string"}}
                for kind in ("text/css", "text/javascript", "image/svg+xml")
            },
            headers=_TAG,
        ),
        _304=_UNCHANGED,
    ),
    openapi_extra=_OPEN,
)
async def asset(
    request: Request,
    name: Annotated[str, Path(description="its path, such as `js/main.js`")],
) -> Response:
    """Answer with a stylesheet, a script, a picture."""
    return await _answer(request, f"/assets/{name}")


async def _answer(request: Request, path: str) -> Response:
    """The file of that very name; nothing of a request ever becomes a path on the disk."""
    found = _files().get(path)
    if found is None:
        raise NotFoundError(f"the page has no file {path[:100]!r}")
    zipped = accepts_gzip(request.headers.get("accept-encoding", ""))

    def read() -> tuple[str, bytes, bytes | None, list[str]]:
        content = found.content()
        modules = needed_modules(_files()) if path == "/" else []
        return content.tag, content.plain, content.packed if zipped else None, modules

    try:
        tag, plain, packed, modules = await context_of(request).work.read(read)
    except OSError:
        raise NotFoundError(f"the page has lost its file {path!r}") from None
    # The tag is weak, as both encodings share it.
    headers = {**_HEADERS, "Content-Security-Policy": content_policy(), "ETag": f'W/"{tag}"'}
    if modules:
        headers["Link"] = ", ".join(f"<{one[1:]}>; rel=modulepreload" for one in modules)
    if names_tag(request.headers.get("if-none-match", ""), f'"{tag}"'):
        return Response(status_code=304, headers=headers)
    headers["Content-Type"] = found.media_type
    if packed is not None and len(packed) < len(plain):
        return Response(packed, headers={**headers, "Content-Encoding": "gzip"})
    return Response(plain, headers=headers)
