"""The cost of each opcode, but for fusions, by the rules of XLA's cost analysis.

See `peakline.hlo.cost`. A rule gets an instruction whose reads and writes are
already set to the whole of its operands and its result, and says what is different.

A call of cuDNN's attention says its shapes in the ``cudnn_fmha_backend_config`` of its
``GpuBackendConfig`` (``xla/service/gpu/backend_configs.proto``), one of Transformer Engine in its
attributes (``transformer_engine/jax/cpp_extensions/attention.py``). Counted are the matrix
products, whole: as a program without the library would count them, in which a mask saves none
either.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from peakline.formats.hlo_proto.categories import ELEMENTWISE
from peakline.formats.hlo_proto.shapes import bounded_product
from peakline.hlo.fusion import SumOf, fusion
from peakline.hlo.program import (
    CONVOLUTIONS,
    MATRIX_PRODUCTS,
    Made,
    Program,
    Sum,
    elements,
    kind_of,
    leaves,
    size_of,
    whole_size_of,
)

if TYPE_CHECKING:
    from peakline.schema import ShapeProto


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
        result = floor_sum(far, every, -turn, output - 1 - begin)
        result += floor_sum(count - far, stride * every, -slope, start)
        return result - floor_sum(count, every, -turn, -1 - begin)

    return met(padding + (size - 1) * dilation) - met(padding - 1)


def floor_sum(count: int, divisor: int, slope: int, start: int) -> int:
    """The sum of ``(slope * n + start) // divisor`` over all ``n`` below ``count``."""
    result = 0
    while count:
        # The points of a grid below a line, row by row; then with rows and columns exchanged.
        result += slope // divisor * (count * (count - 1) // 2) + start // divisor * count
        slope, start = slope % divisor, start % divisor
        count, start = divmod(slope * count + start, divisor)
        slope, divisor = divisor, slope
    return result


_CUDNN = [
    f"__cudnn$fmha{name}"
    for name in ("Softmax", "SoftmaxDropout", "ScaleBiasSoftmax", "ScaleBiasSoftmaxDropout")
]
"""What is called of cuDNN (``xla/service/gpu/cublas_cudnn.cc``); `_BACKWARD` for gradients."""
_BACKWARD = "Backward"
_ENGINE, _ENGINE_BACKWARD = "te_fused_attn_forward_ffi", "te_fused_attn_backward_ffi"
_SIZES = (b"qk_head_dim", b"v_head_dim")
_NUMBER = re.compile(rb"\b(\w++) = (\d{1,18}+) : i64")


class _Attention(NamedTuple):
    """``scores`` are those of every query for every key, in all heads and of the whole batch;
    ``key_size`` and ``value_size`` the elements of one key and of one value.
    """

    scores: int
    key_size: int
    value_size: int


def attention_cost(made: Made) -> tuple[float, float] | None:
    """Flops and transcendentals of a call; None for a call of anything else.

    Scores and what they weigh are two products; gradients are the scores again, and those of
    values, weights, queries and keys. Each score has one exponential. Raises ArithmeticError,
    LookupError, TypeError or ValueError where the call does not say its shapes.
    """
    known = _CALLS.get(made.proto.custom_call_target)
    if known is None:
        return None
    read, is_backward = known
    scores, key_size, value_size = read(made)
    each = 3 * key_size + 2 * value_size if is_backward else key_size + value_size
    return 2.0 * scores * each, float(scores)


