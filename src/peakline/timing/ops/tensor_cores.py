"""Which kernels use tensor cores (AMD: matrix cores), and which ops could.

By names, as XProf 2.24.2 (``xprof/utils/kernel_stats_utils.cc``; AMD's are explained in
https://github.com/openxla/xprof/pull/3230), and some that it does not know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

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
    found = _is_nvidia(kernel) or _NEWER.search(kernel) is not None
    return found or (vendor != "Nvidia" and _is_amd(kernel))


def is_product(op: str) -> bool:
    """Whether an op of TensorFlow or JAX of this name could use them, as XProf knows."""
    return op.endswith(_ENDS) or _PARTS.search(op) is not None


def could_use(op: str) -> bool:
    """Whether an op of this name could use them."""
    return is_product(op) or _TORCH.match(op) is not None
