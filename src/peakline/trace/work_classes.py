"""Kinds of work that ops do, by their types: sorting, strings, casts, moving data, arithmetic.

Types are those of TensorFlow (``tensorflow/core/ops``), JAX's primitives, XLA's opcodes, and
PyTorch's operators (``aten/src/ATen/native/native_functions.yaml``). Linear algebra is named as in
``tensorflow/core/ops/linalg_ops.cc``, ``jax/_src/lax/linalg.py`` and ``aten/src/ATen/native/
BatchLinearAlgebra.cpp``, and by the libraries that XLA's custom calls are for
(``jaxlib/cpu/lapack_kernels.cc``, ``jaxlib/gpu/solver_kernels_ffi.cc``).
"""

from __future__ import annotations

import re
from enum import IntEnum

from peakline.text import remembered


class Work(IntEnum):
    """What an op does."""

    OTHER = 0
    SORT = 1
    STRING = 2
    PRINT = 3
    CALLBACK = 4
    CAST = 5
    LAYOUT = 6
    GATHER = 7
    ELEMENTWISE = 8
    MATMUL = 9
    RANDOM = 10
    FILE = 11
    LINALG = 12
    SOLVE = 13
    JOIN = 14
    REDUCE = 15
    SCAN = 16
    RESIZE = 17
    FFT = 18
    CHECK = 19
    TRANSFER = 20
    HISTOGRAM = 21


WORDS = {
    Work.SORT: "sorting",
    Work.STRING: "work on strings",
    Work.PRINT: "printing",
    Work.CALLBACK: "calls from the program back into Python",
    Work.CAST: "casts between types",
    Work.LAYOUT: "copies and transposes",
    Work.GATHER: "gathering and scattering single elements",
    Work.ELEMENTWISE: "element-wise arithmetic",
    Work.MATMUL: "matrix products and convolutions",
    Work.RANDOM: "making random numbers",
    Work.FILE: "writing files",
    Work.LINALG: "decompositions and inverses of matrices",
    Work.SOLVE: "Cholesky and triangular solves",
    Work.JOIN: "joining, padding and repeating arrays",
    Work.REDUCE: "sums, means and maxima",
    Work.SCAN: "running sums and products",
    Work.RESIZE: "resizing and sampling images",
    Work.FFT: "Fourier transforms",
    Work.CHECK: "checks of all numbers for NaN and infinity",
    Work.HISTOGRAM: "counting values for histograms",
    Work.TRANSFER: "copies between the host and the device",
}
"""What a person calls them."""

