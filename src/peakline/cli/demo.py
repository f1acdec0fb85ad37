"""``peakline demo``: the main job on a real session that comes with the package."""

from __future__ import annotations

import click

import peakline
from peakline.cli.memory import show_memory
from peakline.cli.options import json_option
from peakline.cli.verb import Verb


@click.command(
    cls=Verb,
    examples=r"""
    # what peakline memory says
    peakline demo
    # for a script
    peakline demo --json
""",
)
@json_option
def demo(*, json: bool) -> None:
    """Explain the memory of a bundled training job (a Keras CNN).

    Sixteen steps on a CPU.
    """
    from importlib.resources import files

    logdir = files("peakline") / "demo"
    with peakline.open(str(logdir)) as profile:
        show_memory(profile, as_json=json)
