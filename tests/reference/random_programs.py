"""Small compiled programs at random: tuples, loops, calls, branches, what is asynchronous."""

from __future__ import annotations

from random import Random
from typing import Any

from peakline.schema import HloInstructionProto, HloProto, PrimitiveType

Shape = Any
"""The type of an array, its size and its memory space, or a list of the shapes of a tuple's parts.
"""
TOKEN = ("TOKEN", 0, 0)
FLAG = ("U32", 1, 0)
OPCODES = "add negate select reduce dynamic-update-slice scatter sort triangular-solve".split()


def random_program(seed: int, instructions: int = 14) -> HloProto:
    """A program in which every computation has a schedule that is not the order of the file."""
    return _Program(Random(seed), instructions).proto


class _Program:
    def __init__(self, rng: Random, instructions: int) -> None:
        self.rng, self.proto, self.last = rng, HloProto(), 0
        self.proto.hlo_module.name = "jit_odd"
        parameters = [self.shape() for _ in range(rng.randrange(1, 4))]
        number, shape = self.computation(parameters, None, instructions, 0)
        self.proto.hlo_module.entry_computation_id = number
        self.proto.hlo_module.entry_computation_name = f"c{number}"
        for parameter in range(len(parameters)):
            if rng.random() < 0.3:
                entry = self.proto.hlo_module.input_output_alias.entries.add(
                    parameter_number=parameter
                )
                self.walk(shape, entry.output_shape_index)
                self.walk(parameters[parameter], entry.parameter_shape_index)

    def walk(self, shape: Shape, path: Any) -> None:
        """Add to ``path`` what leads to an array of the shape."""
        while isinstance(shape, list) and shape:
            path.append(self.rng.randrange(len(shape)))
            shape = shape[path[-1]]

    def number(self) -> int:
        self.last += 1
        return self.last

    def array(self) -> Shape:
        return self.rng.choice(("F32", "F32", "BF16", "S4", "PRED")), self.rng.choice((1, 8, 8)), 0

    def shape(self, depth: int = 0) -> Shape:
        if depth < 2 and self.rng.random() < 0.25:
            return [self.shape(depth + 1) for _ in range(self.rng.randrange(1, 4))]
        return self.array()

    def fill(self, message: Any, shape: Shape) -> None:
        if isinstance(shape, list):
            message.element_type = PrimitiveType.Value("TUPLE")
            for part in shape:
                self.fill(message.tuple_shapes.add(), part)
            return
        kind, size, space = shape
        message.element_type = PrimitiveType.Value(kind)
        if kind != "TOKEN":
            message.dimensions.append(size)
            message.layout.minor_to_major.append(0)
            message.layout.memory_space = space

    def computation(
        self, parameters: list[Shape], wanted: Shape | None, instructions: int, depth: int
    ) -> tuple[int, Shape]:
        """Its number and the shape of its result, ``wanted`` where that is given."""
        made: list[tuple[Any, Shape]] = []

        def add(opcode: str, shape: Shape, *operands: int, **fields: Any) -> int:
            one = type(self.proto.hlo_module.computations.add().instructions.add())()
            del self.proto.hlo_module.computations[-1]
            one.id, one.opcode = self.number(), opcode
            one.name = f"{opcode}.{one.id}"
            one.operand_ids.extend(made[operand][0].id for operand in operands)
            for name, value in fields.items():
                field = getattr(one, name)
                field.extend(value) if isinstance(value, list) else setattr(one, name, value)
            self.fill(one.shape, shape)
            made.append((one, shape))
            return len(made) - 1

        for place, shape in enumerate(parameters):
            add("parameter", shape, parameter_number=place)
        for _ in range(instructions):
            self.instruction(add, made, depth)
        if wanted is not None:
            root = self.wanted(add, wanted)
        else:
            root = add("tuple", [], *())
            parts = [self.rng.randrange(root) for _ in range(self.rng.randrange(4))]
            root = add("tuple", [made[part][1] for part in parts], *parts)
        number = self.number()
        self.place(number, [one for one, _ in made], made[root][0].id)
        return number, made[root][1]

    def wanted(self, add: Any, shape: Shape) -> int:
        if isinstance(shape, list):
            parts = [self.wanted(add, part) for part in shape]
            return int(add("tuple", shape, *parts))
        return int(add(self.rng.choice(("iota", "constant", "rng")), shape))

    def place(self, number: int, made: list[Any], root: int) -> None:
        """Write a computation, its instructions in one order and its schedule in another."""
        computation = self.proto.hlo_module.computations.add(
            name=f"c{number}", id=number, root_id=root
        )
        order = self.proto.hlo_module.schedule.sequences[number].instruction_ids
        waiting = list(made)
        while waiting:
            there = set(order)
            one = self.rng.choice([one for one in waiting if there.issuperset(one.operand_ids)])
            order.append(one.id)
            waiting.remove(one)
        computation.instructions.extend(made)

    def instruction(self, add: Any, made: list[tuple[Any, Shape]], depth: int) -> None:
        """One more, or what belongs together."""
        rng = self.rng
        some = rng.randrange(len(made))
        shape = made[some][1]
        same = [n for n, (_, other) in enumerate(made) if other == shape]
        roll = rng.randrange(16 if depth < 2 else 12)
        if isinstance(shape, list) and shape and rng.random() < 0.7:
            part = rng.randrange(len(shape))
            add("get-tuple-element", shape[part], some, tuple_index=part)
        elif roll == 0:
            parts = [rng.randrange(len(made)) for _ in range(rng.randrange(4))]
            add("tuple", [made[part][1] for part in parts], *parts)
        elif roll == 1:
            add(rng.choice(("bitcast", "opt-barrier", "add-dependency")), shape, some)
        elif roll == 2:
            add("constant", self.array())
        elif roll == 3:
            add("after-all", TOKEN)
        elif roll < 6:
            kind = rng.choice(("kLoop", "kInput"))
            add("fusion", self.shape(), some, rng.randrange(len(made)), fusion_kind=kind)
        elif roll == 6 and rng.random() < 0.6:
            self.writes_into(add, some, shape)
        elif roll == 6:
            add(rng.choice(("sort", "custom-call", "dot")), self.shape(), *rng.choices(same, k=2))
        elif roll == 7 and not isinstance(shape, list):
            self.asynchronous(add, some, shape)
        elif roll < 12:
            add(rng.choice(OPCODES), shape, *rng.choices(same, k=rng.randrange(1, 4)))
        elif roll < 14:
            body, _ = self.computation([shape], shape, rng.randrange(4), depth + 1)
            condition, _ = self.computation([shape], ("PRED", 1, 0), rng.randrange(3), depth + 1)
            add("while", shape, some, called_computation_ids=[body, condition])
        elif roll == 14:
            called, result = self.computation([shape], None, rng.randrange(5), depth + 1)
            add("call", result, some, called_computation_ids=[called])
        else:
            result = self.shape()
            branches = [
                self.computation([shape], result, rng.randrange(5), depth + 1)[0] for _ in range(2)
            ]
            index = add("constant", ("S32", 1, 0))
            add("conditional", result, index, some, some, called_computation_ids=branches)

    def writes_into(self, add: Any, some: int, shape: Shape) -> None:
        """A custom call or a fusion that writes a part of its result into one of an operand."""
        part: list[int] = []
        while isinstance(shape, list) and shape and self.rng.random() < 0.8:
            part.append(self.rng.randrange(len(shape)))
            shape = shape[part[-1]]
        before = [self.array() for _ in range(self.rng.randrange(3))]
        result: Shape = [*before, shape] if before or self.rng.random() < 0.3 else shape
        alias = HloInstructionProto().output_operand_aliasing.add()
        alias.operand_shape_index.extend(part)
        if result is not shape:
            alias.output_shape_index.append(len(before))
        opcode = self.rng.choice(("custom-call", "fusion"))
        add(opcode, result, some, output_operand_aliasing=[alias])

    def asynchronous(self, add: Any, some: int, shape: Shape) -> None:
        kind, size, _ = shape
        if kind == "TOKEN":
            return
        match self.rng.randrange(5):
            case 0:
                there = kind, size, self.rng.choice((0, 1, 5))
                add("copy-done", there, add("copy-start", [there, shape, FLAG], some))
            case 1:
                done = kind, 4 * size, 0
                add("all-gather-done", done, add("all-gather-start", [shape, done], some))
            case 2:
                start = add("collective-permute-start", [shape, shape, FLAG, FLAG], some)
                add("collective-permute-done", shape, start)
            case 3:
                called, result = self.computation([shape], None, 3, 2)
                start = add(
                    "async-start", [[shape], result, FLAG], some, called_computation_ids=[called]
                )
                start = add("async-update", [[shape], result, FLAG], start)
                add("async-done", result, start)
            case 4:
                token = add("after-all", TOKEN)
                start = add("recv", [shape, FLAG, TOKEN], token)
                add("get-tuple-element", shape, add("recv-done", [shape, TOKEN], start))
                add("send-done", TOKEN, add("send", [shape, FLAG, TOKEN], some, token))
