"""One computation of an HLO text: its instructions, written as they are read.

Names of operands come in all styles (``%a``, ``a``, ``f32[2]{0} %a``). Constants of one element
become a LiteralProto; larger ones are left out: nothing reads them.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence

from peakline.deadline import check_deadline
from peakline.formats.hlo_text.fields import Fields
from peakline.formats.hlo_text.losses import Losses
from peakline.formats.hlo_text.packing import Value, frame, pack, tag, utf8
from peakline.formats.hlo_text.scan import (
    COMMENT,
    FLAT_OPERANDS,
    INSTRUCTION,
    OPCODE,
    BrokenText,
    closing,
    items,
    skip,
    unquoted,
)
from peakline.formats.hlo_text.shapes import Shapes, element_types, parts, shape_end
from peakline.wire.tables import varint

_INTEGERS = {b"s8": "b", b"u8": "B", b"s16": "h", b"u16": "H", b"s32": "", b"s64": "", b"u32": "",
             b"u64": ""}  # fmt: skip
_REALS = {b"f16": "e", b"bf16": "", b"f32": "", b"f64": ""}
_AS_BYTES = frozenset((b"s8", b"s16", b"u16", b"u8", b"f16", b"bf16"))


def scalar(kind: bytes, text: bytes, shape: bytes) -> bytes | None:
    """The literal that ``text`` is, of the type ``kind``, whose ShapeProto is ``shape``; None for
    a type that is not read. Raises ValueError where ``text`` is no such value.
    """
    value = _value(kind, text)
    if value is None:
        return None
    field = "preds" if kind == b"pred" else f"{kind.decode()}s"
    return pack("xla.LiteralProto", {"shape": shape, field: value})


def _value(kind: bytes, text: bytes) -> Value | None:
    try:
        if kind == b"pred":
            return [{b"true": 1, b"false": 0, b"1": 1, b"0": 0}[text]]
        if kind in _INTEGERS:
            number = int(text)
            _check(kind, number)
            return struct.pack("<" + _INTEGERS[kind], number) if kind in _AS_BYTES else [number]
        if kind in _REALS:
            real = _real(text)
            if kind == b"bf16":
                return struct.pack("<H", _upper_half(real))
            if kind == b"f32":
                # Rounded as a number of 32 bits; what is too large is infinite, as in XLA.
                return [_as_float(real)]
            return struct.pack("<e", real) if kind == b"f16" else [real]
        if kind in {b"c64", b"c128"}:
            first, _, second = text.strip(b"()").partition(b",")
            return [_real(first), _real(second)]
    except (KeyError, OverflowError, struct.error):
        raise ValueError(text[:40]) from None
    return None


def _check(kind: bytes, number: int) -> None:
    bits = int(kind[1:])
    least, most = (-(1 << bits - 1), 1 << bits - 1) if kind[:1] == b"s" else (0, 1 << bits)
    if not least <= number < most:
        raise ValueError(number)


def _real(text: bytes) -> float:
    # A NaN may name its bits: nan(0x7f), of which one is as good as another here.
    return float(text.partition(b"(")[0])


def _as_float(real: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", real))[0])
    except OverflowError:
        return float("inf") if real > 0 else float("-inf")


def _upper_half(real: float) -> int:
    bits = int(struct.unpack("<I", struct.pack("<f", _as_float(real)))[0])
    if real != real:  # noqa: PLR0124 (a NaN)
        return bits >> 16
    # To the nearest, ties to even.
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF


_MARKED = re.compile(rb'%([^\s=(){},"]++)')


def operand_names(text: bytes) -> list[bytes]:
    """What the text between the parentheses names, in its order."""
    if not text or text.isspace():
        return []
    if b"/*" in text:
        text = COMMENT.sub(b"", text)
    if b"%" in text and b'"' not in text:
        # A shape has no such mark.
        return _MARKED.findall(text)
    names = [(one.split() or [b""])[-1] for one in items(text)]
    return [unquoted(name.removeprefix(b"%")) for name in names]


_INSTRUCTION, _COMPUTATION = "xla.HloInstructionProto", "xla.HloComputationProto"
_NAME, _OPCODE, _SHAPE, _ID, _LITERAL, _PARAMETER_NUMBER, _OPERANDS, _CONTROLS, _CALLED = (
    tag(_INSTRUCTION, field)
    for field in (
        "name", "opcode", "shape", "id", "literal", "parameter_number", "operand_ids",
        "control_predecessor_ids", "called_computation_ids",
    )
)  # fmt: skip
_MADE, _COMPUTATION_NAME, _COMPUTATION_ID, _ROOT_ID, _PROGRAM_SHAPE, _THREAD = (
    tag(_COMPUTATION, field)
    for field in ("instructions", "name", "id", "root_id", "program_shape", "execution_thread")
)
_IS_FUSION = pack(_COMPUTATION, {"is_fusion_computation": 1})
_PARAMETERS, _RESULT, _PARAMETER_NAMES = (
    tag("xla.ProgramShapeProto", field) for field in ("parameters", "result", "parameter_names")
)
_NUMBER = re.compile(rb"\d{1,18}")
_TYPE = re.compile(rb"\s*([a-z]\w*)")
_EVERY = 4096
_LOW = [bytes((at & 127 | 128, at >> 7 | 128, 128, 128)) for at in range(1 << 14)]
_ASYNC = re.compile(rb"(.+)-(start|update|done)")
_WHOLE = frozenset(b"all-reduce all-gather collective-permute copy async send recv".split())
"""What has opcodes of its own for its start and its end; of others such an ending stands for an
asynchronous call of what comes before it (``ParseOpcode`` of XLA's parser)."""


_FOLLOWERS = frozenset((b"async-update", b"async-done"))


class Computation:
    """The computation ``name`` of id ``number``; `read` fills it.

    ``called`` are the ids of the computations that its instructions call, ``fused`` those of its
    fusions, ``wrapped`` the computations that the text has only in the opcodes of asynchronous
    calls. ``sequence`` has the ids of the instructions in the order of the text, packed.
    """

    def __init__(
        self,
        name: bytes,
        number: int,
        shapes: Shapes,
        fields: Fields,
        losses: Losses,
        id_of: Callable[[bytes], int],
    ) -> None:
        self.name, self.number, self.thread = name, number, b""
        self.called: set[int] = set()
        self.fused: set[int] = set()
        self.wrapped: list[Computation] = []
        self.sequence = self.program_shape = b""
        self._shapes, self._fields, self._losses, self._id_of = shapes, fields, losses, id_of
        self._made: list[bytes] = []
        self._late: list[tuple[int, Sequence[bytes], Sequence[bytes]]] = []
        self._ids: dict[bytes, bytes] = {}
        self._shape_of: dict[bytes, bytes] = {}
        self._parameters: list[tuple[int, bytes, bytes]] = []
        self._order: list[bytes] = []
        self._high = varint(number << 4)
        self._root_id = 0
        self._root_shape = b""
        self._has_root = False

    def read(self, text: bytes, at: int) -> int:
        """Read the instructions from ``at`` on, and return the offset behind the closing brace."""
        while True:
            result = INSTRUCTION.match(text, at)
            if result is None:
                at = skip(text, at)
                if text[at : at + 1] == b"}":
                    break
                result = INSTRUCTION.match(text, at)
                if result is None:
                    raise BrokenText(text, at, "an instruction or }")
            at = self.instruction(text, result)
            if len(self._order) % _EVERY == 0:
                check_deadline()
        if not self._order:
            raise BrokenText(text, at, "an instruction")
        self.close()
        return at + 1

    def instruction(self, text: bytes, result: re.Match[bytes]) -> int:
        """Add the instruction that `INSTRUCTION` found; where it ends."""
        is_root, name, shape, opcode = result.groups()
        at = result.end()
        if opcode is None:
            # Its shape is a tuple, or left out, as people may where it can be inferred.
            end = max(shape_end(text, at), at)
            shape = text[at:end]
            named = OPCODE.match(text, end)
            if named is None:
                raise BrokenText(text, at, "a shape and an opcode")
            opcode, at = named[1], named.end()
        flat = FLAT_OPERANDS.match(text, at)
        if flat is not None:
            inside, at = flat[1], flat.end()
        else:
            end = closing(text, at - 1)
            if end < 0:
                raise BrokenText(text, at, "operands and )")
            inside, at = text[at : end - 1], end
        if name[:1] == b'"':
            name = unquoted(name)
        if is_root is not None and self._has_root:
            raise BrokenText(text, result.start(2), "only one ROOT")
        is_parameter = opcode == b"parameter"
        if is_parameter and not _NUMBER.fullmatch(inside.strip()):
            raise BrokenText(text, result.start(2), "the number of a parameter")
        is_constant = opcode == b"constant"
        operands = [] if is_parameter or is_constant else operand_names(inside)
        wrapped = _ASYNC.fullmatch(opcode)
        stem = wrapped[1] if wrapped is not None and wrapped[1] not in _WHOLE else opcode
        fields = self._fields
        behind = fields.read(text, at, stem, len(operands), self._id_of)
        # What follows an asynchronous start has its call from there.
        calls = [] if opcode in _FOLLOWERS else fields.calls
        controls = fields.controls
        # Nothing is added before the whole instruction is read.
        shape_bytes = self._shape(text, at, shape)
        out = self._start(name, shape_bytes, is_root=is_root is not None)
        self._shape_of[name] = shape
        if is_parameter:
            self._parameter(int(inside), name, shape_bytes, out)
        elif is_constant:
            self._constant(text, at, inside, shape, shape_bytes, out)
        if opcode == b"compare" and b"type" not in fields.said and operands:
            kind = _TYPE.match(self._shape_of.get(operands[0], b""))
            out.append(fields.comparison(element_types().get(kind[1], 0) if kind else 0))
        if wrapped is not None and stem != opcode:
            opcode = b"async-" + wrapped[2]
            made, calls = self._async(opcode, stem, operands, parts(shape))
            out += made
        else:
            out += fields.made
        self._finish(opcode, out, operands, controls, calls)
        return behind

    def add(self, name: bytes, opcode: bytes, shape: bytes) -> None:
        """Add an instruction of which nothing else is known."""
        out = self._start(name, self._shape(b"", 0, shape) if shape else b"", is_root=False)
        self._finish(opcode, out)

    def ids(self) -> dict[bytes, int]:
        """The ids of the instructions by name, until `close`."""
        return {name: _number_in(identity) for name, identity in self._ids.items()}

    def _start(self, name: bytes, shape: bytes, *, is_root: bool) -> list[bytes]:
        """The first fields of an instruction, and its place among the others."""
        at = len(self._order)
        number = self.number << 32 | at
        # The lowest 28 bits of the id are four bytes, the rest is nearly always the same.
        identity = _LOW[at] + self._high if at < len(_LOW) else varint(number)
        if name in self._ids:
            self._losses.repeated(name)
        self._ids[name] = identity
        self._order.append(identity)
        if is_root or not self._has_root:
            # Without a mark the last is the root.
            self._root_id, self._root_shape, self._has_root = number, shape, is_root
        return [frame(_NAME, utf8(name)), frame(_SHAPE, shape), _ID, identity]

    def _finish(
        self,
        opcode: bytes,
        out: list[bytes],
        operands: Sequence[bytes] = (),
        controls: Sequence[bytes] = (),
        calls: Sequence[tuple[int, int]] = (),
    ) -> None:
        """The last fields: opcode and ids. Names of what comes later are looked up at the end."""
        out.append(frame(_OPCODE, opcode))
        if calls:
            called = [number for _, number in sorted(calls, key=lambda call: call[0])]
            out.append(frame(_CALLED, b"".join(map(varint, called))))
            self.called.update(called)
            if opcode == b"fusion":
                self.fused.update(called)
        late_operands, late_controls = operands, controls
        if operands:
            packed = self._packed(_OPERANDS, operands)
            if packed is not None:
                out.append(packed)
                late_operands = ()
        if late_controls:
            packed = self._packed(_CONTROLS, late_controls)
            if packed is not None:
                out.append(packed)
                late_controls = ()
        if late_operands or late_controls:
            self._late.append((len(self._made), late_operands, late_controls))
        self._made.append(b"".join(out))

    def _packed(self, field: bytes, names: Sequence[bytes]) -> bytes | None:
        try:
            return frame(field, b"".join([self._ids[name] for name in names]))
        except KeyError:
            return None

    def _shape(self, text: bytes, at: int, shape: bytes) -> bytes:
        try:
            return self._shapes.of(shape)
        except ValueError:
            self._losses.value(text, at, b"shape")
            return b""

    def _parameter(self, number: int, name: bytes, shape: bytes, out: list[bytes]) -> None:
        if number:
            out += (_PARAMETER_NUMBER, varint(number))
        self._parameters.append((number, shape, name))

    def _constant(
        self, text: bytes, at: int, inside: bytes, shape: bytes, made: bytes, out: list[bytes]
    ) -> None:
        kind, _, rest = shape.partition(b"[")
        if not rest.startswith(b"]"):
            return
        try:
            literal = scalar(kind.strip(), inside.strip(), made)
        except ValueError:
            self._losses.value(text, at, b"constant")
            return
        if literal is not None:
            out.append(frame(_LITERAL, literal))

    def _async(
        self, opcode: bytes, stem: bytes, operands: list[bytes], shapes: list[bytes]
    ) -> tuple[list[bytes], list[tuple[int, int]]]:
        """The fields of an asynchronous call of ``stem``, and whom it calls; its start makes that.

        The call itself has what it shares with all instructions, what it calls the rest.
        """
        fields = self._fields
        if opcode != b"async-start":
            return [made for name, made in fields.named() if name], []
        number = self._id_of(b"\0%d.%d" % (self.number, len(self._order)))
        # Names of a text have no blanks, so that this is no other's.
        inner = Computation(
            b"async_wrapped.%d" % number, number, self._shapes, fields, self._losses, self._id_of
        )
        inner.thread = fields.thread
        for at, operand in enumerate(operands):
            shape = self._shape(b"", 0, self._shape_of.get(operand, b""))
            shape = shape if self._losses.has_room(shape) else b""
            made = inner._start(b"param_%d.%d" % (at, number), shape, is_root=False)
            inner._parameters.append((at, shape, operand))
            inner._finish(b"parameter", [*made, _PARAMETER_NUMBER, varint(at)])
        shape = self._shape(b"", 0, shapes[1]) if len(shapes) > 1 else b""
        made = inner._start(b"%b.%d" % (stem, number), shape, is_root=True)
        inner._finish(
            stem,
            made + [one for name, one in fields.named() if name not in fields.OF_ASYNC],
            [b"param_%d.%d" % (at, number) for at in range(len(operands))],
            calls=fields.calls,
        )
        inner.close()
        self.wrapped.append(inner)
        shared = fields.SHARED | fields.OF_ASYNC
        return [one for name, one in fields.named() if name in shared], [(0, number)]

    def close(self) -> None:
        """Look up what was named before it was there, and put the whole together."""
        for at, operands, controls in self._late:
            more = [self._made[at]]
            for field, names in ((_OPERANDS, operands), (_CONTROLS, controls)):
                there = [name for name in names if name in self._ids]
                self._losses.reference(len(names) - len(there))
                if there:
                    more.append(self._packed(field, there) or b"")
            self._made[at] = b"".join(more)
        self._made = [b"".join([frame(_MADE, one) for one in self._made])]
        self.sequence = b"".join(self._order)
        parameters = sorted(self._parameters, key=lambda one: one[0])
        self.program_shape = b"".join(
            (
                *[frame(_PARAMETERS, made) for _, made, _ in parameters],
                frame(_RESULT, self._root_shape),
                *[frame(_PARAMETER_NAMES, utf8(name)) for _, _, name in parameters],
            )
        )
        # Nothing is looked up any more.
        self._ids, self._shape_of, self._order, self._late = {}, {}, [], []

    def finish(self, *, is_fused: bool) -> bytes:
        """The bytes of HloComputationProto."""
        whole = [frame(_COMPUTATION_NAME, utf8(self.name)), self._made[0]]
        whole.append(frame(_PROGRAM_SHAPE, self.program_shape))
        whole += (_COMPUTATION_ID, varint(self.number), _ROOT_ID, varint(self._root_id))
        if is_fused:
            whole.append(_IS_FUSION)
        if self.thread not in {b"", b"main"}:
            whole.append(frame(_THREAD, utf8(self.thread)))
        return b"".join(whole)


def _number_in(identity: bytes) -> int:
    """The number that a varint is."""
    return sum((byte & 127) << 7 * at for at, byte in enumerate(identity))
