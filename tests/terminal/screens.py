"""A screen that is a terminal of some width, in this process."""

import io

from peakline.render.terminal.layout import painted, show


class Screen(io.StringIO):
    """Takes what is printed, as a terminal or as a pipe."""

    def __init__(self, *, terminal=True):
        super().__init__()
        self.is_terminal = terminal

    def isatty(self):
        return self.is_terminal


def lines_of(part, width):
    """The lines of a part, without colors."""
    return [painted(line, colors=False) for line in part.lines(width)]


def shown(parts, *, terminal=True):
    """What `show` prints."""
    screen = Screen(terminal=terminal)
    show(parts, screen)
    return screen.getvalue()
