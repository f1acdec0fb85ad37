"""Which kernels use tensor cores (AMD: matrix cores), and which ops could.

By names, as XProf 2.24.2 (``xprof/utils/kernel_stats_utils.cc``; AMD's are explained in
https://github.com/openxla/xprof/pull/3230), and some that it does not know.
"""

from __future__ import annotations

import re

__all__ = ["could_use", "einsum_could_use", "uses"]

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
# Of the same libraries: they prepare or gather, and multiply nothing.
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


def uses(kernel: str, vendor: str, *, strict: bool = False) -> bool:
    """Whether a kernel uses tensor cores; ``vendor`` is Nvidia, AMD or empty (not known).

    ``strict`` is XProf's rule: none of a vendor that is not known, none of the newer names.
    """
    if vendor == "AMD":
        return _AMD.search(kernel) is not None and _AMD_HELPERS.search(kernel) is None
    if vendor == "Nvidia":
        found = _NVIDIA.search(kernel) is not None
        return found or (not strict and _NEWER.search(kernel) is not None)
    return not strict and (uses(kernel, "AMD") or uses(kernel, "Nvidia"))


def could_use(op: str, *, strict: bool = False) -> bool:
    """Whether an op of this name could use them; ``strict`` is XProf's rule, without PyTorch."""
    if op.endswith(_ENDS) or _PARTS.search(op) is not None:
        return True
    return not strict and _TORCH.match(op) is not None


def einsum_could_use(equation: str) -> bool:
    """Whether an einsum is a product of two."""
    sides = equation.split("->")
    return len(sides) == 2 and sides[0].count(",") == 1
