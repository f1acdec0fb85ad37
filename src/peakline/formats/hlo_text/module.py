"""HLO text as HloProto: every statement of the text is read once, and written as it is read.

The syntax is that of ``HloModule::ToString`` and of its parser in openxla/xla (``xla/hlo/parser``),
in all its styles: with and without ``%``, with and without the shapes of operands.
"""

from __future__ import annotations

from peakline.deadline import check_deadline
from peakline.formats.hlo_text.computation import Computation
from peakline.formats.hlo_text.fields import Fields
from peakline.formats.hlo_text.header import MODULE, module_fields, stack_frames
from peakline.formats.hlo_text.losses import Losses
from peakline.formats.hlo_text.packing import message, pack, utf8
from peakline.formats.hlo_text.scan import (
    COMPUTATION,
    FLAT_SIGNATURE,
    NAME,
    BrokenText,
    attributes,
    closing,
    skip,
    unquoted,
)
from peakline.formats.hlo_text.shapes import Shapes, shape_end
from peakline.tables.reader import Warnings
from peakline.wire.tables import varint

_HEADER = b"HloModule"


def translate_module(text: bytes | str) -> tuple[bytes, Warnings]:
    """A text of one module as the bytes of xla.HloProto, and what was lost on the way.

    Ids are new ones: that of a computation counts from 1, the id of an instruction is that of its
    computation times 2^32 and its number in it, as XLA itself has them. Raises InputError, with the
    line, where the text breaks the syntax.
    """
    (result,), losses = _translate(text, most=1)
    return result[1], losses


def translate_modules(text: bytes | str) -> tuple[list[tuple[str, bytes]], Warnings]:
    """All modules of a text, one behind the other: their names, and HloProtos as above."""
    return _translate(text, most=None)


def _translate(text: bytes | str, most: int | None) -> tuple[list[tuple[str, bytes]], Warnings]:
    data = text.encode("utf-8", "replace") if isinstance(text, str) else text
    warnings = Warnings()
    losses = Losses(warnings, len(data))
    at = skip(data, 3 if data.startswith(b"\xef\xbb\xbf") else 0)
    result: list[tuple[str, bytes]] = []
    while at < len(data) or not result:
        if len(result) == most:
            raise BrokenText(data, at, "the end of the text")
        module = _Module(data, losses)
        at = module.read(at)
        result.append((module.name.decode("utf-8", "replace"), message(1, module.finish())))
    return result, warnings


class _Module:
    """A module while it is read."""

    def __init__(self, text: bytes, losses: Losses) -> None:
        self.name = b""
        self._text, self._losses = text, losses
        self._shapes, self._attributes = Shapes(), Fields(losses)
        self._fields: list[bytes] = []
        self._is_scheduled = self._has_layout = False
        self._computations: list[Computation] = []
        self._ids: dict[bytes, int] = {}
        """Ids of computations by name, given to a name at its first mention."""
        self._defined: set[int] = set()
        self._entry: Computation | None = None

    def read(self, at: int) -> int:
        """Read the module at ``at``, and return where it ends."""
        text = self._text
        if text.startswith(_HEADER, at):
            at = self._header(at)
        frames, at = stack_frames(text, skip(text, at))
        self._fields.append(frames)
        while at < len(text) and not text.startswith(_HEADER + b" ", at):
            check_deadline()
            at = skip(text, self._computation(at))
        if not self._computations:
            raise BrokenText(text, at, "a computation")
        if self._entry is None:
            if self.name:
                self._losses.entry()
            self._entry = self._computations[-1]
        if not self.name:
            self.name = b"module_" + self._entry.name
        return at

    def _header(self, at: int) -> int:
        text = self._text
        result = NAME.match(text, skip(text, at + len(_HEADER)))
        if result is None:
            raise BrokenText(text, at, "HloModule and a name")
        self.name = unquoted(result[1])
        end = result.end()
        for name, value, behind in attributes(text, result.end()):
            end = behind
            self._is_scheduled |= name == b"is_scheduled" and value == b"true"
            self._has_layout |= name == b"entry_computation_layout"
            try:
                fields = module_fields(name, value, self._shapes)
            except (ValueError, UnicodeDecodeError):
                self._losses.value(text, end, name)
                continue
            if fields is None:
                self._losses.attribute(name)
            else:
                self._fields.append(fields)
        return end

    def _computation(self, at: int) -> int:
        text = self._text
        results = COMPUTATION.match(text, at)
        if results is None:
            raise BrokenText(text, at, "a computation")
        flat = FLAT_SIGNATURE.match(text, results.end())
        body = flat.end() if flat is not None else skip(text, results.end())
        if text[body : body + 1] == b"(":
            # Parameters and result are in the instructions, too.
            arrow = skip(text, max(closing(text, body), 0))
            result = skip(text, arrow + 2)
            end = shape_end(text, result) if text.startswith(b"->", arrow) else -1
            if end < 0:
                raise BrokenText(text, body, "the parameters of a computation, ->, its result")
            body = skip(text, end)
        if text[body : body + 1] != b"{":
            raise BrokenText(text, body, "{ and the instructions of a computation")
        name = unquoted(results[2])
        number = self.id_of(name)
        if number in self._defined:
            self._losses.repeated(name)
            number = self.id_of(name + b"\0%d" % len(self._ids))
        self._defined.add(number)
        made = Computation(name, number, self._shapes, self._attributes, self._losses, self.id_of)
        end = made.read(text, body + 1)
        for wrapped in made.wrapped:
            self._defined.add(wrapped.number)
            self._computations.append(wrapped)
        self._computations.append(made)
        if results[1] is not None:
            if self._entry is not None:
                raise BrokenText(text, at, "only one ENTRY")
            self._entry = made
        for key, value, behind in attributes(text, end):
            end = behind
            if key == b"execution_thread":
                made.thread = unquoted(value)
            else:
                self._losses.attribute(key)
        return end

    def id_of(self, name: bytes) -> int:
        """The id of the computation called ``name``."""
        return self._ids.setdefault(name, len(self._ids) + 1)

    def finish(self) -> bytes:
        """The bytes of HloModuleProto."""
        entry = self._entry
        assert entry is not None  # noqa: S101 (after `read`)
        fused = {number for one in self._computations for number in one.fused}
        called = {number for one in self._computations for number in one.called}
        self._losses.reference(len(called - self._defined))
        out = [
            pack(MODULE, {"name": utf8(self.name), "entry_computation_name": utf8(entry.name),
                          "entry_computation_id": entry.number}),
            *self._fields,
        ]  # fmt: skip
        if not self._has_layout:
            out.append(message(4, entry.program_shape))
        out += [message(3, one.finish(is_fused=one.number in fused)) for one in self._computations]
        if self._is_scheduled:
            sequences = [
                message(1, varint(8) + varint(one.number) + message(2, message(1, one.sequence)))
                for one in self._computations
                if one.number not in fused
            ]
            out.append(message(7, b"".join(sequences)))
        return b"".join(out)
