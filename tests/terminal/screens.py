"""A screen that is a terminal of some width, in this process."""

import io

from peakline.render.terminal.layout import painted, show


class Screen(io.TextIOWrapper):
    """Takes what is printed, as a terminal or as a pipe."""

    def __init__(self, *, terminal=True):
        super().__init__(io.BytesIO(), encoding="utf-8", newline="\n", write_through=True)
        self.is_terminal = terminal

    def isatty(self):
        return self.is_terminal

    def getvalue(self):
        return self.buffer.getvalue().decode()


def lines_of(part, width):
    """The lines of a part, without colors."""
    return [painted(line, colors=False) for line in part.lines(width)]


def shown(parts, *, terminal=True):
    """What `show` prints."""
    screen = Screen(terminal=terminal)
    show(parts, screen)
    return screen.getvalue()
