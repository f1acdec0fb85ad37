"""The commands of the pages of ``docs/``: each is run, and what it prints stands below it.

A command stands in a fenced ``sh`` block. The names of files in it are those of
``docs/samples.toml``, which says what sample of ``tests/data`` each is; all of them lie in the
directory where a page's commands run, one after the other. A ``text`` block that follows is what
the last block printed on a terminal of 100 columns; where it ends with a line ``…``, only its
beginning is shown, where it begins with one, what comes before its next line is not. Where a page
has ``localhost:8080``, a server of the sessions in ``served`` answers there. An image ``NAME.svg``
that follows instead is drawn of what is printed. A comment before a block says what is not as
usual::

    <!-- exit 1 -->                            the last command of the block fails
    <!-- run by tests/cli/test_serve.py -->    that test runs it, nobody else does
    <!-- not run: it needs a GPU -->           nobody does
"""

from __future__ import annotations

import gzip
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_DATA = _ROOT / "tests" / "data"
_COLUMNS = 100
_COLORS = ("NO_COLOR", "FORCE_COLOR")
_SECONDS = 300
_CUT = "…"
_SERVED = "localhost:8080"
_INSTALLERS = ("pip", "pip3", "pipx", "uv", "uvx", "apt", "apt-get", "docker")
_BLOCK = re.compile(
    r"(?:<!-- (?P<note>exit \d+|run by \S+|not run: .+) -->\n)?"
    r"```sh\n(?P<script>.*?)```\n"
    r"(?:\n```text\n(?P<printed>.*?)```\n|\n!\[[^]\n]*\]\((?P<picture>[^)\n]+\.svg)\))?",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Block:
    """One ``sh`` block: its commands, how they end, and what is said to be printed."""

    script: str
    exit_code: int
    printed: str | None
    """The text of the block below; None without one."""
    picture: str | None
    """The image below it that shows that instead, from the page's folder."""
    elsewhere: str
    """Why it is not run here: ``run by TEST``, ``not run: WHY``, or empty."""


class Failed(Exception):
    """A command of a page did not end as the page says."""


def blocks(page: str) -> list[Block]:
    """The blocks of a page in order."""
    return [_block(match) for match in _BLOCK.finditer(page)]


def _block(match: re.Match[str]) -> Block:
    note = match["note"] or ""
    fails = note.startswith("exit ")
    return Block(
        match["script"],
        int(note.removeprefix("exit ")) if fails else 0,
        match["printed"],
        match["picture"],
        "" if fails else note,
    )


def page_of(page: str) -> Iterator[str]:
    """The lines of the page with what its commands print now; raises Failed."""
    if all(block.elsewhere for block in blocks(page)):
        yield from page.rstrip("\n").split("\n")
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        lay_out(folder / "job")

        def fresh(match: re.Match[str]) -> str:
            block = _block(match)
            if block.elsewhere:
                return match[0]
            printed = run(block, folder / "job", path)
            if block.printed is None:
                return match[0]
            text = _like(block.printed, printed)
            return match[0].replace(f"```text\n{block.printed}```", f"```text\n{text}```")

        path = programs(folder / "bin")
        with _server(page, folder / "job", path):
            text = _BLOCK.sub(fresh, page)
    yield from text.rstrip("\n").split("\n")


def picture_of(block: Block) -> str:
    """What a block prints, in an empty place and in colors, as an SVG; raises Failed."""
    from terminal_pictures import drawn

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        lay_out(folder / "job")
        printed = run(block, folder / "job", programs(folder / "bin"), colors=True)
    return drawn(printed, block.script.strip(), _COLUMNS)


@contextmanager
def _server(page: str, folder: Path, path: Path) -> Iterator[None]:
    """A server at a free port, with a ``curl`` before the real one that finds it; or none."""
    if not any(_SERVED in block.script for block in blocks(page) if not block.elsewhere):
        yield
        return
    command = [sys.executable, "-m", "peakline", "serve", folder / "served", "--http-port", "0"]
    with subprocess.Popen(
        [*command, "--grpc-port", "0"], stderr=subprocess.PIPE, text=True, cwd=folder
    ) as process:
        try:
            line = next((line for line in process.stderr or () if " http://" in line), "")
            address = re.search(r" http://(\S+:\d+)", line)
            if address is None:
                raise Failed(line)
            words = f'--silent --show-error --fail "${{@//{_SERVED}/{address[1]}}}"'
            (path / "curl").write_text(f"#!/bin/bash\nexec {shutil.which('curl')} {words}\n")
            (path / "curl").chmod(0o755)
            yield
        finally:
            process.terminate()


def _like(old: str, new: str) -> str:
    """``new``, as many lines of it as the page shows; raises Failed."""
    shown, lines = old.rstrip("\n").split("\n"), new.rstrip("\n").split("\n")
    head, tail = shown[:1] == [_CUT], shown[-1:] == [_CUT]
    if head:
        if shown[1] not in lines:
            raise Failed(f"no line {shown[1]!r} in:\n{new}")
        lines = lines[lines.index(shown[1]) :]
    if tail:
        lines = lines[: len(shown) - 1 - head]
    return "\n".join([*[_CUT] * head, *lines, *[_CUT] * tail, ""])


def lay_out(folder: Path) -> None:
    """Put every sample of ``docs/samples.toml`` into ``folder`` under its name there."""
    names = tomllib.loads((_ROOT / "docs/samples.toml").read_text(encoding="utf-8"))
    for name, sample in names["samples"].items():
        source, target = _DATA / sample, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            target.write_bytes(_content(source, source.suffix == ".gz" != target.suffix))


@cache
def _content(source: Path, is_packed: bool) -> bytes:
    content = source.read_bytes()
    return gzip.decompress(content) if is_packed else content


def programs(folder: Path) -> Path:
    """A directory with ``peakline`` and ``python``, those that run this, and no way to install.

    What an installer does depends on the machine's indexes, and lasts: its block needs a comment.
    """
    from forked_peakline import words

    folder.mkdir(exist_ok=True)
    scripts = {
        "peakline": f'exec {words()} "$@"',
        "python": f'exec "{sys.executable}" "$@"',
        **{name: f"echo {name} is not run by a page >&2; exit 1" for name in _INSTALLERS},
    }
    for name, script in scripts.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    return folder


def run(block: Block, folder: Path, path: Path, *, colors: bool = False) -> str:
    """What the commands of a block print on a terminal, without trailing spaces.

    ``folder`` is where they run, ``path`` is searched for programs first, ``colors`` are ANSI's.
    Raises Failed.
    """
    environment = {
        **{k: v for k, v in os.environ.items() if k not in {"LINES", *_COLORS}},
        "PATH": f"{path}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": str(_COLUMNS),
        "TERM": "dumb",  # without lines that change
        _COLORS[colors]: "1",
    }
    ours, theirs = pty.openpty()
    read: list[bytes] = []

    def reader() -> None:
        try:
            while some := os.read(ours, 1 << 16):
                read.append(some)
        except OSError:  # what Linux raises when nobody has the other side any more
            pass

    thread = threading.Thread(target=reader)
    thread.start()
    try:
        code = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block.script],  # noqa: S607
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            timeout=_SECONDS,
            check=False,
        ).returncode
    finally:
        os.close(theirs)
        thread.join()
        os.close(ours)
    printed = b"".join(read).decode().replace("\r\n", "\n")
    if code != block.exit_code:
        raise Failed(f"exit {code}, not {block.exit_code}:\n{block.script}{printed}")
    return "".join(f"{line.rstrip()}\n" for line in printed.rstrip("\n").split("\n"))
