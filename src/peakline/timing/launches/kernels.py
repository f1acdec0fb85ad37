"""The launches of kernels, what their launch parameters say, and which use tensor cores.

These (AMD: matrix cores) are known by names, as in XProf 2.24.2
(``xprof/utils/kernel_stats_utils.cc``; AMD's are explained in
https://github.com/openxla/xprof/pull/3230), and some that it does not know.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.tables import Profile
from peakline.tables.event_rules import Dim, LaunchParameters, LaunchStats
from peakline.timing.ops.device import device_executions, framework_executions
from peakline.timing.ops.stat_columns import stat_texts
from peakline.timing.programs.chips import vendors_of
from peakline.trace.activity import activity_of
from peakline.trace.activity_names import Activity
from peakline.trace.device_lines import Role, devices_of
from peakline.trace.distribution import distinct
from peakline.trace.events import Trace, trace_of

_NVIDIA = re.compile(
    "16816|c1688|conv1x1|conv2d_c1_k1|dgrad_1x1_stride_2x2|direct_group|first_layer_wgrad_kernel|"
    "h1688|h884|hmma|i16832|i8816|s884|s1688|xmma_gemm|xmma_implicit_gemm|xmma_sparse_conv|"
    "xmma_sparse_gemm|xmma_warp_specialized_implicit_gemm"
)
# Tensile writes the matrix instruction into the name, and CK Tile the tiles that it multiplies.
_AMD = re.compile(
    "_MI[0-9]+x[0-9]+x[0-9]+|Tile(?:Gemm|Fmha|FmhaBwd|Flatmm|SageAttn)Shape<|Custom_Cijk_|"
    "FMHA_FWD|_xdl|aiter|attn_fwd|bwd_kernel_|gemm_fusion|gtcx|mfma|miopenSp3AsmConvRage|moe_gemm|"
    "moe_mxgemm|wmma"
)
# Of the same libraries: they prepare or collect, and multiply nothing.
_AMD_HELPERS = re.compile("_dq_convert|_dq_shuffle|_odo_|DqAccPrezeroKernel|topksoftmax")
# cuBLAS since CUDA 12, CUTLASS, Hopper's and Blackwell's instructions, FlashAttention.
_NEWER = re.compile("nvjet|tensorop|wgmma|tcgen05|flash_fwd|flash_bwd")
_ENDS = (
    "Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput", "Conv3D", "DepthwiseConv2dNative",
    "DepthwiseConv2dNativeBackpropFilter", "DepthwiseConv2dNativeBackpropInput", "/MatMul",
    "FusedMatMul", "/CudnnRNN", "XlaDot", "XlaDotV2",
)  # fmt: skip
_PARTS = re.compile(
    "BatchMatMul|CudnnRNNV|CudnnRNNForward|CudnnRNNBackprop|dot_general|conv_general_dilated"
)
_TORCH = re.compile(r"aten::.*(?:conv|matmul|addmm|bmm|linear|attention)|aten::mm$")


def _is_amd(kernel: str) -> bool:
    return _AMD.search(kernel) is not None and _AMD_HELPERS.search(kernel) is None


def _is_nvidia(kernel: str) -> bool:
    return _NVIDIA.search(kernel) is not None


OF_VENDOR: Mapping[str, Callable[[str], bool]] = {"AMD": _is_amd, "Nvidia": _is_nvidia}
"""By the maker of the device whether XProf knows a kernel's name as one that uses them."""


def uses(kernel: str, vendor: str) -> bool:
    """Whether a kernel uses tensor cores; ``vendor`` is Nvidia, AMD or empty (not known)."""
    if vendor == "AMD":
        return _is_amd(kernel)
    result = _is_nvidia(kernel) or _NEWER.search(kernel) is not None
    return result or (vendor != "Nvidia" and _is_amd(kernel))


def is_product(op: str) -> bool:
    """Whether an op of TensorFlow or JAX of this name could use them, as XProf knows."""
    return op.endswith(_ENDS) or _PARTS.search(op) is not None


def could_use(op: str) -> bool:
    """Whether an op of this name could use them."""
    return is_product(op) or _TORCH.match(op) is not None


_HELPER = re.compile(
    r"(?i)transpose|nchw_?to_?nhwc|nhwc_?to_?nchw|(?<![a-z])(?:copy|cast|fill|pad|memset|memcpy)"
    r"|copy_?kernel|catarray|elementwise|reduce_?kernel|splitk_?reduce|im2col|col2im|subtensorop"
    r"|optensor|scale_?tensor|add_?tensor|compute_?offsets|reorder|convert_?(?:layout|tensor)"
)
"""What the libraries launch beside their products: it moves, converts or adds up."""


