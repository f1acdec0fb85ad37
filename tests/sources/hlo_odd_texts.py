"""Programs in XLA's text form with what compiled programs of one machine do not have."""

ADD = """%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %sum = f32[] add(%x, %y)
}
"""


def _entry(lines: str, before: str = "", header: str = "") -> str:
    return f"HloModule m{header}\n\n{before}\nENTRY %main {{\n{lines}\n}}\n"


ODD: dict[str, str] = {
    "layouts": _entry(
        """  %p = f32[8,16]{1,0:T(8,128)S(5)} parameter(0)
  %b = bf16[8,16]{0,1:T(8,128)(2,1)E(16)} parameter(1)
  %d = s32[<=8,16]{1,0} parameter(2)
  %q = (f32[], ((s8[3]{0}, pred[]), token[]), u4[2,3]{1,0:E(4)}) parameter(3)
  %o = opaque[] parameter(4)
  ROOT %t = (f32[8,16]{1,0}, bf16[8,16]{0,1}) tuple(%p, %b)"""
    ),
    "dots": _entry(
        """  a = f32[2,3,4]{2,1,0} parameter(0)
  b = f32[2,4,5]{2,1,0} parameter(1)
  ROOT d = f32[2,3,5]{2,1,0} dot(a, b), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}, operand_precision={high,highest}, algorithm=dot_bf16_bf16_f32"""
    ),
    "ragged": _entry(
        """  a = bf16[11,5]{1,0} parameter(0)
  b = bf16[3,5,7]{2,1,0} parameter(1)
  g = s64[3]{0} parameter(2)
  ROOT d = bf16[11,7]{1,0} ragged-dot(a, b, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}"""
    ),
    "convolution": _entry(
        """  a = f32[2,9,9,4]{3,2,1,0} parameter(0)
  k = f32[3,3,2,8]{3,2,1,0} parameter(1)
  ROOT c = f32[2,5,11,8]{3,2,1,0} convolution(a, k), window={size=3x3 stride=2x1 pad=1_1x2_4 rhs_dilate=1x2 rhs_reversal=0x1}, dim_labels=b01f_01io->b01f, feature_group_count=2"""
    ),
    "windows": _entry(
        """  a = f32[1,8,8,2]{3,2,1,0} parameter(0)
  z = f32[] constant(0)
  w = f32[1,4,4,2]{3,2,1,0} reduce-window(a, z), window={size=1x2x2x1 stride=1x2x2x1}, to_apply=add
  s = f32[1,8,8,2]{3,2,1,0} select-and-scatter(a, w, z), window={size=1x2x2x1 stride=1x2x2x1}, select=ge, scatter=add
  ROOT p = f32[1,9,12,2]{3,2,1,0} pad(s, z), padding=0_0x1_0x-1_2_0x0_0""".replace(
            "-1_2_0", "1_1_0"
        ).replace("[1,9,12,2]", "[1,9,10,2]"),
        ADD
        + "ge {\n  l = f32[] parameter(0)\n  r = f32[] parameter(1)\n"
        "  ROOT c = pred[] compare(l, r), direction=GE, type=TOTALORDER\n}\n",
    ),
    "collectives": _entry(
        """  a = f32[8]{0} parameter(0)
  r = f32[8]{0} all-reduce(a), channel_id=1, replica_groups={{0,2},{1,3}}, use_global_device_ids=true, to_apply=add
  g = f32[32]{0} all-gather(r), channel_id=2, replica_groups=[2,4]<=[4,2]T(1,0), dimensions={0}, use_global_device_ids=true
  s = f32[8]{0} reduce-scatter(g), replica_groups={}, dimensions={0}, to_apply=add
  p = f32[8]{0} collective-permute(s), source_target_pairs={{0,1},{1,0}}
  st = (f32[8]{0}, f32[8]{0}) collective-permute-start(p), source_target_pairs={{0,1},{1,2}}, channel_id=3
  pd = f32[8]{0} collective-permute-done(st)
  ROOT x = f32[8]{0} all-to-all(pd), replica_groups={{0,1,2,3}}, dimensions={0}""",
        ADD,
        ", num_partitions=4",
    ),
    "asynchronous": _entry(
        """  p = f32[8,16]{1,0:S(5)} parameter(0)
  i = s32[] parameter(1)
  cs = ((f32[8,16], s32[], s32[]), f32[4,16], u32[]) dynamic-slice-start(p, i, i), dynamic_slice_sizes={4,16}, async_execution_thread="host", metadata={op_name="x"}
  cu = ((f32[8,16], s32[], s32[]), f32[4,16], u32[]) dynamic-slice-update(cs)
  cd = f32[4,16] dynamic-slice-done(cu)
  c = (f32[4,16], f32[4,16], u32[]) copy-start(cd), cross_program_prefetch_index=1
  ROOT e = f32[4,16] copy-done(c)""",
        header=", is_scheduled=true",
    ),
    "calls": _entry(
        """  p = f32[8]{0} parameter(0)
  n = pred[] parameter(1)
  k = s32[] parameter(2)
  c = f32[8]{0} conditional(n, p, p), true_computation=%neg, false_computation=%neg
  b = f32[8]{0} conditional(k, c, p, p), branch_computations={%neg, %neg, %neg}
  m = f32[8]{0} map(b), dimensions={0}, to_apply=one
  f = f32[8]{0} fusion(m), kind=kLoop, calls=neg, output_to_operand_aliasing={{}: (0, {})}
  l = f32[8]{0} call(f), to_apply=neg, is_composite=true, frontend_attributes={composite.name="a.b",composite.version="1"}
  y = f32[8]{0} custom-call(l), custom_call_target="y", operand_layout_constraints={f32[8]{0}}
  ROOT x = f32[8]{0} custom-call(y), custom_call_target="a\\"b", custom_call_has_side_effect=true, called_computations={%neg}, api_version=API_VERSION_STATUS_RETURNING, backend_config="a\\\\b"
""",
        """%neg (q: f32[8]) -> f32[8] {
  %q = f32[8]{0} parameter(0)
  ROOT %r = f32[8]{0} negate(%q), control-predecessors={%q}
}

one {
  o = f32[] parameter(0)
  ROOT u = f32[] negate(o)
}
""",
    ),
    "indexing": _entry(
        """  a = f32[10,20]{1,0} parameter(0)
  i = s32[5,1]{1,0} parameter(1)
  u = f32[5,20]{1,0} parameter(2)
  g = f32[5,20]{1,0} gather(a, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,20}, indices_are_sorted=true
  s = f32[10,20]{1,0} scatter(a, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, unique_indices=true, to_apply=add
  c = f32[3,10]{1,0} slice(s), slice={[1:10:3], [5:15]}
  t = f32[10,3]{0,1} transpose(c), dimensions={1,0}
  v = (f32[10,3]{0,1}, s32[10,3]{0,1}) sort(t, j), dimensions={0}, is_stable=true, to_apply=lt
  j2 = s32[10,3]{0,1} get-tuple-element(v), index=1
  ROOT o = (s32[10,3]{0,1}, f32[5,20]{1,0}) tuple(j2, /*index=1*/g)""".replace(
            "  v = ", "  j = s32[10,3]{0,1} iota(), iota_dimension=0\n  v = "
        ),
        ADD
        + """lt {
  l = f32[] parameter(0)
  r = f32[] parameter(1)
  k = s32[] parameter(2)
  w = s32[] parameter(3)
  ROOT c = pred[] compare(l, r), direction=LT
}
""",
    ),
    "odds": _entry(
        """  a = f32[4,4]{1,0} parameter(0), parameter_replication={true}
  c = f32[4,4]{1,0} cholesky(a), lower=true
  t = f32[4,4]{1,0} triangular-solve(c, a), left_side=true, lower=true, unit_diagonal=true, transpose_a=TRANSPOSE
  p = f32[4,4]{1,0} reduce-precision(t), exponent_bits=5, mantissa_bits=10
  n = (f32[4,4]{1,0}, f32[4]{0}, f32[4]{0}) batch-norm-training(p, o, o), epsilon=0.001, feature_index=1
  s = u64[3]{0} constant({1, 2, 3})
  k = (u64[3]{0}, u32[4]{0}) rng-bit-generator(s), algorithm=rng_philox
  z = f32[] constant(0)
  y = f32[] constant(1)
  r = f32[4]{0} rng(z, y), distribution=rng_uniform
  q = u64[2]{0} rng-get-and-update-state(), delta=7
  f = c64[4,3]{1,0} fft(a), fft_type=RFFT, fft_length={4}
  w = (f32[4,2]{1,0}, s32[4,2]{1,0}) topk(a), k=2, largest=false
  x = token[] after-all()
  ou = token[] outfeed(a, x), outfeed_config="a{b", outfeed_shape=f32[4,4]{1,0}
  fd = (f32[2]{0}, token[]) infeed(ou), infeed_config="c"
  ROOT g = f32[4,4]{1,0} get-tuple-element(n), index=0""".replace(
            "  n = ", "  o = f32[4]{0} constant({1, 1, 1, 1})\n  n = "
        ).replace("fft_length={4}", "fft_length={4}")
    ),
    "scalars": _entry(
        """  a = f32[] constant(-inf)
  b = bf16[] constant(1.01)
  c = f16[] constant(-3.5)
  d = f64[] constant(1e300)
  e = c64[] constant((1, -2))
  f = pred[] constant(true)
  g = s8[] constant(-128)
  h = u64[] constant(18446744073709551615)
  i = u8[] constant(255)
  j = s16[] constant(-5)
  ROOT t = (f32[], bf16[]) tuple(a, b)"""
    ),
    "header": """HloModule odd.name-1, is_scheduled=true, input_output_alias={ {0}: (0, {}, must-alias), {1}: (1, {0}) }, buffer_donor={ (1, {1}) }, entry_computation_layout={(f32[4]{0}, (f32[4]{0}, f32[2]{0}))->(f32[4]{0}, f32[4]{0})}, frontend_attributes={a="1",b={x = [{1}]}}

// A comment, and /* another.
ENTRY main.42 {
  a.1 = f32[4]{0} parameter(0), metadata={op_type="x" op_name="jit(f)/a b\\"c\\"{" source_file="/x y/z.py" source_line=12 source_end_line=13}
  /* here */ b.1 = (f32[4]{0}, f32[2]{0}) parameter(1)
  c.1 = f32[4]{0} get-tuple-element((f32[4]{0}, f32[2]{0}) b.1), index=0
  d.1 = f32[4]{0} add(f32[4]{0} a.1, f32[4]{0} c.1), backend_config={"a":{"b":{"c":{"d":"}"}}}}
  ROOT e.1 = (f32[4]{0}, f32[4]{0}) tuple(f32[4]{0} d.1, f32[4]{0} c.1)
}
""",
    "frames": """HloModule m

FileNames
1 "a.py"
2 "b \\"c\\".py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=4 column=5 end_column=6}
2 {file_name_id=2 function_name_id=1 line=7 end_line=7 column=0 end_column=0}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}


ENTRY main {
  ROOT a = f32[] parameter(0), metadata={op_name="x" stack_frame_id=2}
}
""",
}
