"""Directories of dumps with very many programs: a file each."""

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