_WORDS = {
    Work.SORT: (
        "sort sortv2 topk topkv2 top_k approx_top_k argsort unique uniquev2 uniquewithcounts "
        "uniquewithcountsv2 nthelement kthvalue msort unique_dim unique_consecutive _unique2 "
        "_unique uniqueconsecutive searchsorted bucketize median nanmedian quantile mode lexsort "
        "sort_stable topk_outputs argmaxmin unsafe_sort setdiff1d listdiff"
    ),
    Work.HISTOGRAM: (
        "histc histogram _histogramdd_bin_edges _histogramdd_from_bin_cts histogramdd bincount "
        "histogramfixedwidth histogramsummary densebincount denserbincount"
    ),
    Work.STRING: (
        "asstring stringjoin stringsplit stringsplitv2 stringformat stringlower stringupper "
        "stringlength stringstrip stringngrams stringtohashbucket stringtohashbucketfast "
        "stringtohashbucketstrong stringtonumber substr reducejoin regexreplace regexfullmatch "
        "staticregexreplace staticregexfullmatch unicodedecode unicodedecodewithoffsets "
        "unicodeencode unicodescript unicodetranscode unsortedsegmentjoin decodebase64 "
        "encodebase64 decodecsv decoderaw decodejsonexample parseexample parseexamplev2 "
        "parsesingleexample parsetensor lookuptablefind lookuptablefindv2"
    ),
    Work.PRINT: "print printv2 logmessage assert",
    Work.CALLBACK: (
        "pyfunc eagerpyfunc pyfuncstateless pure_callback io_callback debug_callback "
        "outside_call xla_python_cpu_callback xla_python_gpu_callback "
        "xla_ffi_python_cpu_callback xla_ffi_python_gpu_callback debug_print "
        "xla_ffi_partitioned_python_cpu_callback"
    ),
    Work.CAST: "cast convert_element_type convert _to_copy to bitcast_convert bitcast_convert_type",
    Work.LAYOUT: (
        "transpose conjugatetranspose copy contiguous clone permute_copy copy_ _copy "
        "tensorcopy reverse reversev2 roll flip "
        "depthtospace spacetodepth dataformatvecpermute channel_shuffle pixel_shuffle"
    ),
    Work.GATHER: (
        "gather gatherv2 gathernd resourcegather resourcegathernd scatter scatternd scatterupdate "
        "scatteradd scatternd_update tensorscatterupdate tensorscatteradd resourcescatteradd "
        "resourcescatterupdate resourcescatternd resourcescatterndupdate unsortedsegmentsum "
        "segmentsum booleanmask where nonzero index index_put index_put_ _index_put_impl_ "
        "index_select index_add index_add_ index_copy_ masked_select masked_scatter take put_ "
        "scatter_add scatter_add_ scatter_ scatter_reduce scatter-add take_along_dim "
        "dynamicpartition dynamicstitch paralleldynamicstitch gather_backward index_backward "
        "embedding_dense_backward"
    ),
    Work.ELEMENTWISE: (
        "add addv2 sub mul div realdiv truediv neg abs sign square sqrt rsqrt exp log log1p expm1 "
        "tanh sigmoid relu relu6 elu selu gelu softplus softsign erf erfc pow maximum minimum max "
        "min floor ceil round sin cos tan atan atan2 asin acos sinh cosh reciprocal addcmul "
        "addcdiv lerp clamp clamp_min clamp_max biasadd tanhgrad sigmoidgrad relugrad rsqrtgrad "
        "sqrtgrad squareddifference selectv2 greater less equal logical_and logical_or "
        "integer_pow logistic subtract multiply divide power negate exponential rem mod fmod "
        "threshold_backward tanh_backward sigmoid_backward silu hardtanh leaky_relu mish rsub "
        "_foreach_mul _foreach_add masked_fill logical_not where_self select_n"
    ),
    Work.MATMUL: (
        "matmul batchmatmul batchmatmulv2 batchmatmulv3 conv2d conv3d conv1d "
        "depthwiseconv2dnative conv2dbackpropinput conv2dbackpropfilter mm addmm bmm baddbmm "
        "linear convolution _convolution mkldnn_convolution convolution_backward einsum "
        "dot dot_general conv_general_dilated _fusedmatmul _fusedconv2d mv addmv addbmm "
        "convolution_overrideable tensordot mkldnn_linear cublas_gemm __cublas$gemm gemm ger outer"
    ),
    Work.RANDOM: (
        "randomuniform randomstandardnormal truncatednormal statelessrandomuniform "
        "statelessrandomuniformv2 statelessrandomnormal statelessrandomnormalv2 randomuniformint "
        "multinomial normal_ uniform_ random_ bernoulli_ exponential_ randperm rng_bit_generator "
        "randomshuffle randomgamma randompoissonv2 statelessrandomuniformint statelessshuffle "
        "threefry2x32 random_bits native_dropout"
    ),
    Work.FILE: "savev2 saveslices mergev2checkpoints writefile writesummary writescalarsummary",
    Work.LINALG: (
        "svd batchsvd xlasvd qr xlaqr eig xlaselfadjointeig selfadjointeig selfadjointeigv2 "
        "batchselfadjointeig batchselfadjointeigv2 lu matrixinverse batchmatrixinverse "
        "matrixdeterminant batchmatrixdeterminant logmatrixdeterminant matrixexponential "
        "matrixlogarithm matrixsquareroot matrixsolve batchmatrixsolve matrixsolvels "
        "batchmatrixsolvels eigh geqrf geqp3 householder_product householderproduct hessenberg "
        "schur tridiagonal lu_solve lu_unpack lu_pivots_to_permutation lu_factor_ex orgqr ormqr "
        "_linalg_svd linalg_svd linalg_svdvals linalg_qr linalg_eig linalg_eigvals _linalg_eigvals "
        "_linalg_eigh linalg_eigh linalg_eigvalsh linalg_inv linalg_inv_ex inverse linalg_pinv "
        "pinverse linalg_lu linalg_lu_factor linalg_lu_factor_ex linalg_lu_solve _linalg_solve_ex "
        "linalg_solve linalg_solve_ex linalg_lstsq linalg_matrix_exp matrix_exp linalg_det "
        "_linalg_det det logdet linalg_slogdet _linalg_slogdet slogdet linalg_matrix_rank "
        "linalg_ldl_factor linalg_ldl_factor_ex linalg_ldl_solve linalg_householder_product "
        "linalg_tensorinv linalg_tensorsolve linalg_cond nuclear_norm eigendecomposition"
    ),
    Work.SOLVE: (
        "cholesky batchcholesky choleskygrad choleskygradv2 cholesky_inverse cholesky_solve "
        "cholesky_update triangular_solve matrixtriangularsolve batchmatrixtriangularsolve "
        "bandedtriangularsolve tridiagonalsolve tridiagonal_solve linalg_cholesky "
        "linalg_cholesky_ex linalg_solve_triangular"
    ),
    Work.JOIN: (
        "concat concatv2 concatenate concatoffset cat _cat stack pack parallelconcat "
        "hstack vstack dstack pad padv2 mirrorpad mirrorpadgrad constant_pad_nd reflection_pad1d "
        "reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d "
        "tile repeat repeat_interleave pad_sequence block_diag"
    ),
    Work.REDUCE: (
        "sum prod mean all any euclideannorm argmax argmin amax amin aminmax nansum nanmean var "
        "std var_mean std_mean linalg_vector_norm _foreach_norm logsumexp "
        "count_nonzero l2loss reduce_sum reduce_prod reduce_max reduce_min reduce_and reduce_or "
        "reduce"
    ),
    Work.SCAN: (
        "cumsum cumprod cummax cummin cumlogsumexp cumulativelogsumexp logcumsumexp cumsum_ "
        "_cummax_helper _cummin_helper _logcumsumexp cumulative_trapezoid"
    ),
    Work.RESIZE: (
        "resizebilinear resizebilineargrad resizebicubic resizebicubicgrad resizenearestneighbor "
        "resizenearestneighborgrad resizearea scaleandtranslate scaleandtranslategrad "
        "cropandresize cropandresizegradimage cropandresizegradboxes imageprojectivetransformv2 "
        "imageprojectivetransformv3 upsample_nearest1d upsample_nearest2d upsample_nearest3d "
        "upsample_linear1d upsample_bilinear2d upsample_bicubic2d upsample_trilinear3d "
        "_upsample_bilinear2d_aa _upsample_bicubic2d_aa upsample_nearest2d_backward "
        "upsample_bilinear2d_backward upsample_bicubic2d_backward upsample_trilinear3d_backward "
        "grid_sampler grid_sampler_2d grid_sampler_3d grid_sampler_2d_backward "
        "grid_sampler_3d_backward"
    ),
    Work.FFT: (
        "fft fft1d fft2d fft3d fftnd ifft ifft1d ifft2d ifft3d ifftnd rfft rfft2d rfft3d rfftnd "
        "irfft irfft2d irfft3d irfftnd batchfft batchfft2d batchifft batchifft2d fft_fft fft_ifft "
        "fft_rfft fft_irfft fft_fft2 fft_ifft2 fft_rfft2 fft_irfft2 fft_fftn fft_ifftn fft_rfftn "
        "fft_irfftn _fft_r2c _fft_c2r _fft_c2c stft istft"
    ),
    Work.CHECK: (
        "checknumerics checknumericsv2 debugnumericsummary debugnumericsummaryv2 debugnancount"
    ),
}
_TYPES = {word: work for work, words in _WORDS.items() for word in words.split()}
_NUMBER = re.compile(r"(?:(?:\d++|enolc|\d*+tamer)[._])++")
"""What sets copies of an instruction apart, at the end of its name: read from behind, where there
is one place to look at.
"""
_FUSION = re.compile(r"_fusion$")
_LIBRARY = re.compile(
    r"(?:lapack|cusolver|hipsolver|rocsolver|magma)_[a-z]"
    r"|(?:blas|cublas|hipblas|rocblas)_[a-z]*trsm"
)
"""A routine of a library of linear algebra, which a custom call of XLA is for:
``lapack_sgesdd_ffi``, ``cusolver_syevd_ffi``."""
_OF_TRIANGLES = re.compile(r"_[a-z]?(?:potr[fsi]|trsm|trtr[si])")
"""Those of Cholesky and of triangular matrices, by LAPACK's names."""


