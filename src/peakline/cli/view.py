"""``peakline view``: the page, over one file, session or log directory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

import peakline
from peakline.cli.options import path_argument
from peakline.cli.verb import Verb
from peakline.render.terminal.output import say
from peakline.service.access_log import OFF
from peakline.service.foreground import EndedBySignal, leave, serve_until_stopped
from peakline.service.settings import Settings, default_unpacked_bytes
from peakline.service.view_place import find_place
from peakline.text import parse_size
from peakline.web import session_address

if TYPE_CHECKING:
    from peakline.service.run import Server
    from peakline.service.view_place import Place

_GRACE_S = 1.0


@click.command(
    cls=Verb,
    stays=True,
    examples=r"""
    # memory, timeline, steps and ops of a log directory
    peakline view logs
    # on a machine without a browser, at a fixed port
    peakline view run.xplane.pb --no-browser --port 8000
""",
)
@path_argument
@click.option(
    "--session",
    metavar="ID",
    help="The session of a log directory to open at. Default: the only one, or the list.",
)
@click.option("--host", metavar="HOST", help="The host to open at, of several.")
@click.option(
    "--port",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    default=0,
    help="The page's port; 0: any free one.",
)
@click.option(
    "--max-unpacked",
    metavar="SIZE",
    type=parse_size,
    help="What a gzip file may expand to. Default: 4 GiB, at most half of the memory.",
)
@click.option("--no-browser", is_flag=True, help="Say where the page is, and open nothing.")
@click.pass_context
def view(
    context: click.Context,
    path: str,
    session: str | None,
    host: str | None,
    port: int,
    max_unpacked: int | None,
    *,
    no_browser: bool,
) -> None:
    """Open a profile in the browser, until Ctrl-C.

    It is served on this machine alone.
    """
    import shutil
    import tempfile
    import uuid

    # Its name is known before it is made: a signal can come at any time.
    folder = Path(tempfile.gettempdir(), f"peakline-view-{uuid.uuid4().hex}")
    remove = partial(shutil.rmtree, folder, ignore_errors=True)
    with EndedBySignal() as signals:
        try:
            folder.mkdir(mode=0o700)
            place = find_place(path, session, host, str(folder))
            settings = Settings(
                roots=(place.logdir,),
                linked=place.linked,
                source=None if path == "-" else path,
                grpc_port=None,
                http_port=port,
                max_unpacked_bytes=(
                    default_unpacked_bytes() if max_unpacked is None else max_unpacked
                ),
                grace_s=_GRACE_S,
                read_only=True,
                access_log=OFF,
                debug=bool(context.obj),
            )

            def announce(server: Server) -> Iterator[str]:
                url = f"{server.url}/{_address(server, place)}"
                yield f"showing {path} at {url}; Ctrl-C ends it"
                if not no_browser:
                    _open_browser(url)

            ended = serve_until_stopped(settings, announce, lives_on=False, at_once=remove)
        finally:
            signals.armed = False
            remove()
    leave(ended=ended)


def _address(server: Server, place: Place) -> str:
    """The fragment to open at: the view that has most to show."""
    if place.session is None:
        return ""
    session = server.access.run("", place.session, nested=True)
    tools = server.engine.tools(session)
    if not tools and place.source is not None:
        peakline.open(place.source).close()  # says what is wrong with it, if it is
    views = {"timeline": "timeline", "memory_profile": "memory"}
    if "job" in tools and not place.host and len(session.hosts()) > 1:
        views = {"job": "job"}
    shown = next((view for tool, view in views.items() if tool in tools), "summary")
    return session_address(place.session, shown, host=place.host or "")


def _open_browser(url: str) -> None:
    """Open the reader's browser beside this process.

    One in the terminal, such as lynx, has no use for the page and would take the keyboard: only
    one that the environment names as the reader's choice is used.
    """
    import threading
    import webbrowser

    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        browser = None
    if browser is None or (
        type(browser) is webbrowser.GenericBrowser and "BROWSER" not in os.environ
    ):
        say("no browser is found here; open that address in one")
        return
    # Some come back when they are closed.
    threading.Thread(target=browser.open, args=(url,), name="browser", daemon=True).start()
