"""The routes of the page: the document at ``/``, and the files that it is made of.

They hold no data and are answered without a token. What a browser may do with them is the policy of
`peakline.web.content_policy`.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from peakline.errors import NotFoundError
from peakline.service.http.answers import accepts_gzip, names_tag
from peakline.service.http.describe import answer, described
from peakline.service.http.requests import context_of
from peakline.service.http.routing import Routes
from peakline.toolbox.parameters import Parameters, parameter
from peakline.web import Edition, Editions, content_policy, page_files, without_edition

routes = Routes("page")

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Content-Security-Policy": content_policy(),
    "Vary": "Accept-Encoding",
}
_CHANGES, _STAYS = "no-cache", "public, max-age=31536000, immutable"
"""What an address holds that names no edition of the page, and one that does."""
editions = Editions(page_files())
_TAG = {"ETag": "names the content; sent back as If-None-Match it is answered with 304"}
_UNCHANGED = {"description": "the caller has this content already"}
_OPEN: dict[str, object] = {"security": []}


class AssetPath(Parameters):
    """The path of a file of the page."""

    name: str = parameter(description="its path, such as `js/main.js`")


@routes.get(
    "/",
    summary="The page",
    responses=described(
        _200=answer("HTML", {"text/html": {"schema": {"type": "string"}}}, headers=_TAG),
        _304=_UNCHANGED,
    ),
    extra=_OPEN,
)
async def page(request: Request) -> Response:
    """Answer with the document that loads everything else."""
    return await _answer(request, "/")


@routes.get(
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
    extra=_OPEN,
)
async def asset(request: Request, path: AssetPath) -> Response:
    """Answer with a stylesheet, a script, a picture."""
    return await _answer(request, f"/assets/{path.name}")


async def _answer(request: Request, path: str) -> Response:
    """The file of that very name; nothing of a request ever becomes a path on the disk.

    One of the last edition is answered at once: the page begins with dozens of them.
    """
    plain_path, name = without_edition(path)
    edition = editions.known(name) if name else None
    if edition is not None:
        return _response(request, edition, plain_path, _STAYS)
    try:
        edition = await context_of(request).work.read(editions.current)
    except OSError:
        raise NotFoundError("the page has lost one of its files") from None
    # Of another edition, before this server was started anew: what is the file now.
    return _response(request, edition, plain_path, _STAYS if edition.name == name else _CHANGES)


def _response(request: Request, edition: Edition, path: str, caching: str) -> Response:
    result = edition.files.get(path)
    if result is None:
        raise NotFoundError(f"the page has no file {path[:100]!r}")
    media_type, content = result
    # The tag is weak, as both encodings share it.
    headers = {**_HEADERS, "Cache-Control": caching, "ETag": f'W/"{content.tag}"'}
    if names_tag(request.headers.get("if-none-match", ""), f'"{content.tag}"'):
        return Response(status_code=304, headers=headers)
    headers["Content-Type"] = media_type
    if accepts_gzip(request.headers.get("accept-encoding", "")):
        packed = content.packed
        if len(packed) < len(content.plain):
            return Response(packed, headers={**headers, "Content-Encoding": "gzip"})
    return Response(content.plain, headers=headers)
