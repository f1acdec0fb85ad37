"""A line for every host of a capture, on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from peakline.text import one_line

if TYPE_CHECKING:
    from rich.progress import Task, TaskID

    from peakline.capture import CaptureRequest
    from peakline.capture import Progress as Report

_WORDS = {"saved_by_host": "saved by the host", "empty": "empty"}
_ENDS = frozenset({"stored", "saved_by_host", "empty", "failed"})
_NOT_BEGUN = frozenset({"waiting", "connecting", "retrying"})
_WIDTH = 20


class _PlainColumn(TextColumn):
    """A text of a task that is never taken for markup.

    Where the terminal is too narrow, columns that ``may_shrink`` are cut, before all others.
    """

    def __init__(self, field: str, *, may_shrink: bool = False) -> None:
        super().__init__(field, table_column=Column(no_wrap=not may_shrink, overflow="ellipsis"))

    def render(self, task: Task) -> Text:
        text = one_line(str(task.fields[self.text_format]))
        return Text(text, no_wrap=True, overflow="ellipsis")


@contextmanager
def show_progress(request: CaptureRequest) -> Iterator[Report]:
    """Draw the hosts' states on standard error until the block ends; gives what to report to."""
    console = Console(file=sys.stderr, markup=False, emoji=False, highlight=False)
    columns = (
        _PlainColumn("host"),
        BarColumn(bar_width=_WIDTH),
        TimeElapsedColumn(),
        _PlainColumn("state", may_shrink=True),
    )
    length = (request.delay_ms + request.duration_ms) / 1000
    with _Hosts(*columns, console=console, refresh_per_second=8) as bars:
        tasks: dict[str, TaskID] = {
            target.host: bars.add_task("", total=length, host=target.host, state="", begun=None)
            for target in request.targets
        }

        def report(host: str, state: str, detail: str) -> None:
            words = _WORDS.get(state, state)
            task = tasks[host]
            bars.update(task, state=f"{words}: {detail}" if detail else words)
            if state in _NOT_BEGUN:
                bars.update(task, begun=None, completed=0)
            elif state == "recording":
                bars.update(task, begun=time.monotonic())
            else:
                bars.update(task, begun=None, completed=length)
            if state in _ENDS:
                bars.stop_task(task)

        yield report


class _Hosts(Progress):
    """Bars that fill by the clock while a host records: a profiler reports nothing meanwhile."""

    def get_renderables(self) -> Iterator[object]:  # type: ignore[override]
        now = time.monotonic()
        for task in self.tasks:
            if task.fields["begun"] is not None:
                task.completed = min(now - task.fields["begun"], task.total or 0.0)
        yield from super().get_renderables()
