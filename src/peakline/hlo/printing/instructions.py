"""The line of an instruction (``HloInstruction::PrintWithCanonicalNameMap``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from peakline.formats.hlo_proto.shapes import bounded_product, type_names
from peakline.hlo.printing.attributes import (
    BY_SHAPE,
    OLD_COMPARISONS,
    accuracy,
    attributes,
    statistics,
)
from peakline.hlo.printing.devices import sharding_text
from peakline.hlo.printing.literals import ELIDED, UnreadableLiteral, literal_text
from peakline.hlo.printing.metadata import is_shown, metadata_text, origin_text, payload_of
from peakline.hlo.printing.outline import LOW, MAIN_THREAD, Threads, called, local
from peakline.hlo.printing.quoting import as_value, braced, check_items, joined, sound_name
from peakline.hlo.printing.shapes import Shapes, numbered

if TYPE_CHECKING:
    from peakline.schema import HloComputationProto, HloInstructionProto, ShapeProto

_FEW = 10
"""Elements up to which a constant is small."""
_APPLIED = frozenset(
    """
    call map reduce-window reduce all-reduce reduce-scatter all-reduce-start scatter sort scan
    """.split()
)
ASYNC = {"async-start": "-start", "async-update": "-update", "async-done": "-done"}
_WORDS = {"while": ("condition", "body"), "select-and-scatter": ("select", "scatter")}
_FEEDS = {"infeed": "infeed_config=", "outfeed": "outfeed_config="}
_QUEUES = re.compile(rb'"wait_on_operation_queues"\s*:\s*\[\s*\]\s*,')


@dataclass(frozen=True)
class PrintOptions:
    """What is written of a program.

    ``large``: constants of more than ten elements. ``metadata``: where instructions come from.
    ``short``: without signs before names, shapes of operands, signatures of computations,
    dependencies that are no operands, and what only the compiler's back end reads.
    ``operand_shapes``: the shape before each operand. ``configurations``: what the back end, and
    what feeds values in and out, is configured with.
    """

    short: bool = False
    large: bool = False
    metadata: bool = False
    operand_shapes: bool = False
    configurations: bool = True


@dataclass(frozen=True)
class _Single:
    """The one instruction of a computation, with the shapes of its operands."""

    made: HloInstructionProto
    operands: Sequence[ShapeProto]

    @classmethod
    def of(cls, one: HloComputationProto) -> _Single:
        by_id = {local(made.id): made for made in one.instructions}
        made = by_id[local(one.root_id)]
        keys = map(local, made.operand_ids)
        return cls(made, [by_id[key].shape for key in keys if key in by_id])


class Printer:
    """Writes the instructions of one computation after another.

    ``computations`` are the names of all by id, ``inline`` those that asynchronous instructions
    stand for, ``payloads`` what instructions of the program share.
    """

    def __init__(
        self,
        options: PrintOptions,
        computations: Mapping[int, str],
        inline: Iterable[HloComputationProto],
        threads: Threads,
        payloads: Sequence[bytes] = (),
    ) -> None:
        self.options = options
        self.computations = computations
        self.threads = threads
        self._payloads = payloads
        self._inline = {one.id: _Single.of(one) for one in inline}
        self._sign = "" if options.short else "%"
        self._shapes = Shapes()
        self._made: dict[int, HloInstructionProto] = {}
        self._names: dict[int, str] = {}
        self._forced: str | None = None
        self._singles: dict[int, _Single | None] = {}

    def is_inline(self, number: int) -> bool:
        """Whether a computation is written where it is started."""
        return number in self._inline

    def enter(self, one: HloComputationProto) -> None:
        """The computation whose instructions come next."""
        self._made = {local(made.id): made for made in one.instructions}
        self._names = {key: self._sign + sound_name(made.name) for key, made in self._made.items()}
        self._singles = {}
        forced = one.id in self.threads.forced
        self._forced = self.threads.of(one.id) if forced else None

    def instruction(self, made: HloInstructionProto, before: str) -> Iterator[str]:
        """The line of an instruction, in pieces where it is long."""
        opcode = self._opcode(made)
        begin = f"{before}{self._names[made.id & LOW]} = {self._shapes.text(made.shape)} {opcode}("
        end = ", ".join([")", *self.extras(made), *self._origin(made)])
        if opcode == "constant":
            yield begin
            yield from self._constant(made)
            yield f"{end}\n"
        elif opcode == "parameter":
            yield f"{begin}{made.parameter_number}{end}\n"
        else:
            yield f"{begin}{self._operands(made)}{end}\n"

    def _shapes_of(self, made: HloInstructionProto) -> list[ShapeProto]:
        result = self._made
        return [result[key].shape for key in map(local, made.operand_ids) if key in result]

    def _opcode(self, made: HloInstructionProto) -> str:
        if made.opcode in OLD_COMPARISONS:
            return "compare"
        if made.opcode not in ASYNC:
            return made.opcode
        single = self._single(made)
        return single.made.opcode + ASYNC[made.opcode] if single else made.opcode

    def _single(self, made: HloInstructionProto) -> _Single | None:
        """The one instruction that an asynchronous one starts, updates or ends."""
        passed: dict[int, None] = {}
        result = None
        while (key := local(made.id)) not in passed:
            if key in self._singles:
                result = self._singles[key]
                break
            passed[key] = None
            if made.opcode == "async-start":
                ids = made.called_computation_ids
                result = self._inline.get(ids[0]) if ids else None
                break
            operand = self._made.get(local(made.operand_ids[0])) if made.operand_ids else None
            if operand is None or operand.opcode not in ASYNC:
                break
            made = operand
        self._singles.update(dict.fromkeys(passed, result))
        return result

    def _constant(self, made: HloInstructionProto) -> Iterator[str]:
        if made.HasField("literal") and (self.options.large or _is_small(made.shape)):
            try:
                yield from literal_text(made.literal)
            except UnreadableLiteral:
                yield ELIDED
        else:
            yield ELIDED

    def _operands(self, made: HloInstructionProto) -> str:
        result = self._names
        names = [result.get(number & LOW, "null ") for number in made.operand_ids]
        if self.options.operand_shapes:
            shapes = [
                self._shapes.text(self._made[key].shape) if key in result else ""
                for key in map(local, made.operand_ids)
            ]
            check_items([*shapes, *names])
            names = [
                f"{one} {name}" if one else name for one, name in zip(shapes, names, strict=True)
            ]
        return joined(names) if self.options.short else numbered(names)

    def extras(self, made: HloInstructionProto, *, with_calls: bool = True) -> Iterator[str]:
        """What is written behind the operands, but for where the instruction comes from."""
        shapes = self._shapes_of(made) if made.opcode in BY_SHAPE else ()
        return self._extras(made, shapes, with_calls=with_calls)

    def _extras(
        self, made: HloInstructionProto, operands: Sequence[ShapeProto], *, with_calls: bool = True
    ) -> Iterator[str]:
        if made.opcode == "async-start":
            yield from self._started(made, with_calls=with_calls)
        result = attributes(made, operands)
        if not self.options.configurations and made.opcode in _FEEDS:
            result = (one for one in result if not one.startswith(_FEEDS[made.opcode]))
        yield from result
        if with_calls and made.called_computation_ids:
            yield from self._calls(made, operands)
        if made.HasField("sharding"):
            with_metadata = self.options.metadata
            text = sharding_text(made.sharding, made.shape, with_metadata=with_metadata)
            yield f"sharding={text}"
        if made.HasField("frontend_attributes") and made.frontend_attributes.map:
            yield f"frontend_attributes={frontend_text(made.frontend_attributes.map)}"
        if made.control_predecessor_ids and not self.options.short:
            names = [self._names.get(local(one), "null ") for one in made.control_predecessor_ids]
            yield f"control-predecessors={{{joined(names)}}}"
        if made.HasField("statistics_viz"):
            yield from statistics(made)
        if made.HasField("result_accuracy"):
            yield from accuracy(made)

    def _started(self, made: HloInstructionProto, *, with_calls: bool) -> Iterator[str]:
        thread = self._forced or made.async_execution_thread or MAIN_THREAD
        if thread != MAIN_THREAD:
            yield f'async_execution_thread="{thread}"'
        single = self._single(made)
        # A computation of its own that is started in turn is written by name.
        if single is not None and single.made.opcode != "async-start":
            yield from self._extras(single.made, single.operands, with_calls=with_calls)

    def _origin(self, made: HloInstructionProto) -> Iterator[str]:
        if made.HasField("original_value"):
            yield f"origin={{{origin_text(made.original_value)}}}"
        if self.options.metadata and made.HasField("metadata") and is_shown(made.metadata):
            yield f"metadata={{{metadata_text(made.metadata, self._payloads)}}}"
        if not self.options.configurations:
            return
        given: bytes | None = made.backend_config
        if made.HasField("backend_config_payload"):
            given = payload_of(made.backend_config_payload, self._payloads) or given
        if given and (config := backend_text(given)):
            yield f"backend_config={config}"

    def _calls(self, made: HloInstructionProto, operands: Sequence[ShapeProto]) -> Iterator[str]:
        ids = called(made)
        if not ids:
            return
        name_of, every = self.computations, dict.fromkeys(ids)
        known = {number: self._sign + name_of.get(number, "null ") for number in every}
        names = [known[number] for number in ids]
        opcode, words = made.opcode, _WORDS.get(made.opcode)
        if opcode == "while":
            # The body stands first in the message, the condition in the text.
            names = [*names[1:2], *names[:1]]
        elif opcode == "conditional" and _is_binary(operands):
            words = ("true_computation", "false_computation")
        if words is not None:
            yield from (f"{word}={name}" for word, name in zip(words, names, strict=False))
        elif opcode == "conditional":
            yield f"branch_computations={{{joined(names)}}}"
        elif opcode in _APPLIED:
            yield f"to_apply={names[0]}"
            if opcode == "call" and made.is_composite:
                yield "is_composite=true"
        elif opcode == "custom-call":
            yield f"called_computations={{{joined(names)}}}"
        elif opcode != "async-start" or ids[0] not in self._inline:
            yield f"calls={joined(names)}"


def _is_binary(operands: Sequence[ShapeProto]) -> bool:
    return bool(operands) and type_names().get(operands[0].element_type) == "pred"


@cache
def _small_types() -> frozenset[str]:
    return frozenset(type_names().values()) - {"tuple", "token", "opaque", "buffer"}


def _is_small(shape: ShapeProto) -> bool:
    """Whether a constant is an array of few elements."""
    name = type_names().get(shape.element_type, "")
    return name in _small_types() and bounded_product(shape.dimensions) <= _FEW


def frontend_text(given: Mapping[str, str]) -> str:
    """What a front end says of an instruction or a program."""
    return braced(f"{name}={as_value(value)}" for name, value in sorted(given.items()))


def backend_text(given: bytes) -> str:
    """What the compiler's back end says of an instruction or a program.

    XLA drops from it a field that its newer versions do not know, where it is empty.
    """
    left = _QUEUES.sub(b"", given)
    return as_value(left) if left else ""