def is_helper(kernel: str) -> bool:
    """Whether a kernel multiplies no matrices by its name, whatever op launched it."""
    return _HELPER.search(kernel) is not None


_MEMSET = re.compile(r"(?i)(?:cu|cuda|hip)?memset\b")


class Launch(NamedTuple):
    """What distinguishes kernels; sorts as XProf does. ``op`` is empty where not known."""

    name: str
    grid: Dim
    block: Dim
    registers: int
    static_shared: int
    dynamic_shared: int
    uses_tensor_cores: bool
    could_use: bool
    op: str


@dataclass(frozen=True, eq=False)
class Launches:
    """The distinct launches with the occupancy (in percent) of the first of each.

    ``launch`` is the place in ``launches`` of every run, ``duration_ps`` how long it took.
    """

    launches: dict[Launch, float]
    launch: Int64Array
    duration_ps: Int64Array


def has_devices(profile: Profile) -> bool:
    """Whether the profile has events of a device, without reading one."""
    # Most profiles have none.
    return "events" in profile.tables and "device" in profile.columns("planes").names("kind").values


def launches_of(profile: Profile) -> Launches:
    """Every run of a kernel. Raises InputError when the profile cannot be read."""
    if not has_devices(profile) or trace_of(profile).source != "events":
        return collect([], np.zeros(0, np.int64), np.zeros(0, np.int64))
    rule = profile.event_rules.launches
    if rule is None:
        rule = LaunchStats((), lambda _: LaunchParameters())
    return _launches(profile, trace_of(profile), rule)


def _launches(profile: Profile, trace: Trace, rule: LaunchStats) -> Launches:
    executions, ops = device_executions(profile), framework_executions(profile)
    rows = trace.rows(executions.event)
    texts, codes = stat_texts(profile, rule.stats, rows)
    if rule.is_on_every_kernel:
        is_kernel = (codes[0] >= 0) & (executions.end > executions.start)
    else:
        is_kernel = _is_kernel(profile, trace)[executions.event]
    use = np.flatnonzero(is_kernel)
    codes = [column[use] for column in codes]
    name, op = trace.name.codes[executions.event[use]], ops.op[use]
    plane = executions.plane[use]
    vendors = vendors_of(profile)
    first, which = distinct(name, op, plane, *codes)
    parameters: dict[tuple[int, ...], LaunchParameters] = {}
    made = []
    for row in first.tolist():
        stated = tuple(int(column[row]) for column in codes)
        if stated not in parameters:
            parameters[stated] = rule.parse([texts[code] if code >= 0 else "" for code in stated])
        key, text = ops.keys[int(op[row])], trace.name.values[int(name[row])]
        vendor = vendors.get(trace.planes[int(plane[row])].plane_id, "")
        is_einsum = key.op_type in ("Einsum", "XlaEinsum")
        made.append(_launch(text, key.name, parameters[stated], vendor, is_einsum=is_einsum))
    return collect(made, which, (executions.end - executions.start)[use])


def _launch(
    text: str, op: str, parameters: LaunchParameters, vendor: str, *, is_einsum: bool
) -> tuple[Launch, float]:
    """A launch of the kernel ``text`` by ``op``, with its occupancy."""
    # A kernel that stands for itself has no op.
    op = "" if op == text else op
    used = uses(text, vendor)
    could = used or could_use(op) or is_einsum
    return Launch(text, *parameters[:5], used, could, op), parameters.occupancy_percent


def _is_kernel(profile: Profile, trace: Trace) -> BoolArray:
    """Which events are kernels: what streams of devices did but for copies.

    So it is for every device and category; only setting memory is known by its name.
    """
    on_stream = np.zeros(trace.size, np.bool_)
    for device in devices_of(profile):
        for place, role in device.lines:
            on_stream[trace.lines[place].events] = role is Role.STREAM and not device.is_tpu
    works = np.isin(activity_of(profile), (Activity.COMPUTE, Activity.COMMUNICATION))
    sets = np.array([*map(_MEMSET.match, trace.name.values), None]).astype(np.bool_)
    return on_stream & works & ~sets[trace.name.codes]


def collect(made: list[tuple[Launch, float]], which: AnyArray, duration: AnyArray) -> Launches:
    """The launches ``made``, with their occupancy in percent, each once.

    ``which`` is the place in ``made`` of every run, ``duration`` how long it took, in ps.
    """
    distinct_launches: dict[Launch, float] = {}
    for launch, occupancy in made:
        distinct_launches.setdefault(launch, occupancy if math.isfinite(occupancy) else 0.0)
    number = {launch: place for place, launch in enumerate(distinct_launches)}
    place_of = np.array([number[launch] for launch, _ in made], np.int64)
    runs = place_of[which] if place_of.size else np.zeros(0, np.int64)
    return Launches(distinct_launches, runs, duration)
