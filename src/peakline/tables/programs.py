"""The compiled programs of a profile, one by one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peakline.arrays import Int64Array, UInt8Array
    from peakline.tables.columns import Columns
    from peakline.tables.losses import Warnings
    from peakline.wire import Decoded

INSTRUCTIONS = "hlo_module.computations.instructions"
"""What `Programs.parts` calls the messages of instructions."""


class Programs(ABC):
    """Programs by number, in the order of the table ``hlo_modules``.

    A profile can hold many large ones: each is read when something of it is wanted. ``left_out``
    counts those of the profile that are not among them.
    """

    left_out = 0

    @abstractmethod
    def __len__(self) -> int: ...

    def report(self, warnings: Warnings) -> None:
        """Count the programs that are left out, once."""
        text = f"compiled programs beyond the first {len(self)}, which are not read"
        warnings.add_once("hlo_programs", text, self.left_out)

    @abstractmethod
    def name(self, number: int) -> str:
        """What the file calls a program, without its id."""

    @abstractmethod
    def program_id(self, number: int) -> int | None:
        """The number by which events name it, None where the profile does not give it."""

    def label(self, number: int) -> str:
        """How XProf lists it: the name, with the id in parentheses where there is one."""
        program_id = self.program_id(number)
        return self.name(number) + (f"({program_id})" if program_id is not None else "")

    @abstractmethod
    def data(self, number: int) -> UInt8Array:
        """The bytes of its HloProto."""

    @abstractmethod
    def release(self, number: int) -> None:
        """Give the memory of `data` back, as far as its bytes come again when they are needed."""

    @abstractmethod
    def read(self, number: int, table: str, columns: AbstractSet[str] | None = None) -> Columns:
        """The rows of one program of a ``hlo_`` table, at least ``columns`` of those that are not
        derived. Row numbers begin with 0; ``module_id`` is left out. Names of instructions have the
        same codes in all tables.
        """

    @abstractmethod
    def instructions(self, number: int, rows: Int64Array, columns: AbstractSet[str]) -> Columns:
        """Some ``rows`` of ``hlo_instructions`` of one program, in their order, as `read`."""

    @abstractmethod
    def parts(self, number: int, paths: Sequence[str]) -> Decoded:
        """What stands in `data` and in no table, as decoded: of ``hlo_module`` its names, its stack
        frames, and where the message of each instruction lies (``@span``), in the order of
        ``hlo_instructions``; of ``buffer_assignment`` values and allocations, and what ``paths``
        name.
        """
