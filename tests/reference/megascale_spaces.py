"""Random XSpaces of TPUs that exchange data with other slices through their hosts.

Every collective is a send, its done, a receive and its done; those of several overlap. Times are no
whole ns, so that what is cut shows.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from peakline.schema import HloProto, XSpace
from reference.xspace_builder import PlaneBuilder, SpaceBuilder, Uint

US = 10**6
RENDEZVOUS, TRANSFER = "_xla_host_transfer_rendezvous", "_xla_megascale_transfer_type"
TYPES = ("ONE_TO_ONE", "ALL_GATHER", "ALL_REDUCE", "ALL_TO_ALL", "REDUCE_SCATTER", "OTHER", "")
_OPS = ("send", "send-done", "recv", "recv-done")
_KINDS = {"f32": 11, "u32": 8, "token": 17, "tuple": 13, "bf16": 16}
_Part = tuple[str, tuple[int, ...]]


class ProgramBuilder:
    """A program whose one computation sends and receives; ``proto`` is the HloProto."""

    def __init__(self, name: str) -> None:
        self.proto = HloProto()
        module = self.proto.hlo_module
        module.name, module.id = name, 7
        self._main = module.computations.add(name="main", id=1)
        module.entry_computation_id, module.entry_computation_name = 1, "main"
        self._parameter = self._add("p", "parameter", (), ("f32", (4,)))
        shape = self._main.instructions[0].shape
        for program in (module.host_program_shape, self._main.program_shape):
            program.parameters.add().CopyFrom(shape)
            program.parameter_names.append("p")
            program.result.CopyFrom(shape)
        self._main.root_id = self._parameter
        self._token = self._add("tok", "after-all", (), ("token", ()))

    def _add(self, name: str, opcode: str, operands: tuple[int, ...], *parts: _Part) -> int:
        made = self._main.instructions.add(name=name, opcode=opcode)
        made.id = len(self._main.instructions)
        made.operand_ids.extend(operands)
        made.shape.element_type = _KINDS["tuple"]
        for kind, sizes in parts:
            shape = made.shape if len(parts) == 1 else made.shape.tuple_shapes.add()
            shape.element_type = _KINDS[kind]
            shape.dimensions.extend(sizes)
            shape.is_dynamic_dimension.extend([False] * len(sizes))
            if kind != "token":
                shape.layout.minor_to_major.extend(reversed(range(len(sizes))))
        return made.id

    def exchange(self, number: int, said: Mapping[str, str], data: _Part) -> None:
        """The four ops of a collective, called ``send.N`` and so on."""
        pending: tuple[_Part, ...] = (data, ("u32", ()), ("token", ()))
        send = self._add(f"send.{number}", "send", (self._parameter, self._token), *pending)
        done = self._add(f"send-done.{number}", "send-done", (send,), ("token", ()))
        recv = self._add(f"recv.{number}", "recv", (self._token,), *pending)
        got = self._add(f"recv-done.{number}", "recv-done", (recv,), data, ("token", ()))
        for place, channel in ((send, 2), (done, 2), (recv, 3), (got, 3)):
            made = self._main.instructions[place - 1]
            made.channel_id, made.is_host_transfer = 2 * number + channel, True
            if place in {send, recv}:
                for name, value in said.items():
                    made.frontend_attributes.map[name] = value


def collective_info(group: int, *, pairs: bool) -> bytes:
    """A DcnCollectiveInfoProto of one group of that many devices, or of pairs."""
    endpoint = bytes([0x08, 1, 0x10, 2])
    if pairs:
        one = bytes([0x0A, len(endpoint), *endpoint, 0x12, len(endpoint), *endpoint])
        return bytes([0x08, 2, 0x1A, len(one), *one])
    members = bytes([0x0A, len(endpoint), *endpoint]) * group
    return bytes([0x08, 5, 0x12, len(members), *members]) if group else b""


def megascale_space(seed: int, *, cores: int = 2, host: bool = True) -> XSpace:
    """A few programs with collectives, run some times on each core."""
    rng = random.Random(seed)
    builder = SpaceBuilder()
    base = rng.choice([5, 1_700_000_000_000_000_321])
    threads = builder.host().line("network", base)
    if host:
        threads.event("MegaScale: send", US, US)
    programs: list[tuple[str, list[tuple[int, bytes]]]] = []
    metadata = builder.plane("/host:metadata")
    for number in range(rng.randint(1, 3)):
        name = f"jit_f{number}"
        made = ProgramBuilder(name)
        exchanges = []
        for place in range(rng.randint(1, 4)):
            said = {RENDEZVOUS: f"rendezvous.{number if rng.random() < 0.7 else 0}.{place}"}
            transfer = rng.choice(TYPES)
            if transfer:
                said[TRANSFER] = transfer
            sizes = tuple(rng.randint(1, 4000) for _ in range(rng.randint(1, 2)))
            made.exchange(place, said, (rng.choice(["f32", "bf16"]), sizes))
            info = collective_info(rng.randint(0, 9), pairs=transfer == "ONE_TO_ONE")
            exchanges.append((place, info))
        entry = metadata.message.event_metadata[metadata.event_id(name)]
        content = {"Hlo Proto": made.proto.SerializeToString(), "program_id": Uint(70 + number)}
        metadata.add_stats(entry, content)
        programs.append((f"{name}({70 + number})", exchanges))
    for core in range(cores):
        _runs(rng, builder.plane(f"/device:TPU:{core}"), programs, base)
    return builder.space


def _runs(
    rng: random.Random,
    plane: PlaneBuilder,
    programs: list[tuple[str, list[tuple[int, bytes]]]],
    base: int,
) -> None:
    modules, ops = plane.line("XLA Modules", base), plane.line("XLA Ops", base)
    at = US
    for _ in range(rng.randint(1, 6)):
        number = rng.randrange(len(programs))
        name, exchanges = programs[number]
        begin = at
        # Each exchange's ops in order, those of several mixed.
        order = [place for place, _ in exchanges for _ in _OPS]
        rng.shuffle(order)
        done = dict.fromkeys(order, 0)
        for place in order:
            at += rng.randint(0, 300 * US)
            opcode = _OPS[done[place]]
            done[place] += 1
            length = rng.randint(1, 30 * US)
            if rng.random() < 0.95:
                ops.event(_kind(plane, number, place, opcode, dict(exchanges)[place]), at, length)
            at += length + rng.randint(1, 999)
            if rng.random() < 0.3:
                ops.event("%fusion", at, 10 * US)
                at += 11 * US
        modules.event(name, begin, at - begin)
        at += rng.randint(1, 100 * US)


def _kind(plane: PlaneBuilder, program: int, place: int, opcode: str, info: bytes) -> str:
    """The kind of event of an op, made on first use."""
    name = f"%{opcode}.{place} = of program {program}"
    entry = plane.message.event_metadata[plane.event_id(name)]
    if not entry.stats:
        entry.display_name = f"{opcode}.{place}"
        stats: dict[str, object] = {"hlo_category": f"host {opcode}"}
        if info and opcode == "send":
            stats["dcn_collective_info"] = info
        plane.add_stats(entry, stats)
    return name
