"""What XProf counts as the floating-point operations of one element on a GPU: clock cycles.

XLA's GPU cost model (``xla/service/gpu/model``) holds, for some devices, how many clock cycles an
elementwise opcode takes per element. XProf asks it without naming a device, is given the table of
its default (``sm_86``), and shows the cycles as FLOPs, whatever device the profile is of. Read out
of xprof 2.24.2; what the table lacks counts 3.
"""

from __future__ import annotations

CYCLES_OF_OTHERS = 3

_TABLE = """
s8: divide 370 power 392
s16: divide 367 power 396
s32: divide 306
s64: divide 918 power 601
u8: divide 306 power 388
u16: divide 302 power 399
u32: divide 115
u64: divide 838 power 604
f16: cbrt 925 cosine 691 exponential 108 exponential-minus-one 396 log 266 log-plus-one 284
    logistic 226 rsqrt 97 sqrt 97 tanh 212 atan2 482 power 975
f32: cbrt 867 cosine 662 exponential 86 exponential-minus-one 381 log 244 log-plus-one 262
    logistic 176 rsqrt 75 sine 662 sqrt 75 tanh 190 atan2 486 power 925
f64: cbrt 6339 cosine 1717 exponential 1652 exponential-minus-one 1900 log 608 log-plus-one 2073
    logistic 2412 rsqrt 698 sine 1789 sqrt 986 tanh 1609 add 97 atan2 3747 divide 2016 multiply 97
    power 5511 subtract 97
c64: exponential 1360 exponential-minus-one 1400 log 950 log-plus-one 842 rsqrt 2383 sqrt 3193
    atan2 5353 divide 687 power 3351
c128: cosine 6613 exponential 4028 exponential-minus-one 4161 log 7599 log-plus-one 6962
    rsqrt 11318 sine 5878 sqrt 15606 tanh 9939 add 97 atan2 39027 divide 7941 multiply 270
    power 18205 subtract 97
"""


def _read() -> dict[tuple[str, str], int]:
    cycles = {}
    kind = ""
    words = iter(_TABLE.split())
    for word in words:
        if word.endswith(":"):
            kind = word[:-1]
        else:
            cycles[word, kind] = int(next(words))
    return cycles


CYCLES = _read()
"""Clock cycles by opcode and element type, such as ``("tanh", "f32")``."""
