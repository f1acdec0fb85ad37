"""The command line as Click knows it: the program, and its verbs, imported where they are used."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import click

_VERBS = """
summary memory fit steps ops programs diff check report export trace
tool sql graph sessions capture serve view demo
""".split()
"""Each is a command in a module of its name, which is imported where the verb is used."""


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


@click.group(
    "peakline",
    cls=_Verbs,
    invoke_without_command=True,
    subcommand_metavar="COMMAND [ARGS]...",
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
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

    Exit codes: 0 done, 1 a check failed or a query was refused, 2 usage, 3 the input cannot be
    read or the output not written, 4 a remote host failed, 70 our own fault.
    """
    # `main` answers --version and takes --debug out: both are here for the help.
    if context.invoked_subcommand is None:
        print(context.get_help(), file=sys.stderr)
        context.exit(2)
