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


_PROMPT, _DONE = "ready> ", "line is written"
_CLEAR, _SHOW = "\x15", "\x18l"
_RC = {
    "bash": (
        ".bashrc",
        r"""PS1='rea''dy> '
bind 'set enable-bracketed-paste off'
show() { printf '%s' "$READLINE_LINE" > line; echo line is written; }
bind -x '"\C-xl": show'
eval "$(peakline --completion bash)"
""",
    ),
    "zsh": (
        ".zshrc",
        r"""PS1='ready> '
autoload -Uz compinit && compinit -D -u
show() { printf '%s' "$BUFFER" > line; echo line is written }
zle -N show && bindkey '^Xl' show
eval "$(peakline --completion zsh)"
""",
    ),
    "fish": (
        ".config/fish/config.fish",
        r"""function fish_prompt; echo -n 'ready> '; end
function show; commandline | string collect --no-trim-newlines > line; echo line is written; end
bind \cxl show
peakline --completion fish | source
""",
    ),
}
_WORDS = {"bash": ["--noprofile", "--rcfile", ".bashrc", "-i"], "zsh": ["-i"], "fish": ["-i"]}


def lines_after_tab(shell, program, typed, environment, home):
    """The line of a shell after each text of ``typed`` and a Tab, in the directory ``home``.

    The shell completes `peakline` as its own start file says; another key of that file writes the
    line into a file.
    """
    name, text = _RC[shell]
    rc = home / name
    rc.parent.mkdir(parents=True, exist_ok=True)
    rc.write_text(text)
    ours, its = open_terminal(200)
    run = subprocess.Popen(
        [program, *_WORDS[shell]],
        stdin=its, stdout=its, stderr=its, cwd=home, start_new_session=True,
        env=environment | {"HOME": str(home), "ZDOTDIR": str(home), "TERM": "xterm",
                           "XDG_CONFIG_HOME": str(home / ".config")},
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509  (one thread)
    )  # fmt: skip
    os.close(its)
    result = []
    try:
        _read_until(ours, _PROMPT)
        for one in typed:
            os.write(ours, f"{_CLEAR}{one}\t{_SHOW}".encode())
            _read_until(ours, _DONE)
            result.append((home / "line").read_text().removesuffix("\n"))
    finally:
        run.kill()
        os.close(ours)
        run.wait()
    return result


def _read_until(end, mark):
    got = b""
    while mark.encode() not in got:
        piece = read_some(end)
        assert piece, got.decode(errors="replace")
        got += piece
