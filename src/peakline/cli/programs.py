"""``peakline programs``: the programs that XLA compiled, their memory and their cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

import peakline
from peakline.cli.options import (
    Reading,
    answer_document,
    answer_hosts,
    json_option,
    path_argument,
    reading_options,
)
from peakline.cli.verb import Verb

if TYPE_CHECKING:
    from peakline.timing.program_answer import ProgramAnswer


@click.command(
    cls=Verb,
    examples=r"""
    # those of a JAX profile, that which needs most first
    peakline programs run.xplane.pb
    # what XLA dumped (XLA_FLAGS=--xla_dump_to=dump)
    peakline programs dump
    # for a script
    peakline programs dump --json --top 5
""",
)
@path_argument
@click.option("--module", metavar="NAME", help="This program in full: its name or id.")
@click.option(
    "--top",
    metavar="N",
    type=click.IntRange(min=1),
    help="So many rows each. Default: 20, in JSON all.",
)
@reading_options(json_option)
def programs(
    path: str, module: str | None, top: int | None, reading: Reading, *, json: bool
) -> None:
    """List the compiled programs: their memory and their cost.

    With what is live at the peak of each, by value, scope and source line.
    """

    def document_of(profile: peakline.Profile) -> dict[str, object] | None:
        found = _programs(profile, module)
        if json:
            return answer_document(
                profile,
                {"modules": [module_document(p, top, in_full=module is not None) for p in found]},
            )
        from peakline.render.terminal.programs import print_program, print_programs

        if module is None:
            print_programs(profile, found, top)
        else:
            print_program(profile, found[0], top)
        return None

    answer_hosts(path, reading, document_of, json=json)


def _programs(profile: peakline.Profile, module: str | None) -> list[ProgramAnswer]:
    from peakline.timing.program_answer import ProgramAnswer, programs_of

    if module is None:
        return programs_of(profile)
    from peakline.hlo.choice import choose_program

    return [ProgramAnswer(profile, choose_program(profile, module))]


_FACTS = (
    "backend", "argument_bytes", "output_bytes", "temporary_bytes", "alias_bytes",
    "generated_code_bytes", "constant_bytes", "thread_local_bytes", "host_bytes",
)  # fmt: skip


def module_document(
    one: ProgramAnswer, top: int | None = None, *, in_full: bool = False
) -> dict[str, object]:
    """What ``peakline programs --json`` prints of one program; sizes in bytes, times in ps.

    Advice about a program with very many temporaries takes seconds: it is there with ``in_full``.
    """
    from peakline.render.document.programs import advice_document, buffer_document

    total, packing = one.costs.total, one.memory.packing
    is_known = one.memory.is_known
    return {
        "module": one.name,
        "program_id": one.program_id,
        "peak_bytes": one.peak_bytes,
        "peak_found_by": one.memory.found_by if is_known else None,
        **{name: one.facts[name] for name in _FACTS},
        "heap_bytes": packing.heap_bytes if is_known else None,
        "heap_live_bytes": packing.live_bytes if is_known else None,
        "padding_bytes": one.padding_bytes if is_known else None,
        "flops": total.flops,
        "transcendentals": total.transcendentals,
        "bytes_accessed": total.bytes_accessed,
        "runs": one.run_count,
        "run_ps": one.run_ps if one.run_count is not None else None,
        "advice": [] if one.is_large and not in_full else [*map(advice_document, one.advice)],
        "peak_buffers": [
            buffer_document(row) for row in one.largest(one.live_count if top is None else top)
        ],
    }