@remembered(1 << 15)
def work_of(name: str, op_type: str) -> Work:
    """What an op does, by its type, else by its name (``aten::sort``, ``sort.5``)."""
    known = _TYPES.get(_plain(op_type)) if op_type else None
    if known is not None:
        return known
    if op_type:
        return _of_library(op_type.lower())
    space, result, inner = name.partition("::")
    if result and space == "aten":
        plain = inner.lower()
        return _TYPES.get(plain) or _TYPES.get(plain.rstrip("_")) or Work.OTHER
    if result or "(" in name:
        return Work.OTHER
    plain = name.lstrip("%")
    if (number := _NUMBER.match(plain[::-1])) is not None:
        plain = plain[: -number.end()]
    plain = plain.lower()
    if _FUSION.search(plain) or plain.startswith("wrapped_"):
        return _of_fusion(_FUSION.sub("", plain).removeprefix("wrapped_"))
    return _TYPES.get(plain) or _TYPES.get(plain.replace("-", "_")) or _of_library(plain)


def _of_library(target: str) -> Work:
    """What a routine of a library does, by the name that a custom call is for."""
    if _LIBRARY.match(target) is None:
        return Work.OTHER
    return Work.SOLVE if _OF_TRIANGLES.search(target) else Work.LINALG


def _of_fusion(parts: str) -> Work:
    """What a fusion does, which XLA names after the last of what is in it: only what moves or
    converts says so, unless it gathers.
    """
    known = _TYPES.get(parts)
    works = {known} if known else {_TYPES.get(one, Work.OTHER) for one in parts.split("_")}
    if Work.GATHER in works:
        return Work.GATHER
    if works == {Work.JOIN, Work.LAYOUT}:
        return Work.JOIN
    return works.pop() if len(works) == 1 else Work.OTHER


def _plain(op_type: str) -> str:
    return op_type.lower().replace("-", "_")
