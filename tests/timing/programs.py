"""Compiled programs made by hand."""

from typing import Any

from peakline.schema import HloProto, PrimitiveType


def f32(*sizes: int, kind: str = "F32") -> tuple[str, tuple[int, ...]]:
    """The type and the sizes of an array."""
    return kind, sizes


class Maker:
    """A module in the making; `data` are its bytes."""

    def __init__(self, name: str = "jit_f") -> None:
        self.proto = HloProto()
        self.proto.hlo_module.name = name
        self._next = 0

    def computation(self, name: str) -> Any:
        """Append a computation; the one added last is where the program begins."""
        self._next += 1
        made = self.proto.hlo_module.computations.add(name=name, id=self._next)
        self.proto.hlo_module.entry_computation_id = self._next
        self.proto.hlo_module.entry_computation_name = name
        return made

    def add(
        self,
        computation: Any,
        opcode: str,
        shape: tuple[str, tuple[int, ...]],
        *operands: Any,
        name: str = "",
        calls: tuple[Any, ...] = (),
        **fields: Any,
    ) -> Any:
        """Append an instruction, which is the computation's root until the next one."""
        self._next += 1
        made = computation.instructions.add(
            name=name or f"{opcode}.{self._next}",
            opcode=opcode,
            id=self._next,
            operand_ids=[operand.id for operand in operands],
            called_computation_ids=[call.id for call in calls],
            **fields,
        )
        self.fill(made.shape, shape)
        computation.root_id = made.id
        return made

    @staticmethod
    def fill(message: Any, shape: tuple[str, tuple[int, ...]]) -> None:
        """Write an array's shape, its last dimension the innermost."""
        message.element_type = PrimitiveType.Value(shape[0])
        message.dimensions.extend(shape[1])
        message.layout.minor_to_major.extend(reversed(range(len(shape[1]))))

    @property
    def data(self) -> bytes:
        """The serialized HloProto."""
        return self.proto.SerializeToString()
