"""``peakline check``: limits that a profile's memory must pass, for continuous integration."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from peakline.cli.options import (
    Reading,
    answer_document,
    json_option,
    path_argument,
    reading_options,
)
from peakline.cli.verb import Verb
from peakline.errors import CheckFailed, ExistsError, OutputError, UsageError
from peakline.render.terminal.output import print_json, print_warnings
from peakline.text import parse_size

if TYPE_CHECKING:
    from peakline.compare.state import MemoryState

_SHARE = re.compile(r"(\d{1,9}(?:\.\d{1,9})?|\.\d{1,9})\s*(%?)")
_STDIN = "-"
_TOLERANCE = 0.05
_HEAD = 4096


def parse_share(text: str) -> float:
    """A share such as 5% or 0.05; UsageError for anything else, and for 5 without a sign."""
    match = _SHARE.fullmatch(text.strip())
    share = 2.0 if match is None else float(match[1]) / (100 if match[2] else 1)
    if match is None or (not match[2] and share > 1):
        raise UsageError(f"{text!r} is no share; write 5% or 0.05")
    return share


@click.command(
    cls=Verb,
    examples=r"""
    # fail (exit 1) where the peak is above a limit
    peakline check logs --max-peak 10GiB
    # ... or more than 5% above that of another run
    peakline check after.xplane.pb --baseline before.xplane.pb
    # for a script
    peakline check logs --max-peak 10GiB --json
""",
)
@path_argument
@click.option(
    "--max-peak",
    metavar="SIZE",
    type=parse_size,
    help="The most that may be in use: 10MB, 64KiB, 1.5GiB or bytes.",
)
@click.option(
    "--max-growth-per-step",
    metavar="SIZE",
    type=parse_size,
    help="The most that every step may leave in memory for good; 0 for nothing.",
)
@click.option(
    "--max-fragmentation",
    metavar="SHARE",
    type=parse_share,
    help="The most of the free memory at the peak that may lie outside its largest piece: "
    "0.3 or 30%.",
)
@click.option(
    "--max-program-peak",
    metavar="SIZE",
    type=parse_size,
    help="The most that a compiled program may need.",
)
@click.option(
    "--max-limit",
    metavar="SIZE",
    type=parse_size,
    help="The memory in which the recorded program must run (peakline fit).",
)
@click.option(
    "--baseline",
    metavar="PATH",
    help="A profile whose peak, growth per step and programs' peaks may not be exceeded, or what "
    "check --json or memory --json wrote about one.",
)
@click.option(
    "--tolerance",
    metavar="SHARE",
    type=parse_share,
    help="By how much the baseline may be exceeded: 5% (the default) or 0.05.",
)
@click.option("--allocator", metavar="NAME", help="Only this allocator. Default: all.")
@click.option(
    "--summary",
    metavar="FILE",
    help="Append the outcome in Markdown to FILE, as $GITHUB_STEP_SUMMARY wants it.",
)
@reading_options(json_option)
def check(
    path: str,
    max_peak: int | None,
    max_growth_per_step: int | None,
    max_fragmentation: float | None,
    max_program_peak: int | None,
    max_limit: int | None,
    baseline: str | None,
    tolerance: float | None,
    allocator: str | None,
    summary: str | None,
    reading: Reading,
    *,
    json: bool,
) -> None:
    """Hold a profile's memory against limits and a baseline; exit 1 when one fails."""
    wanted = (
        max_peak, max_growth_per_step, max_fragmentation, max_program_peak, max_limit, baseline
    )  # fmt: skip
    if wanted == (None,) * len(wanted):
        raise UsageError(
            "no limit is given; see --max-peak, --max-growth-per-step, --max-fragmentation, "
            "--max-program-peak, --max-limit and --baseline"
        )
    if max_fragmentation is not None and max_fragmentation > 1:
        raise UsageError("--max-fragmentation is a share of the free memory: at most 100%")
    if tolerance is not None and baseline is None:
        raise UsageError("--tolerance needs a --baseline")
    if summary is not None:
        _check_summary(summary, (path, baseline))
    from peakline.check.limits import check_limits
    from peakline.check.verdict import Limits
    from peakline.compare.programs import with_programs
    from peakline.compare.state import state_of
    from peakline.findings.memory_answer import NOTHING
    from peakline.memory.allocator_names import recorded_name, shown_names

    limits = Limits(
        max_peak,
        max_growth_per_step,
        max_fragmentation,
        _TOLERANCE if tolerance is None else tolerance,
        max_program_peak,
        max_limit,
    )
    before = None if baseline is None else _baseline(baseline, reading)
    with reading.open(path) as profile:
        state = state_of(profile.memory())
        if json or max_program_peak is not None or (before is not None and before.programs):
            state = with_programs(state, profile)
        recorded, names = recorded_name(profile, allocator), shown_names(profile)
        checks = check_limits(state, limits, before, allocator=recorded)
        if max_limit is not None:
            from peakline.check.limit import limit_checks

            checks += tuple(limit_checks(profile, limits, recorded))
        if json:
            from peakline.check.baseline import write_baseline
            from peakline.check.programs import write_programs

            verdict = {
                "passed": all(one.passed for one in checks),
                "checks": [one.as_json() for one in checks],
                "allocators": write_baseline(state),
                "programs": write_programs(state.programs),
            }
            print_json(answer_document(profile, verdict))
        else:
            from peakline.render.terminal.check import print_checks

            print_checks(profile, checks, names, baseline)
        print_warnings(profile.warnings, besides=NOTHING)
        subject = profile.path
    if summary is not None:
        from peakline.render.markdown.check import summary_markdown

        _append(summary, summary_markdown(subject, checks, state, names=names, baseline=baseline))
    if failed := [one for one in checks if not one.passed]:
        first = failed[0]
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        what = ": ".join(
            part for part in (path, first.program or first.allocator, first.name) if part
        )
        raise CheckFailed(f"{what}: {first.reason}{more}")


