"""Text that is read as Markdown and HTML, and tables in it.

Names come from files that anyone may have written: they are shown as code, where neither Markdown
nor a mention of a person is obeyed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from peakline.render.document.model import Row, Table, capital, text_of

_LONGEST = 200


def table_lines(table: Table, most: int | None = None) -> list[str]:
    """The first rows of a table of a document; its names are code."""

    def cells(row: Row) -> list[str]:
        texts = [text_of(value, one.unit) for value, one in zip(row, table.columns, strict=True)]
        return [
            code(text) if text and one.unit in {"name", "form", "remark"} else text
            for text, one in zip(texts, table.columns, strict=True)
        ]

    heads = [capital(one.label) for one in table.columns]
    right = [one.is_number for one in table.columns]
    return markdown_table(heads, map(cells, table.rows[:most]), right)


def folded(title: str, lines: Iterable[str]) -> list[str]:
    """Lines behind a title, closed until clicked."""
    head = ["", "<details>", f"<summary>{html(title)}</summary>", ""]
    return [*head, *lines, "", "</details>"]


def markdown_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[bool] = ()
) -> list[str]:
    """A table; the columns of which ``right`` is true are aligned right."""
    marks = ["---:" if is_right else "---" for is_right in right] or ["---"] * len(columns)
    lines = [columns, marks, *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def code(text: str) -> str:
    """``text`` as code within a line or a cell of a table, cut at 200 characters.

    What a code span cannot hold there (pipes, backticks) is written in HTML.
    """
    line = "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )
    if len(line) > _LONGEST:
        line = f"{line[: _LONGEST - 1]}…"
    if not line.strip() or "`" in line or "|" in line:
        return f"<code>{html(line)}</code>"
    return f"`{line}`"


def html(text: str) -> str:
    """``text`` where both HTML and Markdown are read.

    All but letters, digits and blanks are character references, which neither obeys.
    """
    return "".join(
        character if character.isalnum() or character in " /-" else f"&#{ord(character)};"
        for character in text
        if character.isprintable()
    )
