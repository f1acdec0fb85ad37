"""How often kernels meet their inputs, against counting it place by place."""

import random

import pytest

from peakline.hlo.cost_rules import floor_sum, meetings


def one_by_one(size, kernel, output, stride, padding, spread, dilation):
    read = (o * stride + k * spread - padding for o in range(max(output, 0)) for k in range(kernel))
    return sum(at % dilation == 0 and 0 <= at // dilation < size for at in read)


def test_windows_of_all_kinds():
    choose = random.Random(5)
    met = 0
    for most in [3, 8, 20] * 700:
        sizes = choose.randint(-1, most), choose.randint(0, most), choose.randint(-1, most)
        steps = [choose.randint(1, choose.choice([1, 3, most])) for _ in range(3)]
        window = *sizes, steps[0], choose.randint(-most, 2 * most), *steps[1:]
        assert meetings(*window) == one_by_one(*window), window
        met += meetings(*window) > 0
    assert met > 700


def test_a_wide_one():
    wide = 2**20
    # Without padding every place of the kernel meets the input at every place of the output.
    assert meetings(2 * wide - 1, wide, wide, 1, 0, 1, 1) == wide * wide
    with pytest.raises(ValueError, match=str(wide + 1)):
        meetings(wide, wide + 1, wide, 1, 0, 1, 1)


def test_sums_of_quotients():
    choose = random.Random(6)
    for _ in range(500):
        count, divisor = choose.randint(0, 30), choose.randint(1, 12)
        slope, start = (choose.randint(-40, 40) for _ in range(2))
        plain = sum((slope * n + start) // divisor for n in range(count))
        assert floor_sum(count, divisor, slope, start) == plain
