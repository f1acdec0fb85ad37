"""Pictures of the terminal for the pages of ``docs/``: what a command prints, with its colors.

An image ``NAME.svg`` below a ``sh`` block of a page is drawn of what the block printed
(``page_commands``), dark as a terminal, so that it is legible on a light and on a dark page.
``generate_docs.py`` writes it. It needs no font and no network.
"""

from __future__ import annotations

import io

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

_BLACK, _RED, _GREEN, _YELLOW = (20, 25, 33), (255, 123, 114), (96, 208, 120), (232, 184, 78)
_BLUE, _WHITE = (121, 184, 255), (222, 228, 236)
_NORMAL = [_BLACK, _RED, _GREEN, _YELLOW, _BLUE, _BLUE, _BLUE, _WHITE]
_THEME = TerminalTheme(_BLACK, _WHITE, _NORMAL, _NORMAL)
_FORMAT = """\
<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" \
xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font: {char_height}px/{line_height}px "DejaVu Sans Mono", Menlo, Consolas, \
monospace; }}
.{unique_id}-title {{ font: bold 18px sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def drawn(printed: str, command: str, columns: int) -> str:
    """What was ``printed`` by ``command`` on a terminal of so many ``columns``, as an SVG."""
    console = Console(
        width=columns, record=True, file=io.StringIO(), force_terminal=True, legacy_windows=False,
        color_system="standard",
    )  # fmt: skip
    console.print(Text.from_ansi(printed), soft_wrap=False)
    svg = console.export_svg(title=f"$ {command}", theme=_THEME, code_format=_FORMAT)
    return "\n".join(line.strip() for line in svg.split("\n") if line.strip())
