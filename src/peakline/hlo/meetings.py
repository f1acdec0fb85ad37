"""How often the kernel of a convolution meets its input, not the padding or the holes in it."""

from __future__ import annotations

import math
from functools import lru_cache

_WIDEST_KERNEL = 2**20


@lru_cache(1024)
def meetings(
    size: int, kernel: int, output: int, stride: int, padding: int, spread: int, dilation: int
) -> int:
    """Pairs of a place of the kernel and one of the output that meet an element of the input.

    At output ``o`` and kernel place ``k`` the input is read at
    ``(o * stride + k * spread - padding) / dilation``, if that is whole and in the input. Raises
    ValueError for a kernel that is wider than any real one. Takes no longer for large numbers.
    """
    if not 0 <= kernel <= _WIDEST_KERNEL:
        raise ValueError(kernel)
    if min(size, kernel, output) <= 0:
        return 0
    # Whole are those with k = first + n * each and o = begin + n * turn (mod every), for all n.
    shared = math.gcd(stride, dilation)
    inner = math.gcd(shared, spread)
    if padding % inner:
        return 0
    each, every = shared // inner, dilation // shared
    first = padding // inner * pow(spread // inner, -1, each) % each
    inverse = pow(stride // shared, -1, every)
    begin = (padding - first * spread) // shared * inverse % every
    turn = -(each * spread) // shared * inverse % every

    def met(reach: int) -> int:
        """Those with ``o * stride + k * spread <= reach``."""
        places = range(first, min(kernel - 1, reach // spread) + 1, each)
        # Of the first places all of the output lies within reach.
        whole = range(first, min(places.stop, (reach - (output - 1) * stride) // spread + 1), each)
        count, far = len(places), len(whole)
        start = reach - (first + far * each) * spread - stride * (begin + far * turn)
        slope = each * spread + stride * turn
        found = floor_sum(far, every, -turn, output - 1 - begin)
        found += floor_sum(count - far, stride * every, -slope, start)
        return found - floor_sum(count, every, -turn, -1 - begin)

    return met(padding + (size - 1) * dilation) - met(padding - 1)


def floor_sum(count: int, divisor: int, slope: int, start: int) -> int:
    """The sum of ``(slope * n + start) // divisor`` over all ``n`` below ``count``."""
    found = 0
    while count:
        # The points of a grid below a line, row by row; then with rows and columns exchanged.
        found += slope // divisor * (count * (count - 1) // 2) + start // divisor * count
        slope, start = slope % divisor, start % divisor
        count, start = divmod(slope * count + start, divisor)
        slope, divisor = divisor, slope
    return found
