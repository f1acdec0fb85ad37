"""Texts whose lines a console, a mail or a page has broken, put together again.

A console breaks a line at its last column, inside words and numbers: all pieces but the last are
as long. Mail and Markdown break at blanks: the next word would not have fitted. A prefix that a
container or a launcher puts before every line can stand before the pieces too. Which of the
readings is right, their content says: the one that more can be read from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from peakline.formats.oom_report.report import first_stamp

_NARROWEST, _WIDEST = 30, 400
_WIDEST_PAGE = 140
_BLANKS = 10
"""Of so many blanks where a line was broken a page may have left none."""
_OUTER = re.compile(
    r"(?:> ?|&gt; ?|\[(?:rank|default|Rank )\d{1,6}\]: ?"
    r"|\(\w{0,40} ?pid=\d{1,9}[^()\n]{0,60}\) ?"
    r"|\d{4}-\d\d-\d\dT[\d:.]{8,20}(?:Z|[+-]\d\d:\d\d) (?:stdout|stderr) [FP] ?"
    r"|\[?[\w.\-]{1,40}\]? {0,30}\| )+"
)
"""What containers, launchers and quoting put before every line."""
_RECORD = re.compile(
    r"[IWEF]\d{4} |[IWEF] [\w/.\-]+:\d+\]|(?:INFO|WARNING|ERROR|DEBUG)\b|\[?\d\d:\d\d:\d\d"
    r"|Traceback \(|  File \"|During handling|\[ *\d+\.\d{6}\]|=+\s*$|\s*[-*] "
)
_STARTS = re.compile(
    r"\s*(?:[a-z][^\W_]*_\w{1,100}: |(?:Size|Operator|XLA [Ll]abel|Shape|Unpadded size|Limit|InUse"
    r"|MaxInUse|NumAllocs|MaxAllocSize|Stats|name|pciBusID|totalMemory): |\[\[|\[ *\d+\] |\d+\. "
    r"|(?:Chunk|InUse|Free +)at |Bin \(|\d+ Chunks of|Sum Total|Summary of|Next region|Buffer \d"
    r"|BufferAssignment|Peak buffers|(?:parameter|constant|maybe_live_out|total) (?:alloc|frag)\w+:"
    r"|preallocated temp"
    r"|Entry Parameter|Extra memory|Allocation type|={6,}|(?:Total|Program) \w+ (?:usage|req)"
    r"|HBM capacity|Top-of-Memory|Currently allocated|Available after|-{6,}|; attempting|Heap alloc"
    r"|Max free|oom-kill:|Tasks state|(?:memory|swap): usage|oom_reaper:|Caused by|Resource[E ]"
    r"|[\w.]*Error: |Attempting to|RESOURCE_)"
)
"""How lines of the texts that are read here begin: a word at the end of the line before it might
not have fitted, and it was the line's end all the same.
"""
_HINT = re.compile(r"(?i)mem|alloc|oom|chunk|kill")


def without_prefix(line: str) -> str:
    """A line without what containers, launchers and quoting put before it."""
    match = _OUTER.match(line)
    return line[match.end() :] if match else line


def readings(text: str) -> Iterator[tuple[int, int, str]]:
    """The columns at which the lines of ``text`` can have been broken, how many different lines
    end just there (0 where they break at blanks), and the text put together, for each way of
    breaking; nothing where none can.
    """
    lines = text.splitlines()
    lengths = [len(line.expandtabs()) for line in lines]
    if len(lines) < 2 or not _HINT.search(text):
        return
    bare = [without_prefix(line) for line in lines]
    begins = [_begins_record(line) for line in bare]
    widest = max(lengths)
    # A word that is longer than a line stands in one of its own, which says nothing of the column.
    broken = max(
        (n for n, line in zip(lengths, bare, strict=True) if " " in line.strip()), default=0
    )
    ends = len({line for line, n in zip(lines, lengths, strict=True) if n == widest})
    for joint, width, slack, most in (
        (_at_the_column, widest, 0, _WIDEST),
        (_at_blanks, broken, 0, _WIDEST_PAGE),
        (_at_blanks, broken, _BLANKS, _WIDEST_PAGE),
    ):
        if not _NARROWEST <= width <= most:
            continue
        result, joined = [bare[0]], 0
        for number in range(1, len(lines)):
            between = None
            if not begins[number] and bare[number]:
                between = joint(lengths[number - 1] + slack, bare[number], width)
            if between is None:
                result.append(bare[number])
            else:
                result[-1] += between + (bare[number].lstrip(" ") if between else bare[number])
                joined += 1
        if joined:
            yield width, ends if joint is _at_the_column else 0, "\n".join(result)


def _begins_record(line: str) -> bool:
    stamp = first_stamp(line[:60], 2000)
    return (stamp is not None and stamp[0] < 4) or _RECORD.match(line) is not None


def _at_the_column(length: int, following: str, width: int) -> str | None:
    """What stood between two pieces; None where there was a line's end."""
    if _STARTS.match(following):
        return None
    if length == width:
        return ""
    # Who copies from a screen often loses the blank in the last column.
    return " " if length == width - 1 and not following.startswith("  ") else None


def _at_blanks(length: int, following: str, width: int) -> str | None:
    if following.startswith(("  ", "\t")) or _STARTS.match(following):
        return None
    word = following.lstrip().partition(" ")[0]
    return " " if length and length + 1 + len(word) > width else None