def _baseline(path: str, reading: Reading) -> MemoryState:
    """The figures of the baseline: of a profile, or as this program wrote them down."""
    from peakline.check.baseline import is_baseline, read_baseline
    from peakline.compare.programs import with_programs
    from peakline.compare.state import state_of
    from peakline.formats.common.files import SourceFile

    if path == _STDIN:
        raise UsageError("--baseline cannot come from standard input; name a file")
    reading = replace(reading, session=None, host=None)
    place = reading.file(path, choose="name the file of one")
    if not Path(place).is_dir():
        file = SourceFile(place, max_unpacked_bytes=reading.max_unpacked)
        try:
            if is_baseline(file.head[:_HEAD]):
                return read_baseline(bytes(file.buffer), path)
        finally:
            file.close()
    with reading.open_file(place, path) as profile:
        return with_programs(state_of(profile.memory()), profile)


def _check_summary(summary: str, sources: tuple[str | None, ...]) -> None:
    """UsageError where ``summary`` names what nothing may be appended to."""
    if summary == _STDIN:
        raise UsageError("--summary needs a file")
    target = Path(summary)
    for source in sources:
        if source and target.exists() and Path(source).exists() and target.samefile(source):
            raise UsageError(f"{summary}: is the profile itself; choose another name")
    try:
        head = b""
        target.parent.stat()
        if target.is_file():
            with target.open("rb") as file:
                head = file.read(_HEAD)
    except OSError as error:
        raise _unwritable(summary, error) from None
    if b"\0" in head:
        raise UsageError(f"{summary}: is no text; choose another name")


def _append(summary: str, text: str) -> None:
    """A new file is there when it is whole. To one that is there the text is appended by one call
    of the system, so that a process that is killed appends all of it or nothing.
    """
    from peakline.repository import write_atomically

    try:
        if not os.path.lexists(summary):
            with suppress(ExistsError):  # another was faster
                write_atomically(summary, lambda stream: stream.write(text.encode()))
                return
        with Path(summary).open("ab", buffering=0) as file:
            size = file.tell()
            content = f"\n{text}" if size else text
            left = content.encode()
            try:
                while left:
                    left = left[file.write(left) or 0 :]
            except OSError:  # the disk is full
                file.truncate(size)
                raise
    except OSError as error:
        raise _unwritable(summary, error) from None
    except UsageError as error:
        raise OutputError(str(error)) from None


def _unwritable(summary: str, error: OSError) -> OutputError:
    return OutputError(f"{summary}: cannot be written: {error.strerror or error}")
