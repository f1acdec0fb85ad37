"""``peakline diff``: what changed between two profiles."""

from __future__ import annotations

import click

from peakline.cli.options import Argument, Reading, json_option, max_unpacked_option, strict_option
from peakline.errors import UsageError
from peakline.render.terminal.output import print_json, print_warnings

_STDIN = "-"


@click.command()
@click.argument(
    "before",
    cls=Argument,
    help="The earlier profile: a file, a session or a log directory.",
)
@click.argument("after", cls=Argument, help="The later profile, of the same format or another.")
@click.option(
    "--allocator", metavar="NAME", help="Only the allocator of that name in either profile."
)
@click.option("--session-before", metavar="ID", help="The session of BEFORE. Default: the newest.")
@click.option("--session-after", metavar="ID", help="The session of AFTER. Default: the newest.")
@click.option("--host-before", metavar="HOST", help="The host of BEFORE, of several.")
@click.option("--host-after", metavar="HOST", help="The host of AFTER, of several.")
@json_option
@click.option("--markdown", is_flag=True, help="Print Markdown, fit for a pull request.")
@strict_option
@max_unpacked_option
def diff(
    before: str,
    after: str,
    allocator: str | None,
    session_before: str | None,
    session_after: str | None,
    host_before: str | None,
    host_after: str | None,
    *,
    json: bool,
    markdown: bool,
    strict: bool,
    max_unpacked: int | None,
) -> None:
    """Say what changed from BEFORE to AFTER in memory and time: peaks, steps, ops, findings."""
    from peakline.compare.comparison import compare_profiles, profile_state
    from peakline.findings.memory_answer import NOTHING
    from peakline.findings.time_answer import NO_STEPS
    from peakline.memory.allocator_names import recorded_name

    if before == after == _STDIN:
        raise UsageError("only one of the two profiles can come from standard input")
    if json and markdown:
        raise UsageError("--json or --markdown, not both")
    states = []
    for path, session, host, which in (
        (before, session_before, host_before, "before"),
        (after, session_after, host_after, "after"),
    ):
        reading = Reading(session, host, strict, max_unpacked)
        with reading.open(path, choose=f"choose one with --host-{which}") as profile:
            allocator = recorded_name(profile, allocator)
            # An allocator that is named asks about memory alone.
            states.append(profile_state(profile, with_time=allocator is None))
    found = compare_profiles(*states, allocator=allocator)
    if json:
        print_json(found.as_json())
    elif markdown:
        from peakline.render.markdown.diff import comparison_markdown

        print(comparison_markdown(found), end="")
    else:
        from peakline.render.terminal.diff import print_diff

        print_diff(found)
    for state in states:
        print_warnings(w for w in state.warnings if w.kind not in {NOTHING, NO_STEPS})
