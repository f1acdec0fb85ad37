"""A terminal of the operating system, and a program on it."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios


def open_terminal(columns):
    """The two ends of a terminal of so many columns: ours, and that of a program."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    return ours, its


def read_some(end):
    """What the program wrote next; nothing when it has closed its end."""
    try:
        return os.read(end, 1 << 16)
    except OSError:
        return b""


def on_a_terminal(words, environment=None, stdin=None, stdout=None, columns=80):
    """Run Python with these words; the exit code, and what the terminal gets of its standard error,
    and of its standard output where that is not elsewhere.
    """
    ours, its = open_terminal(columns)
    inherited = {name: text for name, text in os.environ.items() if name != "COLUMNS"}
    run = subprocess.Popen(
        [sys.executable, *map(str, words)],
        stdin=stdin,
        stdout=its if stdout is None else stdout,
        stderr=its,
        env=inherited | {"TERM": "xterm"} | (environment or {}),
    )
    os.close(its)
    got = b""
    try:
        while piece := read_some(ours):
            got += piece
    finally:
        os.close(ours)
    return run.wait(), got.decode().replace("\r\n", "\n")
