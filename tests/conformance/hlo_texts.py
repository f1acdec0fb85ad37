"""Programs in XLA's text form: what its cost analysis for GPUs treats each in its own way."""

import json
from collections.abc import Iterator

F = "f32[128,64]{1,0}"
S = "f32[16,16]{1,0}"
ADD = """add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT sum = f32[] add(x, y)
}
"""
NUMBERS = {"lhs_contracting_dimensions": ["1"], "rhs_contracting_dimensions": ["0"]}
PRODUCT = {"alpha_real": 1, "dot_dimension_numbers": NUMBERS, "epilogue": "DEFAULT"}
CONFIGS = {
    "known": {"operation_queue_id": "0", "gemm_backend_config": PRODUCT},
    "removed": {"wait_on_operation_queues": [], "gemm_backend_config": PRODUCT},
    "newer": {"gemm_backend_config": PRODUCT | {"unheard_of": 1}},
    "unknown_name": {"gemm_backend_config": PRODUCT | {"epilogue": "UNHEARD_OF"}},
    "none": None,
}
TARGETS = (
    "__cublas$gemm", "__cublas$lt$matmul", "__cublas$lt$matmul$f8", "__cublas$lt$matmul$mx",
    "__cublas$lt$groupedMatmul", "__cublas$triangularSolve", "__cudnn$norm", "__cudnn$fmhaSoftmax",
    "__triton$gemm", "some_ffi",
)  # fmt: skip
CONVOLUTIONS = (
    "Forward", "ForwardGraph", "BackwardInput", "BackwardFilter", "BiasActivationForward",
    "ReorderFilter",
)  # fmt: skip
GROUPS = ("{}", "{{0},{1}}", "{{0,1}}", "{{0,1},{2,3}}", "{{0,1,2,3,4,5,6,7}}", "[2,4]<=[8]")
KINDS = "f64 f16 bf16 s8 u8 s16 s32 s64 u64 c64 c128 f8e4m3fn s4 u4 s2 f4e2m1fn pred".split()
WRAPPED = {
    "dot": f"{S} dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
    "add": f"{S} add(a, b)",
    "product": f'{S} custom-call(a, b), custom_call_target="__cublas$lt$matmul"',
    "call": f'{S} custom-call(a, b), custom_call_target="some_ffi"',
}


def _program(parameters: list[str], lines: str, before: str = "") -> str:
    given = "".join(f"  p{n} = {shape} parameter({n})\n" for n, shape in enumerate(parameters))
    return f"HloModule m\n{before}\nENTRY main {{\n{given}  {lines}\n}}\n"


def _calls() -> Iterator[tuple[str, str]]:
    for target in TARGETS:
        for name, config in CONFIGS.items():
            for kind in ("f32", "s8"):
                a, b, out = f"{kind}[8,16]{{1,0}}", f"{kind}[16,4]{{1,0}}", f"{kind}[8,4]{{1,0}}"
                result = f", backend_config={json.dumps(config)}" if config else ""
                lines = (
                    f"n = {a} negate(p0)\n"
                    f'c = ({out}, s8[4096]{{0}}) custom-call(n, p1), custom_call_target="{target}"'
                    f"{result}\nROOT r = {out} get-tuple-element(c), index=0"
                )
                yield f"{target}_{name}_{kind}", _program([a, b], lines)
    for name in CONVOLUTIONS:
        image, kernel, out = "s8[2,9,9,3]{3,2,1,0}", "s8[3,3,3,8]{3,2,1,0}", "f32[2,7,7,8]{3,2,1,0}"
        for shape in (out, f"({out}, u8[1000]{{0}})"):
            line = (
                f"ROOT c = {shape} custom-call(p0, p1), window={{size=3x3}}, "
                f'dim_labels=b01f_01io->b01f, custom_call_target="__cudnn$conv{name}"'
            )
            yield f"conv{name}_{shape[0]}", _program([image, kernel], line)


def _collectives() -> Iterator[tuple[str, str]]:
    whole, part = "f32[256,64]{1,0}", "f32[64,64]{1,0}"
    for number, groups in enumerate(GROUPS):
        for name, lines in {
            "gather": f"ROOT r = {whole} all-gather(p0), dimensions={{0}}, replica_groups=GROUPS",
            "gather_start": f"s = ({F}, {whole}) all-gather-start(p0), dimensions={{0}}, "
            f"replica_groups=GROUPS\nROOT r = {whole} all-gather-done(s)",
            "scatter": f"ROOT r = {part} reduce-scatter(p0), dimensions={{0}}, to_apply=add, "
            "replica_groups=GROUPS",
            "scatter_start": f"s = (({F}), {part}) reduce-scatter-start(p0), dimensions={{0}}, "
            f"to_apply=add, replica_groups=GROUPS\nROOT r = {part} reduce-scatter-done(s)",
            "reduce": f"ROOT r = ({F}, {F}) all-reduce(p0, p0), to_apply=add, "
            "replica_groups=GROUPS",
            "reduce_start": f"s = ({F}, {F}) all-reduce-start(p0, p0), to_apply=add, "
            f"replica_groups=GROUPS\nROOT r = ({F}, {F}) all-reduce-done(s)",
            "global": f"s = {F} all-reduce(p0), to_apply=add, channel_id=1, "
            f"use_global_device_ids=true, replica_groups=GROUPS\nROOT r = {F} copy(s)",
        }.items():
            yield f"{name}_{number}", _program([F], lines.replace("GROUPS", groups), ADD)


