"""A server in the foreground: from its start until a signal says to end."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from peakline.text import one_line

if TYPE_CHECKING:
    from peakline.service.run import Server
    from peakline.service.settings import Settings

_FAILED_S = 5.0
"""How long threads may take to end before an error is told: an orderly exit needs their end."""


def serve_until_stopped(
    settings: Settings,
    announce: Callable[[Server], Iterable[str]],
    *,
    lives_on: bool = True,
    at_once: Callable[[], object] | None = None,
) -> bool:
    """Serve until a signal says to end; ``announce`` says in lines that the server runs.

    SIGHUP, which is what a closed terminal sends, makes a server that ``lives_on`` read its files
    again, and ends any other. ``at_once`` cleans up when a second signal ends the process at once.
    Returns whether every thread has ended: see `leave`.
    """
    from prometheus_client import disable_created_metrics

    from peakline.service.run import Server
    from peakline.service.signals import RELOAD, Signals

    # A second series for each one would tell nothing but its birthday.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    with Signals(at_once) as signals:
        server = Server(settings)
        server.log.listen()
        for line in server.cautions():
            say(f"warning: {line}")
        server.start()
        try:
            for line in announce(server):
                say(line)
        except BaseException:
            server.stop(_FAILED_S)
            raise
        while signals.wait() == RELOAD and lives_on:
            server.reload()
        say(f"ending; running requests have {settings.grace_s:g} s")
        return server.stop()


def leave(*, ended: bool) -> None:
    """End the process at once where a thread has not ended.

    It is still inside the compiler, which an orderly exit would pull away under it.
    """
    if not ended:
        sys.stderr.flush()
        os._exit(0)


def say(text: str) -> None:
    """One line on standard error."""
    print(f"peakline: {one_line(text)}", file=sys.stderr, flush=True)
