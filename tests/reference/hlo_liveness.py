"""What a compiled program needs by its schedule alone, in the simplest way, on its message.

Every value is an object that knows its first and its last place, and every place of every
computation is looked at by itself. No code of ours but the message classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from peakline.schema import HloProto
from tests.reference.hlo_shapes import bytes_of, kind_of

IN_PLACE = set(
    """
    abs acos acosh asin asinh atanh bitcast-convert cbrt ceil convert copy cosh cosine
    count-leading-zeros erf exponential exponential-minus-one floor imag is-finite log log-plus-one
    logistic negate not popcnt real reduce-precision round-nearest-afz round-nearest-even rsqrt sign
    sine sinh sqrt tan tanh add and atan2 compare complex divide maximum minimum mulhi multiply or
    power remainder shift-left shift-right-arithmetic shift-right-logical stochastic-convert
    subtract xor clamp select map rng
    """.split()
)
CALLS = ("while", "call", "conditional", "async-start")


@dataclass(eq=False)
class Held:
    """A value: who makes it, where in its result, and from which place to which it is held."""

    row: int
    path: tuple[int, ...]
    bytes: int
    opcode: str
    start: int
    end: int
    is_counted: bool = True
    lent_until: int = -1


class Liveness:
    """``whole`` bytes; ``live``: of what holds them row, place in the result, bytes and kind."""

    def __init__(self, proto: HloProto) -> None:
        self.module = proto.hlo_module
        self.computations = {one.id: one for one in self.module.computations}
        every = [one for computation in self.module.computations
                 for one in computation.instructions]  # fmt: skip
        self.row_of = {one.id: row for row, one in enumerate(every)}
        self.constants: dict[int, list[Held]] = {}
        self.parameters: list[Held] = []
        self.results: list[Held] = []
        most, live = self.most(self.module.entry_computation_id)
        constants = [value for one in self.constants.values() for value in one]
        always = sum(value.bytes for value in (*self.parameters, *constants))
        self.whole = always + most
        kinds = [(value, "parameter") for value in self.parameters]
        kinds += [(value, "constant") for value in constants]
        kinds += [(v, "output" if v in self.results else "temporary") for v in live]
        self.live = sorted(
            (v.row, f"{{{','.join(map(str, v.path))}}}" if v.path else "", v.bytes, kind)
            for v, kind in kinds
            if v.bytes
        )

    def most(self, number: int) -> tuple[int, list[Held]]:
        """What a computation needs beside what it is given and gives back, and what that is."""
        computation = self.computations[number]
        by_id = {one.id: one for one in computation.instructions}
        order = list(self.module.schedule.sequences[number].instruction_ids) or list(by_id)
        results: dict[int, Any] = {}
        values: list[Held] = []
        makes: list[list[Held]] = []
        for place, which in enumerate(order):
            one = by_id[which]
            new: list[Held] = []
            operands = [results[operand] for operand in one.operand_ids]
            results[which] = self.result(one, operands, place, new)
            makes.append(new)
            values += new
            if one.opcode not in ("tuple", "get-tuple-element"):
                for value in leaves(operands):
                    value.end = place
        result = results[computation.root_id]
        self.hold(number, values, result, len(order))
        if number == self.module.entry_computation_id:
            for entry in self.module.input_output_alias.entries:
                for one in computation.instructions:
                    if (one.opcode, one.parameter_number) == ("parameter", entry.parameter_number):
                        part = at(results[one.id], entry.parameter_shape_index)
                        lend(part, at(result, entry.output_shape_index))
        # Who computes in place ends the value that it writes over, one place earlier.
        for place, which in enumerate(order):
            one = by_id[which]
            for new in makes[place]:
                for operand in (results[number] for number in over(one, new.path)):
                    if (
                        new.is_counted
                        and isinstance(operand, Held)
                        and (operand.is_counted or new.end <= operand.lent_until)
                        and operand.end == place
                        and operand.bytes == new.bytes
                    ):
                        # What lies in memory of others is lent in turn.
                        new.lent_until, new.is_counted = operand.lent_until, operand.is_counted
                        operand.lent_until = -1
                        operand.end = place - 1
                        break
        best: tuple[int, list[Held]] = (0, [])
        for place, which in enumerate(order):
            held = [v for v in values if v.is_counted and v.start <= place <= v.end]
            inside: tuple[int, list[Held]] = (0, [])
            if by_id[which].opcode in CALLS:
                for called in by_id[which].called_computation_ids:
                    needs = self.most(called)
                    inside = needs if needs[0] > inside[0] else inside
            total = sum(value.bytes for value in held) + inside[0]
            if total > best[0]:
                best = total, held + inside[1]
        return best

    def hold(self, number: int, values: list[Held], result: Any, end: int) -> None:
        """Say what is held by others, and what to the end."""
        constants = [value for value in values if value.opcode == "constant"]
        self.constants[number] = constants
        for value in values:
            value.is_counted = value.opcode not in ("parameter", "constant")
        returned = leaves([result])
        if number != self.module.entry_computation_id:
            for value in returned:
                value.is_counted = False
            return
        self.parameters = [value for value in values if value.opcode == "parameter"]
        self.results = returned
        for value in returned:
            value.end = end
        for entry in self.module.input_output_alias.entries:
            for value in leaves([at(result, entry.output_shape_index)]):
                value.is_counted = False

    def result(self, one: Any, operands: list[Any], place: int, new: list[Held]) -> Any:
        """The values that make up a result, those it makes itself in ``new``."""

        def make(shape: Any, path: tuple[int, ...] = ()) -> Any:
            if kind_of(shape) == "tuple":
                return [make(part, (*path, n)) for n, part in enumerate(shape.tuple_shapes)]
            size = 0 if shape.layout.memory_space else bytes_of(shape)
            value = Held(self.row_of[one.id], path, size, one.opcode, place, place)
            new.append(value)
            return value

        parts, opcode = one.shape.tuple_shapes, one.opcode
        match opcode:
            case "tuple":
                return operands
            case "get-tuple-element":
                return operands[0][one.tuple_index]
            case (
                "bitcast" | "while" | "opt-barrier" | "optimization-barrier" | "add-dependency"
                | "domain" | "all-reduce-done" | "async-update" | "recv-done" | "send-done"
            ):  # fmt: skip
                return operands[0]
            case "copy-start":
                return [make(parts[0], (0,)), operands[0], None]
            case "recv":
                return [make(parts[0], (0,)), None, None]
            case "send":
                return [operands[0], None, None]
            case "all-gather-start" | "collective-permute-start" | "async-start":
                given = operands if kind_of(parts[0]) == "tuple" else operands[0]
                return [given, make(parts[1], (1,)), *(None for _ in parts[2:])]
            case "copy-done":
                return operands[0][0]
            case "all-gather-done" | "collective-permute-done" | "async-done":
                return operands[0][1]
        return written_into(make, one, operands)


def written_into(make: Any, one: Any, operands: list[Any]) -> Any:
    """What is made by an instruction that writes parts of its result into its operands."""
    aliases = {tuple(a.output_shape_index): a for a in one.output_operand_aliasing}

    def part(shape: Any, path: tuple[int, ...]) -> Any:
        if path in aliases:
            return at(operands[aliases[path].operand_index], aliases[path].operand_shape_index)
        if kind_of(shape) == "tuple":
            return [part(inner, (*path, n)) for n, inner in enumerate(shape.tuple_shapes)]
        return make(shape, path)

    return part(one.shape, ())


def lend(value: Any, result: Any) -> None:
    """Let what is given be written over until the result that has its memory is made."""
    if isinstance(value, Held) and isinstance(result, Held) and value is not result:
        value.lent_until = result.start


def over(one: Any, path: tuple[int, ...]) -> list[int]:
    """The operands that an instruction may write over."""
    operands = list(one.operand_ids)
    if one.opcode == "sort":
        return operands[path[0] :][:1] if path else operands[:1]
    if one.opcode in ("dynamic-update-slice", "scatter"):
        return operands[:1]
    if one.opcode == "triangular-solve":
        return operands[1:2]
    is_loop = one.opcode == "fusion" and one.fusion_kind == "kLoop"
    return operands if is_loop or one.opcode in IN_PLACE else []


def leaves(place: Any) -> list[Held]:
    """The values of a tuple."""
    if isinstance(place, list):
        return [value for part in place for value in leaves(part)]
    return [] if place is None else [place]


def at(place: Any, path: Any) -> Any:
    """The part of a tuple at a path."""
    for number in path:
        place = place[number]
    return place
