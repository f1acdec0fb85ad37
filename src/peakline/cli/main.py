"""The command line as Click knows it: the program, and its verbs, imported where they are used."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import click

from peakline.cli.verb import is_place, near_paths, unknown_option, write_lines
from peakline.suggest import near

GROUPS = {
    "Answers": {
        "summary": "Show memory and time on one screen, and what to fix first.",
        "memory": "Explain the memory peak: how much, when, and what was live.",
        "steps": "Say how long steps take, what on, and which stand out.",
        "ops": "List the ops that take most time, on devices and the host.",
        "programs": "List the compiled programs: their memory and their cost.",
        "fit": "Say in how much memory the program runs, and how to set it up.",
        "trace": "Show what ran in a stretch of time, line by line, and gaps.",
        "demo": "Explain the memory of a bundled training job (a Keras CNN).",
    },
    "Compare and gate": {
        "diff": "Show what changed between two profiles, or over a series.",
        "check": "Hold a profile's memory and time to limits and baselines; exit 1 when one fails.",
    },
    "Look and share": {
        "view": "Open a profile in the browser, until Ctrl-C.",
        "report": "Write one HTML page with all of it, which needs no network.",
        "export": "Write a profile in a format that other tools read.",
    },
    "Raw data": {
        "sql": "Answer an SQL query over the tables of a profile.",
        "tool": "Print a tool's answer, as callers over HTTP and gRPC get it.",
        "graph": "Count what a graph holds, and check that it is well formed.",
        "sessions": "List the sessions of a log directory, the newest first.",
    },
    "Record and serve": {
        "capture": "Profile running jobs, store the session and summarise it.",
        "serve": "Serve log directories to a team, over gRPC and HTTP.",
    },
}
"""The verbs as the help groups them, and what each does in a line, which its own help begins with.

Each is a command in a module of its name, which is imported where the verb is used: the help of the
program, and a Tab, take none of them.
"""
VERBS = {name: line for verbs in GROUPS.values() for name, line in verbs.items()}
_DEFAULT = "summary"
"""What runs where a path stands in a verb's place."""
EXIT_CODES = {
    0: "Done.",
    1: "The answer is no: a check failed, a graph breaks a rule, a query was refused.",
    2: "Usage: an unknown verb, option, tool, target or format, a value that does not fit, a file"
    " that exists and would be replaced.",
    3: "The input cannot be read, or has no session, host, allocator or step of that name, or"
    " --strict found something lost; the output cannot be written.",
    4: "A remote host or a capture failed, or the time for it was over.",
    70: "A fault of Peakline's own; --debug shows where.",
    130: "Ended by Ctrl-C.",
    141: "Whoever read the output stopped reading.",
    143: "Ended by SIGTERM.",
}
"""What the program's exit codes mean: one policy for every verb, in its help and in docs/cli.md.
A verb raises an error of `peakline.errors`, whose class has the code; nothing else ends it."""
EXAMPLES = (
    "# memory and time of a log directory's newest session",
    "peakline logs",
    "# what fills the memory at its peak",
    "peakline memory logs",
    "# what a file holds, for your own questions",
    'peakline sql run.xplane.pb "show tables"',
    "# no profile at hand",
    "peakline demo",
)


def _print_completion(context: click.Context, _: click.Parameter, shell: str | None) -> None:
    if shell is not None:
        from peakline.cli.completion import script_of

        print(script_of(app, shell), end="")
        context.exit()


class _Verbs(click.Group):
    """The verbs, in the order of the help, each imported when it is used."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        # Of the others a Tab needs names and lines, and a suggestion their names.
        self.commands = {name: click.Command(name, short_help=VERBS[name]) for name in VERBS}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (as Click calls it)
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in VERBS:
            return None
        result: click.Command = vars(import_module(f"peakline.cli.{cmd_name}"))[cmd_name]
        return result

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As Click; an option of a verb stands behind it."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            hint = "; options stand behind the command or PATH"
            raise unknown_option(error, self, ctx, hint) from error

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb of the first word; `summary` of the place that it names. A verb always wins."""
        word = args[0]
        if word not in VERBS and not word.startswith("--"):
            if not is_place(word):
                raise click.UsageError(_unknown(word), ctx)
            args = [_DEFAULT, *args]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The verbs in groups, with the whole line that says what each does."""
        width = max(map(len, VERBS))
        for title, verbs in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:{width}}", line) for name, line in verbs.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Examples, and what the exit codes mean."""
        super().format_epilog(ctx, formatter)
        write_lines(formatter, "Examples", EXAMPLES)
        with formatter.section("Exit codes"):
            formatter.write_dl([(f"{code:>3}", meaning) for code, meaning in EXIT_CODES.items()])


def _unknown(word: str) -> str:
    """What is wrong with a first word that is neither a verb nor a place."""
    paths = [f"./{path}" if path in VERBS else path for path in near_paths(word)]
    close = [*near(word, VERBS), *paths]
    meant = f"; did you mean {' or '.join(close)}?" if close else ""
    return f"No such command or file {word!r}{meant}"


@click.group(
    "peakline",
    cls=_Verbs,
    invoke_without_command=True,
    subcommand_metavar="COMMAND | PATH ...",
    context_settings={
        "help_option_names": ["-h", "--help"],
        "show_default": True,
        "max_content_width": 100,
    },
)
@click.option("--version", is_flag=True, expose_value=False, help="Print the version.")
@click.option(
    "--debug",
    is_flag=True,
    expose_value=False,
    help="Show a traceback for an error; with any verb.",
)
@click.option(
    "--completion",
    metavar="SHELL",
    type=click.Choice(["bash", "zsh", "fish"]),
    callback=_print_completion,
    is_eager=True,
    expose_value=False,
    help="Print the script that completes words in bash, zsh or fish.",
)
@click.pass_context
def app(context: click.Context) -> None:
    """What the memory and the time of a machine-learning job go to, from its profiles.

    `peakline PATH` is `peakline summary PATH`, for a file, a directory, a URL or - (standard
    input). A verb always wins: ./report is a directory of that name.
    """
    # `main` answers --version and takes --debug out: both are here for the help.
    if context.invoked_subcommand is None:
        print(context.get_help(), file=sys.stderr)
        context.exit(2)
