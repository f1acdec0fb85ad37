"""Texts broken by screens, mails and pages read like the whole ones."""

import textwrap

from tests.each_row import each_row
from tests.formats.oom_texts import findings_of, read
from tests.formats.test_oom_causes import CUDA, OLD, own, sentence
from tests.formats.test_oom_lines import GGML, KERNEL, NEEDS, VLLM
from tests.formats.test_oom_programs import RUN, STATS

from peakline.tables.reader import Warnings

TORCH = sentence(
    CUDA, asked="304.00 MiB", free="218.00 MiB", allocated="70.00 GiB", reserved="744.00 MiB",
    pools="with 118.00 MiB allocated in private pools (e.g., CUDA Graphs), ",
    processes=own("79.00 GiB"),
)  # fmt: skip
VLLM_TEXT = VLLM.format(
    left="10.91", memory="", error=NEEDS.format(s="'s", a="", b="Try increasing")
)
TEXTS = {
    "torch": f"step 1\n{TORCH}\nnext\n",
    "old dump": OLD.format(start="10.90GiB"),
    "xla": STATS,
    "tpu": RUN,
    "vllm": VLLM_TEXT,
    "ggml": GGML.format(on=" on device 4", then="ggml_gallocr_reserve_n:"),
    "kernel": KERNEL.format(p="[12345.678901] ", c="MEMCG", verdict="Out of memory"),
}
PREFIXES = ["", "> ", "worker-3  | ", "(RayWorker pid=17, ip=10.0.0.2) ",
            "2026-01-02T03:04:05.123Z stdout F "]  # fmt: skip


def at_the_column(text: str, width: int, prefix: str) -> str:
    """As a console breaks it; tabs are blanks there."""
    room = width - len(prefix)
    lines = [line.expandtabs() for line in text.splitlines()]
    pieces = [line[at : at + room] for line in lines for at in range(0, max(len(line), 1), room)]
    return "".join(f"{prefix}{piece}\n" for piece in pieces)


def at_blanks(text: str, width: int, prefix: str) -> str:
    """As mail breaks it, but not within words."""
    lines = [
        piece
        for line in text.splitlines()
        for piece in textwrap.wrap(line.expandtabs(), width - len(prefix), break_long_words=False,
                                   break_on_hyphens=False) or [""]
    ]  # fmt: skip
    return "".join(f"{prefix}{line}\n" for line in lines)


def seen(text: str) -> list[tuple]:
    """All that a person learns of it but for the lines as they were."""
    return [
        (one.title, one.suggestion, {**one.evidence, "message": None}) for one in findings_of(text)
    ]


@each_row("name", list(TEXTS))
def test_a_console_breaks_inside_words(name):
    whole = seen(TEXTS[name])
    assert whole
    for width in (72, 80, 106, 120, 200):
        for prefix in PREFIXES:
            assert seen(at_the_column(TEXTS[name], width, prefix)) == whole, (width, prefix)


@each_row("name", list(TEXTS))
def test_mail_breaks_at_blanks(name):
    whole = seen(TEXTS[name])
    for width in (55, 72, 80, 106, 120):
        for prefix in PREFIXES[:3]:
            assert seen(at_blanks(TEXTS[name], width, prefix)) == whole, (width, prefix)


def test_lines_that_were_put_together_are_said():
    warnings = Warnings()
    read(at_the_column(TEXTS["vllm"], 80, "")).report(warnings)
    assert warnings.entries()[0] == (
        "joined_oom_lines",
        1,
        "lines that were broken at 80 columns were put together",
    )
    warnings = Warnings()
    read(TEXTS["vllm"]).report(warnings)
    assert warnings.entries() == []


def test_lines_of_one_length_are_not_put_together():
    text = "".join(
        f"Chunk at 0x{0x7F0000000000 + 256 * n:x} of size 256 of one and the same length\n"
        for n in range(50)
    )
    assert read(text).read("blocks").rows == 50