def _wrappers() -> Iterator[tuple[str, str]]:
    for name, line in WRAPPED.items():
        inner = f"inner {{\n  a = {S} parameter(0)\n  b = {S} parameter(1)\n  ROOT c = {line}\n}}\n"
        started = f"(({S}, {S}), {S}, u32[])"
        for how, lines in {
            "async": f"s = {started} async-start(p0, p1), calls=inner\n"
            f"u = {started} async-update(s), calls=inner\nROOT r = {S} async-done(u), calls=inner",
            "called": f"ROOT r = {S} call(p0, p1), to_apply=inner",
            "fused": f"ROOT r = {S} fusion(p0, p1), kind=kCustom, calls=inner",
            "of_call": f'ROOT r = {S} custom-call(p0, p1), custom_call_target="some_ffi", '
            "called_computations={inner}",
            "dead": f"ROOT r = {S} add(p0, p1)",
        }.items():
            yield f"{how}_{name}", _program([S, S], lines, inner)


def _fusions() -> Iterator[tuple[str, str]]:
    for number in range(1, 40):
        # Shares of odd numbers of elements, which 32 bits round up or down.
        size, last, step = 97 * number % 290 + 3, 31 * number % 200, number % 5 + 1
        last = min(last + 1, size)
        left = -(-last // step)
        shape, cut = f"s8[{size},7]{{1,0}}", f"s8[{left},7]{{1,0}}"
        fused = (
            f"fused {{\n  x = {shape} parameter(0)\n  n = {shape} negate(x)\n"
            f"  s = {cut} slice(n), slice={{[0:{last}:{step}],[0:7]}}\n"
            f"  ROOT r = {cut} negate(s)\n}}\n"
        )
        line = f"ROOT r = {cut} fusion(p0), kind=kLoop, calls=fused"
        yield f"cut_{number}", _program([shape], line, fused)
    for name, line in {
        "map": f"m = {F} map(e, e), dimensions={{0,1}}, to_apply=add",
        "narrow": f"h = s16[128,64,2]{{2,1,0}} bitcast-convert(e)\n"
        f"  g = s16[128,64,2]{{2,1,0}} add(h, h)\n  m = {F} bitcast-convert(g)",
        "same": f"h = s32[128,64]{{1,0}} bitcast-convert(e)\n  m = {F} bitcast-convert(h)",
    }.items():
        fused = (
            f"{ADD}fused {{\n  x = {F} parameter(0)\n  e = {F} exponential(x)\n  {line}\n"
            f"  t = f32[64,128]{{1,0}} transpose(e), dimensions={{1,0}}\n"
            f"  u = {F} transpose(t), dimensions={{1,0}}\n  ROOT r = {F} multiply(m, u)\n}}\n"
        )
        root = f"ROOT r = {F} fusion(p0), kind=kLoop, calls=fused"
        yield f"fused_{name}", _program([F], root, fused)


def _others() -> Iterator[tuple[str, str]]:
    for kind in KINDS:
        shape, flags = f"{kind}[32,48]{{1,0}}", "pred[32,48]{1,0}"
        lines = [f"a = {shape} {'and' if kind == 'pred' else 'multiply'}(p0, p1)"]
        lines.append(f"s = {shape} select(p2, a, p1)\nROOT r = {shape} copy(s)")
        yield f"kind_{kind}", _program([shape, shape, flags], "\n".join(lines))
    after = "t = token[] after-all()\n"
    sent = f"({F}, u32[], token[])"
    yield "send", _program([F], f"{after}s = {sent} send(p0, t), channel_id=1\n"
        "d = token[] send-done(s), channel_id=1\n"
        f"v = {sent} recv(d), channel_id=2\nw = ({F}, token[]) recv-done(v), channel_id=2\n"
        f"ROOT r = {F} get-tuple-element(w), index=0")  # fmt: skip
    yield "copied", _program([F], f"s = ({F}, {F}, u32[]) copy-start(p0)\n"
        f"ROOT r = {F} copy-done(s)")  # fmt: skip
    yield "passed", _program([F], f"s = ({F}, {F}, u32[], u32[]) collective-permute-start(p0), "
        f"source_target_pairs={{{{0,1}},{{1,0}}}}\nROOT r = {F} collective-permute-done(s)"
    )  # fmt: skip
    yield "random", _program(["u64[2]{0}"],
        "ROOT r = (u64[2]{0}, u32[100]{0}) rng-bit-generator(p0), algorithm=rng_philox"
    )  # fmt: skip
    yield "barrier", _program([F], f"t = ({F}, {F}) tuple(p0, p0)\n"
        f"o = ({F}, {F}) opt-barrier(t)\nROOT r = {F} get-tuple-element(o), index=0")  # fmt: skip
    names = "acos acosh asin asinh atanh cosh sinh".split()
    inverse = "\n".join(f"o_{name} = {F} {name}(p0)" for name in names)
    yield "inverse", _program([F], f"{inverse}\nROOT r = {F} copy(p0)")
    yield "high", _program(["s32[9]{0}"], "ROOT r = s32[9]{0} mulhi(p0, p0)")
    yield "cholesky", _program(["f32[3,17,17]{2,1,0}"],
        "ROOT r = f32[3,17,17]{2,1,0} cholesky(p0), lower=true")  # fmt: skip
    yield "top", _program([F], "ROOT r = (f32[128,5]{1,0}, s32[128,5]{1,0}) topk(p0), k=5, "
        "largest=true")  # fmt: skip
    yield "scaled", _program(
        ["f8e4m3fn[32,64]{1,0}", "f8e4m3fn[16,64]{1,0}", "f8e8m0fnu[32,2]{1,0}",
         "f8e8m0fnu[16,2]{1,0}"],
        "ROOT r = f32[32,16]{1,0} scaled-dot(p0, p1, p2, p3), lhs_contracting_dims={1}, "
        "rhs_contracting_dims={1}",
    )  # fmt: skip


TEXTS = dict((*_calls(), *_collectives(), *_wrappers(), *_fusions(), *_others()))
"""Programs by name."""
