"""Directories of dumps: with very many programs, a file each, or all the texts of one."""

from tests.amplification.cases import hlo_proto, hlo_text


def programs(size: int) -> dict[str, bytes]:
    """Every message is a program of next to nothing."""
    one = hlo_proto.instructions(60)
    name = "module_{:04}.jit_f{}.cpu_after_optimizations.hlo.pb"
    return {name.format(n, n): one for n in range(size // len(one))}


def texts(size: int) -> dict[str, bytes]:
    one = hlo_text.instructions(60)
    name = "module_{:04}.jit_f{}.cpu_after_optimizations.txt"
    return {name.format(n, n): one for n in range(size // len(one))}


def live_ranges(size: int) -> dict[str, bytes]:
    """A program with a text of when its values are live: all of them to the end."""
    name, count = "module_0000.jit_f.cpu_after_optimizations", size // 115
    numbers = range(count)
    values = (f" value: <{n} i{n} @0> (size=4,offset={4 * n}): f32[]\n" for n in numbers)
    ranges = (f"    i{n}{{}}:{n}-{count}\n" for n in numbers)
    return {
        f"{name}.txt": hlo_text.instructions(60),
        f"{name}-buffer-assignment.txt": (
            "BufferAssignment:\nallocation 0: size 4, preallocated-temp:\n" + "".join(values)
        ).encode(),
        f"{name}-live-range.txt": (
            "HloLiveRange (max 4):\n  InstructionSequence:\n"
            + "".join(f"    {n}:i{n}\n" for n in numbers)
            + "  BufferLiveRange:\n"
            + "".join(ranges)
        ).encode(),
    }