def _of_cudnn(made: Made) -> _Attention:
    config = json.loads(made.proto.backend_config)["cudnn_fmha_backend_config"]
    batch, heads, queries, keys = map(int, config["intermediate_tensor_shape"]["dimensions"])
    rows = batch * heads * queries
    # Queries, and either the result or, with the same shape, its gradient: both are stored by row.
    is_backward = made.proto.custom_call_target.endswith(_BACKWARD)
    result = made.operands[4].shape if is_backward else leaves(made.shape)[0][1]
    sizes = (elements(shape) // rows for shape in (made.operands[0].shape, result))
    return _Attention(rows * keys, *sizes)


def _of_engine(made: Made) -> _Attention:
    result = {name: int(value) for name, value in _NUMBER.findall(made.proto.backend_config)}
    rows = result[b"input_batch"] * result[b"attn_heads"] * result[b"q_max_seqlen"]
    # Before version 2.3 keys and values had one size.
    sizes = (result[name if name in result else b"head_dim"] for name in _SIZES)
    return _Attention(rows * result[b"kv_max_seqlen"], *sizes)


_CALLS: dict[str, tuple[Callable[[Made], _Attention], bool]] = {
    **dict.fromkeys(_CUDNN, (_of_cudnn, False)),
    **dict.fromkeys([f"{name}{_BACKWARD}" for name in _CUDNN], (_of_cudnn, True)),
    _ENGINE: (_of_engine, False),
    _ENGINE_BACKWARD: (_of_engine, True),
}


Rule = Callable[[Made, SumOf, Program], None]
TRANSCENDENTAL = frozenset(
    "acos acosh asin asinh atan2 atanh cbrt cosh cosine erf exponential exponential-minus-one log "
    "log-plus-one logistic power rsqrt sine sinh sqrt tan tanh".split()
)
_FMA = 2


def prepare(made: Made) -> None:
    """What an instruction touches where nothing else is said: its operands and its result.

    Of an operand that is a tuple it reads the table of pointers; of a result all parts are written.
    XLA of 2023 counted the table of the result instead; that of JAX 0.10.2 and XProf 2.24.2 no
    longer does.
    """
    made.read = {(n, ()): size_of(operand.shape) for n, operand in enumerate(made.operands)}
    made.out = {(): whole_size_of(made.shape)}
    made.bytes = float(sum(made.read.values()) + made.out[()])


def nothing_special(_made: Made, _sum_of: SumOf, _program: Program) -> None:
    """Reads its operands, writes its result, computes nothing."""


def untouched(made: Made, _sum_of: SumOf, _program: Program) -> None:
    """Names what exists already."""
    made.bytes = 0.0
    made.out = {(): 0}
    made.read = dict.fromkeys(made.read, 0)


def _elementwise(made: Made, _sum_of: SumOf, _program: Program) -> None:
    count = elements(made.shape)
    if made.opcode in TRANSCENDENTAL:
        made.transcendentals = float(count)
    else:
        made.flops = float(count)


def _tuple(made: Made, _sum_of: SumOf, _program: Program) -> None:
    """Only the table of pointers is written."""
    made.bytes = float(size_of(made.shape))
    made.out = {(): size_of(made.shape)}
    made.read = dict.fromkeys(made.read, 0)


def _slice(made: Made, _sum_of: SumOf, _program: Program) -> None:
    size = size_of(made.shape)
    made.bytes = 2.0 * size
    made.read[0, ()] = size
    made.use[0] = elements(made.shape) / elements(made.operands[0].shape)


def _indexed_slice(made: Made, sum_of: SumOf, program: Program) -> None:
    """A slice, or a gather of slices, with the places of where they begin."""
    _slice(made, sum_of, program)
    made.bytes += size_of(made.operands[1].shape)


def _dynamic_update_slice(made: Made, _sum_of: SumOf, _program: Program) -> None:
    """Writes into its first operand, in place."""
    update, start = made.operands[1].shape, made.operands[2].shape
    made.bytes = 2.0 * size_of(update) + size_of(start)
    made.out = {(): size_of(update)}
    made.read[0, ()] = 0
    whole = elements(made.shape)
    made.use[0] = (whole - elements(update)) / whole


def _scatter(made: Made, sum_of: SumOf, _program: Program) -> None:
    """Operands, indices, updates: as many updates as operands."""
    count = (len(made.operands) - 1) // 2
    updates = made.operands[count + 1 :]
    sizes = [size_of(update.shape) for update in updates]
    for number, size in enumerate(sizes):
        made.read[number, ()] = made.read[count + 1 + number, ()] = size
    made.bytes = 3.0 * sum(sizes) + size_of(made.operands[count].shape)
    made.out = {(): sum(sizes)}
    _applied(made, sum_of(0), elements(updates[0].shape))


def _applied(made: Made, function: Sum, times: float) -> None:
    made.flops += function.flops * times
    made.transcendentals += function.transcendentals * times


def _dot(made: Made, _sum_of: SumOf, _program: Program) -> None:
    contracting = made.proto.dot_dimension_numbers.lhs_contracting_dimensions
    made.flops = product(made.operands[0].shape, made.shape, list(contracting))


def product(left: ShapeProto, result: ShapeProto, contracting: list[int]) -> float:
    """The operations of a matrix product that sums over dimensions of its left operand."""
    width = bounded_product(max(left.dimensions[number], 0) for number in contracting)
    return float(_FMA * elements(result) * width)


def _ragged_dot(made: Made, _sum_of: SumOf, _program: Program) -> None:
    numbers = made.proto.ragged_dot_dimension_numbers
    contracting = list(numbers.dot_dimension_numbers.lhs_contracting_dimensions)
    # The dimensions of the groups are taken from the front of the result.
    groups = bounded_product(
        max(d, 1) for d in made.shape.dimensions[: len(numbers.rhs_group_dimensions)]
    )
    made.flops = product(made.operands[0].shape, made.shape, contracting) / groups


def _convolution(made: Made, _sum_of: SumOf, _program: Program) -> None:
    made.flops = convolved(made, made.shape)


def convolved(made: Made, result: ShapeProto) -> float:
    """A multiplication and an addition wherever the kernel meets the input, not its padding."""
    proto, numbers = made.proto, made.proto.convolution_dimension_numbers
    left, kernel = made.operands[0].shape.dimensions, made.operands[1].shape.dimensions
    count = (left[numbers.input_feature_dimension] // max(proto.feature_group_count, 1)) * (
        left[numbers.input_batch_dimension] // max(proto.batch_group_count, 1)
    )
    count *= result.dimensions[numbers.output_feature_dimension]
    for n, window in enumerate(proto.window.dimensions):
        count *= meetings(
            left[numbers.input_spatial_dimensions[n]],
            kernel[numbers.kernel_spatial_dimensions[n]],
            result.dimensions[numbers.output_spatial_dimensions[n]],
            max(window.stride, 1),
            window.padding_low,
            max(window.window_dilation, 1),
            max(window.base_dilation, 1),
        )
        # From here on it stays 0, or what no float can be.
        if not count or abs(count) > sys.float_info.max:
            break
    return float(_FMA * count)


def reduction(made: Made, sum_of: SumOf, _program: Program) -> None:
    """Applies its function once for every element that disappears."""
    result = leaves(made.shape)[0][1]
    _applied(made, sum_of(0), elements(made.operands[0].shape) - elements(result))


def _reduce_window(made: Made, sum_of: SumOf, _program: Program) -> None:
    window = made.proto.window.dimensions
    size = bounded_product(max(one.size, 1) for one in window)
    result = leaves(made.shape)[0][1]
    count = (size - 1) * elements(result)
    wide = [n for n, one in enumerate(window) if one.size != 1]
    padded = [one for one in window if one.padding_low or one.padding_high]
    if len(wide) == len(padded) == 1 and kind_of(made.shape) != "tuple":
        # A sum over a whole dimension that is given back to each of its places.
        one, span = window[wide[0]], made.shape.dimensions[wide[0]]
        low = one.padding_low
        if low and low == one.padding_high == span - 1 and one.size == 2 * low + 1:
            count = elements(result) // span + span - 1
    _applied(made, sum_of(0), count)


def _select_and_scatter(made: Made, sum_of: SumOf, _program: Program) -> None:
    source = elements(made.operands[1].shape)
    size = bounded_product(max(one.size, 1) for one in made.proto.window.dimensions)
    _applied(made, sum_of(0), source * (size - 1))
    _applied(made, sum_of(1), source)


def _map(made: Made, sum_of: SumOf, _program: Program) -> None:
    _applied(made, sum_of(0), elements(made.shape))


def _transpose(made: Made, sum_of: SumOf, program: Program) -> None:
    """Nothing moves where the new order of the dimensions is how they lie already."""
    before = list(made.operands[0].shape.layout.minor_to_major)
    order = list(made.proto.dimensions)
    if [order[number] for number in made.shape.layout.minor_to_major] == before:
        untouched(made, sum_of, program)


def _call(made: Made, sum_of: SumOf, program: Program) -> None:
    program.spend(sum_of(0))
    _become(made, sum_of(0))


def _become(made: Made, total: Sum) -> None:
    made.flops, made.transcendentals, made.bytes = total.flops, total.transcendentals, total.bytes
    made.read, made.out = total.read, total.out


def _while(made: Made, sum_of: SumOf, program: Program) -> None:
    """One turn: the program does not say how many there are."""
    turn = Sum()
    for number in range(2):
        program.spend(sum_of(number))
        turn.add(sum_of(number))
    _become(made, turn)


def _conditional(made: Made, sum_of: SumOf, program: Program) -> None:
    most = Sum()
    for number in range(len(made.calls)):
        program.spend(sum_of(number))
        most.at_least(sum_of(number))
    _become(made, most)


def _infeed(made: Made, _sum_of: SumOf, _program: Program) -> None:
    made.out = {index: size_of(part) for index, part in leaves(made.shape)}
    made.bytes = float(sum(made.out.values()))


def _outfeed(made: Made, _sum_of: SumOf, _program: Program) -> None:
    made.read = {
        (number, index): size_of(part)
        for number, operand in enumerate(made.operands)
        for index, part in leaves(operand.shape)
    }
    made.bytes = float(sum(made.read.values()))


def _fft(made: Made, _sum_of: SumOf, _program: Program) -> None:
    turns = bounded_product(max(length.bit_length() - 1, 0) for length in made.proto.fft_length)
    made.flops = float(_FMA * 4 * turns * elements(leaves(made.operands[0].shape)[0][1]))


def _triangular_solve(made: Made, _sum_of: SumOf, _program: Program) -> None:
    one, other = made.operands[0].shape, made.operands[1].shape
    made.bytes = size_of(made.shape) + size_of(one) / 2 + size_of(other)
    made.flops = float(_FMA * one.dimensions[-1] * elements(other))


def _cholesky(made: Made, _sum_of: SumOf, _program: Program) -> None:
    """Half of it is read and written."""
    shape = made.operands[0].shape
    made.bytes = float(size_of(shape))
    made.read[0, ()] = made.out[()] = made.bytes / 2
    made.flops = float(shape.dimensions[-1] * elements(shape) // 3)


def _all_reduce(made: Made, _sum_of: SumOf, _program: Program) -> None:
    """As with two participants: each element of the result is the sum of two."""
    made.flops = float(elements(made.shape))


def _random(made: Made, _sum_of: SumOf, _program: Program) -> None:
    made.transcendentals = float(elements(made.shape))


def _sort(made: Made, _sum_of: SumOf, _program: Program) -> None:
    count = elements(made.operands[0].shape)
    made.flops = float(count * max(count - 1, 0).bit_length())


def _custom_call(made: Made, sum_of: SumOf, program: Program) -> None:
    """Nobody knows what it does, but for the libraries of the GPUs."""
    target = made.proto.custom_call_target
    result = leaves(made.shape)[0][1]
    if target in MATRIX_PRODUCTS:
        config = json.loads(made.proto.backend_config)["gemm_backend_config"]
        numbers = config["dot_dimension_numbers"]["lhs_contracting_dimensions"]
        made.flops = product(made.operands[0].shape, result, [int(one) for one in numbers])
    elif target in CONVOLUTIONS:
        made.flops = convolved(made, result)
    elif (attention := attention_cost(made)) is not None:
        made.flops, made.transcendentals = attention
        workspace = [size_of(part) for _, part in leaves(made.shape) if kind_of(part) == "u8"]
        made.out = {(): whole_size_of(made.shape) - sum(workspace)}
        made.bytes = float(sum(made.read.values()) + made.out[()])
        return
    else:
        untouched(made, sum_of, program)
        return
    # What else it returns is memory to work in.
    made.out = {(0,) if kind_of(made.shape) == "tuple" else (): size_of(result)}
    made.bytes = float(sum(made.read.values()) + size_of(result))


RULES: dict[str, Rule] = {
    **dict.fromkeys(ELEMENTWISE - {"copy"}, _elementwise),
    **dict.fromkeys(
        ("parameter", "constant", "get-tuple-element", "bitcast", "domain", "after-all",
         "add-dependency"),
        untouched,
    ),
    **dict.fromkeys(("all-reduce", "all-reduce-start"), _all_reduce),
    **dict.fromkeys(("call", "async-start"), _call),
    **dict.fromkeys(("rng", "rng-bit-generator"), _random),
    "cholesky": _cholesky,
    "conditional": _conditional,
    "convolution": _convolution,
    "custom-call": _custom_call,
    **dict.fromkeys(("dot", "scaled-dot"), _dot),
    **dict.fromkeys(("dynamic-slice", "gather"), _indexed_slice),
    "dynamic-update-slice": _dynamic_update_slice,
    "fft": _fft,
    "fusion": fusion,
    "infeed": _infeed,
    "map": _map,
    "outfeed": _outfeed,
    "ragged-dot": _ragged_dot,
    "reduce": reduction,
    "reduce-window": _reduce_window,
    "scatter": _scatter,
    "select-and-scatter": _select_and_scatter,
    "slice": _slice,
    "sort": _sort,
    "transpose": _transpose,
    "triangular-solve": _triangular_solve,
    "tuple": _tuple,
    "while": _while,
}  # fmt: skip
"""By opcode; what is not here is `nothing_special`."""
