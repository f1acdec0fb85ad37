"""The whole of a program: its header, its computations, their instructions; and instructions out of
their computations, one line each, as XProf shows an op (``UncachedExpression`` in
``utils/hlo_module_utils.h`` of openxla/xprof).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from peakline import schema
from peakline.hlo.messages import ModuleParts
from peakline.hlo.printing.instructions import (
    ASYNC,
    Printer,
    PrintOptions,
    backend_text,
    frontend_text,
)
from peakline.hlo.printing.metadata import array_text, stack_frames
from peakline.hlo.printing.outline import MAIN_THREAD, Outline, instructions_in_order
from peakline.hlo.printing.quoting import braced, quoted, sound_name
from peakline.hlo.printing.shapes import numbered, with_layout, without_layout

if TYPE_CHECKING:
    from peakline.hlo.modules import InstructionIndex
    from peakline.schema import (
        HloComputationProto,
        HloInstructionProto,
        HloModuleProto,
        ProgramShapeProto,
    )


SHORT = PrintOptions(short=True)
LONG = PrintOptions(large=True)
ALONE = PrintOptions(operand_shapes=True, configurations=False)
"""Of one instruction without its computation."""
_RECOVERY = PrintOptions(metadata=True)
_DEEPEST = 20
"""Levels of programs within programs."""


def module_text(parts: ModuleParts, options: PrintOptions, depth: int = 0) -> Iterator[str]:
    """The text of a program, in pieces; ``depth`` levels within another one."""
    tab, module = "  " * depth, parts.head
    yield from _header(module, tab)
    yield from _recovery(module, depth)
    if options.metadata and module.HasField("stack_frame_index"):
        yield from stack_frames(module.stack_frame_index)
    yield "\n\n"
    outline = Outline(parts.computations)
    writer = printer(parts, outline, options)
    for place in outline.in_order():
        one = parts.computations[place]
        if not writer.is_inline(one.id):
            yield from _computation(module, one, writer, tab)
            yield "\n\n"


def printer_of(parts: ModuleParts, options: PrintOptions) -> Printer:
    """What writes the instructions of a program."""
    return printer(parts, Outline(parts.computations), options)


def printer(parts: ModuleParts, outline: Outline, options: PrintOptions) -> Printer:
    """As `printer_of`, of a program whose outline is there."""
    inline = outline.written_inline()
    return Printer(options, outline.names, inline, outline.threads(), parts.head.payloads)


def _header(module: HloModuleProto, tab: str) -> Iterator[str]:
    yield f"{tab}HloModule {sound_name(module.name)}"
    if module.HasField("schedule"):
        yield ", is_scheduled=true"
    yield from _aliases(module)
    if module.HasField("host_program_shape"):
        yield f", entry_computation_layout={{{_layouts(module.host_program_shape)}}}"
    if module.frontend_attributes.map:
        yield f", frontend_attributes={frontend_text(module.frontend_attributes.map)}"
    if config := backend_text(module.backend_config):
        yield f", backend_config={config}"


def _aliases(module: HloModuleProto) -> Iterator[str]:
    """Which outputs lie where inputs did, and which inputs may be overwritten."""
    entries = module.input_output_alias.entries
    if entries:
        pairs = (
            f"{braced(one.output_shape_index)}: ({one.parameter_number}, "
            f"{braced(one.parameter_shape_index)}, {'may' if one.kind == 1 else 'must'}-alias)"
            for one in sorted(entries, key=lambda one: tuple(one.output_shape_index))
        )
        yield f", input_output_alias={{ {', '.join(pairs)} }}"
    donors = {
        (one.parameter_number, tuple(one.parameter_shape_index))
        for one in module.buffer_donor.entries
    }
    if donors:
        pairs = (f"({number}, {braced(index)})" for number, index in sorted(donors))
        yield f", buffer_donor={{ {', '.join(pairs)} }}"


def _recovery(module: HloModuleProto, depth: int) -> Iterator[str]:
    """How values that were there before compilation are made again, by programs of their own."""
    entries = module.original_value_recovery_table.entries
    if not entries or depth > _DEEPEST:
        return
    tab = "  " * (depth + 1)
    yield ", origin_recovery_table={\n"
    by_name = {
        (one.old_original_array.instruction_name, tuple(one.old_original_array.shape_index)): one
        for one in entries
    }
    for _, one in sorted(by_name.items()):
        old, new = array_text(one.old_original_array), array_text(one.new_original_array)
        yield f"{tab}{{{old}}} : {{{new}}}"
        if one.HasField("recovery_module"):
            yield f',\n{tab}"\n'
            # Only what the program itself says is escaped, line by line.
            for piece in module_text(ModuleParts.of(one.recovery_module), _RECOVERY, depth + 2):
                yield "\n".join(quoted(line)[1:-1] for line in piece.split("\n"))
            yield f'\n{tab}"'
        yield "\n"
    yield "}\n"


def _layouts(shape: ProgramShapeProto) -> str:
    given = numbered([with_layout(one) for one in shape.parameters])
    return f"({given})->{with_layout(shape.result)}"


def _computation(
    module: HloModuleProto, one: HloComputationProto, printer: Printer, tab: str
) -> Iterator[str]:
    options = printer.options
    entry = "ENTRY " if one.id == module.entry_computation_id else ""
    sign = "" if options.short else "%"
    signature = "" if options.short else f"{_signature(one)} "
    yield f"{tab}{entry}{sign}{printer.computations[one.id]} {signature}{{\n"
    printer.enter(one)
    order = instructions_in_order(
        one, scheduled_ids(module, one), with_channels=has_channels(module)
    )
    for made in order:
        yield from printer.instruction(
            made, f"{tab}  ROOT " if made.id == one.root_id else f"{tab}  "
        )
    thread = printer.threads.of(one.id)
    yield f"{tab}}}" if thread == MAIN_THREAD else f'{tab}}}, execution_thread="{thread}"'


def scheduled_ids(module: HloModuleProto, one: HloComputationProto) -> Sequence[int] | None:
    """The order in which a computation runs, where the program says it."""
    sequences = module.schedule.sequences
    return sequences[one.id].instruction_ids if one.id in sequences else None


def has_channels(module: HloModuleProto) -> bool:
    """Whether collectives of one channel keep their order: not where one program serves all."""
    return not (
        module.HasField("device_assignment") and module.device_assignment.computation_count == 1
    )


def _signature(one: HloComputationProto) -> str:
    parameters = sorted(
        (made for made in one.instructions if made.opcode == "parameter"),
        key=lambda made: made.parameter_number,
    )
    given = ", ".join(
        f"{sound_name(made.name)}: {without_layout(made.shape)}" for made in parameters
    )
    root = next((made for made in one.instructions if made.id == one.root_id), None)
    return f"({given}) -> {without_layout(root.shape) if root is not None else '()'}"


_LONGEST = 1_000_000


class InstructionLines:
    """The instructions of a program by name; of several with one name the first counts."""

    def __init__(self, parts: ModuleParts, index: InstructionIndex) -> None:
        self._computations, self._index = parts.computations, index
        self._outline = Outline(parts.computations)
        self._printer = printer(parts, self._outline, ALONE)

    def find(self, name: str) -> HloInstructionProto | None:
        """The instruction of a name."""
        row = self._index.row(name)
        return None if row is None else self._index.message(row)

    def text(self, name: str) -> str:
        """Its line, of which a million letters are shown; empty for a name that there is not."""
        row = self._index.row(name)
        if row is None:
            return ""
        # Of its computation the line needs what the instruction uses, and what it was started by.
        near = schema.HloComputationProto(id=self._outline.ids[self._index.computation(row)])
        made = near.instructions.add()
        made.CopyFrom(self._index.message(row))
        seen, waiting = {row}, [row]
        while waiting:
            current = waiting.pop()
            used = self._index.inputs(current, control=False)
            for each in [*used, *self._index.inputs(current, control=True)]:
                if each not in seen:
                    seen.add(each)
                    near.instructions.append(self._index.message(each))
                    if near.instructions[-1].opcode in ASYNC:
                        waiting.append(each)
        self._printer.enter(near)
        return "".join(self._printer.instruction(made, "")).removesuffix("\n")[:_LONGEST]

    def parts(self, name: str) -> Sequence[HloInstructionProto]:
        """The instructions that a fusion consists of."""
        made = self.find(name)
        if made is None or made.opcode != "fusion" or not made.called_computation_ids:
            return ()
        place = self._outline.places.get(made.called_computation_ids[0])
        return () if place is None else self._computations[place].instructions
