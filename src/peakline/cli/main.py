"""The command line as Click knows it: the program, and its verbs, imported where they are used."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import click

from peakline.cli.exit_codes import EXIT_CODES
from peakline.cli.verb import is_place, near_paths, unknown_option, write_lines

GROUPS = {
    "Answers": "summary memory steps ops programs fit trace demo",
    "Compare and gate": "diff check",
    "Look and share": "view report export",
    "Raw data": "sql tool graph sessions",
    "Record and serve": "capture serve",
}
"""The verbs as the help groups them. Each is a command in a module of its name, which is imported
where the verb is used."""
_VERBS = " ".join(GROUPS.values()).split()
_DEFAULT = "summary"
"""What runs where a path stands in a verb's place."""
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
        # Names are all that is needed of the others, to suggest one.
        self.commands = {name: click.Command(name) for name in _VERBS}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (as Click calls it)
        return list(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _VERBS:
            return None
        found: click.Command = vars(import_module(f"peakline.cli.{cmd_name}"))[cmd_name]
        return found

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
        if word not in _VERBS and not word.startswith("--"):
            if not is_place(word):
                raise click.UsageError(_unknown(word), ctx)
            args = [_DEFAULT, *args]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The verbs in groups, with the whole line that says what each does."""
        width = max(map(len, _VERBS))
        for title, names in GROUPS.items():
            rows = []
            for name in names.split():
                command = self.get_command(ctx, name)
                about = ((command.help if command else "") or "").strip().partition("\n\n")[0]
                rows.append((f"{name:{width}}", " ".join(about.split())))
            with formatter.section(title):
                formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Examples, and what the exit codes mean."""
        super().format_epilog(ctx, formatter)
        write_lines(formatter, "Examples", EXAMPLES)
        with formatter.section("Exit codes"):
            formatter.write_dl([(f"{code:>3}", meaning) for code, meaning in EXIT_CODES.items()])


def _unknown(word: str) -> str:
    """What is wrong with a first word that is neither a verb nor a place."""
    from peakline.suggest import near

    paths = [f"./{path}" if path in _VERBS else path for path in near_paths(word)]
    close = [*near(word, _VERBS), *paths]
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
