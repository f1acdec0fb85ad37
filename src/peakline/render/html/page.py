"""The whole page: one HTML file that opens offline and says what memory and time did, and why.

Nothing in it is fetched and no script runs: its Content-Security-Policy forbids both.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import PurePath
from typing import BinaryIO

from peakline.document.profile import profile_text
from peakline.findings.memory_answer import MemoryAnswer, answer_memory
from peakline.findings.step_names import labels_of
from peakline.findings.time_answer import answer_time
from peakline.render.html import programs
from peakline.render.html.context import Context
from peakline.render.html.drawing import Drawings
from peakline.render.html.findings import findings, in_order
from peakline.render.html.graphs import graphs
from peakline.render.html.html import Child, Markup, clip, code, join, tag
from peakline.render.html.memory import left_out, parts_of, section_of
from peakline.render.html.method import method, warnings
from peakline.render.html.steps import steps
from peakline.render.html.summary import summary
from peakline.render.html.svg.paint import patterns, rules
from peakline.render.html.tables import Tables
from peakline.render.html.time import time
from peakline.tables import Profile
from peakline.tables.profile_facts import is_moment


def write_report(
    profile: Profile,
    file: BinaryIO,
    *,
    allocator: str | None = None,
    title: str | None = None,
    command: str | None = None,
    answer: MemoryAnswer | None = None,
) -> None:
    """Write the report of ``profile`` to ``file`` as UTF-8.

    ``allocator`` keeps one allocator, ``title`` heads the page (default: the profile's path),
    ``command`` is shown as what made it, ``answer`` is that of `answer_memory` where it is known.
    The same profile gives the same bytes. Raises NotFoundError for an unknown allocator,
    InputError when the profile cannot be read.
    """
    if answer is None:
        answer = answer_memory(profile, allocator=allocator)
    context = Context(
        profile,
        answer,
        answer_time(profile),
        labels_of(profile.columns_or_empty("steps")),
        is_moment=not answer.nothing and is_moment(profile),
        tables=Tables(),
        drawings=Drawings(),
    )
    file.write(_page(context, title, command).encode())


def _page(context: Context, title: str | None, command: str | None) -> Markup:
    parts = parts_of(context)
    alone = len(context.answer.allocators) == 1
    places = ["memory" if alone else f"allocator-{place}" for place in range(1, len(parts) + 1)]
    # What is drawn first has room for sure.
    memory = [
        section_of(part, place, alone=alone) for part, place in zip(parts, places, strict=True)
    ]
    others = [
        ("time", "Time", time(context)),
        ("steps", "Steps", steps(context)),
        ("programs", "Programs", programs.compiled(context)),
        ("graphs", "Graphs", graphs(context)),
        ("warnings", "Warnings", warnings(context)),
    ]
    context.sections.update({*places, *(name for name, _, part in others if part is not None)})
    body: list[Child] = [summary(context, parts), findings(context), programs.failures(context)]
    body += memory
    body.append(left_out(context, parts))
    body += [part for _, _, part in others]
    body.append(method(context, parts, command))
    entries = [("summary", "Summary")]
    entries += [("findings", "Findings")] if in_order(context) else []
    names = ["Memory"] if alone else [part.heading for part in parts]
    entries += zip(places, names[: len(parts)], strict=True)
    entries += [(name, title) for name, title, part in others if part is not None]
    entries.append(("method", "How these numbers were made"))
    heading = clip(title or PurePath(context.profile.path).name or context.profile.path, 300)
    return join(
        [
            Markup("<!DOCTYPE html>\n"),
            tag(
                "html",
                _head(heading),
                tag(
                    "body",
                    tag("a", "Skip to the report", href="#main", class_="skip"),
                    _header(context, heading),
                    _contents(entries),
                    patterns(),
                    tag("main", *body, id="main"),
                    tag(
                        "footer",
                        tag("p", "Made by Peakline; it needs no network and runs no script."),
                    ),
                ),
                lang="en",
            ),
            "\n",
        ]
    )


def _head(heading: str) -> Markup:
    style = _style()
    digest = b64encode(sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"Profile report: {heading}"),
        Markup(f"<style>{style}</style>"),
    )


def _header(context: Context, heading: str) -> Markup:
    profile = context.profile
    facts = clip(profile_text(profile, moment=context.is_moment), 200)
    return tag(
        "header",
        tag("p", "Profile report", class_="kind"),
        tag("h1", heading),
        tag("p", code(profile.path, 1000), ", ", facts, class_="of"),
    )


def _contents(entries: Sequence[tuple[str, str]]) -> Markup:
    """Where to find what."""
    links = (tag("li", tag("a", title, href=f"#{name}")) for name, title in entries)
    return tag("nav", tag("ul", *links), aria_label="Contents")


@cache
def _style() -> str:
    """The stylesheet, with the colours of figures for light pages, dark ones and paper."""
    sheet = files("peakline.render.html").joinpath("style.css").read_text(encoding="utf-8")
    light, dark = rules(dark=False), rules(dark=True)
    return (
        f"{sheet}:root{{{light}}}"
        f"@media screen and (prefers-color-scheme: dark){{:root{{{dark}}}}}\n"
    )
