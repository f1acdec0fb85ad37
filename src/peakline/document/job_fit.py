"""What is said of how the ranks of a job fit into memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from peakline.document.fit import mib_text, request_text
from peakline.document.job_members import (
    MOST_RANKS,
    Line,
    job_part,
    member_lines,
    names_text,
    warnings_of,
    who_text,
)
from peakline.document.model import Column, Table
from peakline.jobs.fitted import RankFit
from peakline.jobs.members import Job, Member
from peakline.text import allocator_text, chosen_size_text, size_text

Rank = tuple[Member, RankFit]
_REASONS = 3
_FITS = {True: "fits", False: "fails", None: "not known"}


def in_order(ranks: Sequence[Rank]) -> list[Rank]:
    """The ranks, who needs most and so fails first in front."""
    return sorted(ranks, key=lambda row: -(row[1].needs_bytes or row[1].peak_bytes or 0))


def job_fit_headline(ranks: Sequence[Rank]) -> str:
    """Which rank fails first where memory becomes less, and what it and the others need."""
    known = [row for row in in_order(ranks) if row[1].needs_bytes is not None]
    if not known:
        peaks = [row for row in in_order(ranks) if row[1].peak_bytes is not None]
        if not peaks:
            return "no rank can be replayed"
        member, one = peaks[0]
        peak = size_text(one.peak_bytes or 0)
        return f"no rank can be replayed; the largest peak is {peak}, on {member.title}"
    member, first = known[0]
    most = first.needs_bytes or 0
    same = [row[0] for row in known if row[1].needs_bytes == most]
    others = [row[1].needs_bytes or 0 for row in known if row[1].needs_bytes != most]
    if not others:
        runs = "runs" if len(same) == 1 else "run"
        return f"{who_text(same, len(ranks))} {runs} from {mib_text(most)} on"
    who, verb = (member.title, "fails first: it needs") if len(same) == 1 else (
        names_text(same), "fail first: they need")  # fmt: skip
    return f"{who} {verb} {mib_text(most)}, of the others none more than {mib_text(max(others))}"


def job_fit_lines(job: Job, ranks: Sequence[Rank]) -> list[Line]:
    """The labelled lines under the headline."""
    result = member_lines(job)
    many = len(ranks)
    for number, limit in enumerate(ranks[0][1].limits if ranks else ()):
        rows = {fits: [row for row in ranks if row[1].under(number) is fits] for fits in _FITS}
        fails, unknown = rows[False], rows[None]
        text = "all ranks fit" if len(rows[True]) == many else ""
        if fails:
            verb = "fails" if len(fails) == 1 else "fail"
            text = f"{who_text([m for m, _ in fails], many)} {verb}{_first_text(fails, number)}"
        if unknown:
            what = f"not known of {who_text([m for m, _ in unknown], many)}"
            text = f"{text}; {what}" if text else what
        result.append(("", f"under {chosen_size_text(limit)}", text))
    for label, reasons in (
        ("a bound", [(m, one.deciding.reason) for m, one in ranks
                     if one.deciding is not None and not one.deciding.exact]),
        ("not replayed", [(m, f"{allocator_text(f.allocator)}: {f.reason}")
                          for m, one in ranks for f in one.failed]),
        ("batch", [(m, _batch_text(one)) for m, one in ranks if _batch_text(one)]),
    ):  # fmt: skip
        by_text: dict[str, list[Member]] = {}
        for member, text in reasons:
            by_text.setdefault(text, []).append(member)
        for text, members in [*by_text.items()][:_REASONS]:
            result.append(("", label, f"{who_text(members, many)}: {text}"))
        more = sum(len(members) for members in [*by_text.values()][_REASONS:])
        if more:
            result.append(("", label, f"and {more} more"))
    return result


def _first_text(fails: Sequence[Rank], number: int) -> str:
    """Where the rank fails that needs most."""
    member, one = in_order(fails)[0]
    results = [fit.under[number].fails_at for fit in one.fits]
    request = next((each for each in results if each is not None), None)
    if request is None:
        return ""
    of = f", {member.title}" if len(fails) > 1 else ""
    return f"{of} at allocation {request.index + 1:,}: {request_text(request)}"


def _batch_text(one: RankFit) -> str:
    batches = one.deciding.batches if one.deciding is not None else ()
    return f"{batches[0].recorded}, the largest that fits is {batches[0].wanted}" if batches else ""


def job_fit_table(ranks: Sequence[Rank]) -> Table:
    """The ranks, who needs most first; of many the first few, and the last."""
    rows = in_order(ranks)
    shown = rows if len(rows) <= MOST_RANKS else [*rows[: MOST_RANKS - 1], rows[-1]]
    limits = shown[0][1].limits if shown else ()
    columns = (
        Column("rank"), Column("needs", "figure"), Column("live at most", "bytes"),
        Column("peak", "bytes"),
        *(Column(f"at {chosen_size_text(limit)}") for limit in limits[:2]),
        Column("allocator"),
    )  # fmt: skip
    cells = [
        (
            member.title,
            "" if one.needs_bytes is None else mib_text(one.needs_bytes),
            "" if one.deciding is None else one.deciding.live_peak_bytes,
            _or_empty(one.peak_bytes),
            *(_FITS[one.under(number)] for number in range(len(limits[:2]))),
            "" if one.deciding is None else allocator_text(one.deciding.allocator),
        )
        for member, one in shown
    ]
    rest = rows[MOST_RANKS - 1 : -1] if len(rows) > MOST_RANKS else []
    more = (f"{len(rest):,} more between them",) if rest else ()
    title = "ranks" if len(rows) < 2 else "ranks, who needs most first"
    return Table(title, columns, cells, more).without_empty()


def _or_empty(size: int | None) -> int | str:
    return "" if size is None else size


def job_fit_document(job: Job, ranks: Sequence[Rank]) -> dict[str, Any]:
    """What ``peakline fit --json`` prints of a job."""
    first = next((row for row in in_order(ranks) if row[1].needs_bytes is not None), None)
    limits = ranks[0][1].limits if ranks else ()
    return {
        "job": job_part(job),
        "headline": job_fit_headline(ranks),
        "fails_first": None if first is None else first[0].title,
        "needs_bytes": None if first is None else first[1].needs_bytes,
        "limits": [
            {
                "limit_bytes": limit,
                **{
                    name: [member.title for member, one in ranks if one.under(number) is fits]
                    for name, fits in (("fits", True), ("fails", False), ("unknown", None))
                },
            }
            for number, limit in enumerate(limits)
        ],
        "ranks": [
            {
                "rank": member.number,
                "title": member.title,
                "host": member.host,
                "path": member.profile.path,
                "needs_bytes": one.needs_bytes,
                "peak_bytes": one.peak_bytes,
                "allocators": [fit.as_json() for fit in one.fits],
                "not_replayed": [vars(each) for each in one.failed],
            }
            for member, one in ranks
        ],
        "warnings": warnings_of(job),
    }
