"""What an op does, by its type or its name."""

from tests.each_row import each_row

from peakline.trace.work_classes import WORDS, Work, work_of


@each_row(
    ("name", "op_type", "work"),
    [
        ("x/sorting", "TopKV2", Work.SORT),
        ("aten::argsort", "", Work.SORT),
        ("aten::sort", "", Work.SORT),
        ("sort.5", "", Work.SORT),
        ("a", "AsString", Work.STRING),
        ("a", "PrintV2", Work.PRINT),
        ("a", "EagerPyFunc", Work.CALLBACK),
        ("pure_callback.3", "", Work.CALLBACK),
        ("aten::_to_copy", "", Work.CAST),
        ("convert.12", "", Work.CAST),
        ("a", "convert_element_type", Work.CAST),
        ("transpose.1.clone", "", Work.LAYOUT),
        ("aten::clone", "", Work.LAYOUT),
        ("aten::index_put_", "", Work.GATHER),
        ("a", "scatter-add", Work.GATHER),
        ("aten::mul_", "", Work.ELEMENTWISE),
        ("a", "AddV2", Work.ELEMENTWISE),
        ("aten::addmm", "", Work.MATMUL),
        ("dot.7", "", Work.MATMUL),
        ("aten::randperm", "", Work.RANDOM),
        ("a", "SaveV2", Work.FILE),
        ("a/spectral_norm/Svd", "Svd", Work.LINALG),
        ("a", "MatrixInverse", Work.LINALG),
        ("aten::linalg_eigh", "", Work.LINALG),
        ("aten::_linalg_solve_ex", "", Work.LINALG),
        ("svd.278", "", Work.LINALG),
        ("jit(f)/jit(inv)/lu", "lu", Work.LINALG),
        ("a", "lapack_sgesdd_ffi", Work.LINALG),
        ("cusolver_syevd_ffi.3", "", Work.LINALG),
        ("a", "Cholesky", Work.SOLVE),
        ("triangular-solve.2", "", Work.SOLVE),
        ("a", "lapack_spotrf_ffi", Work.SOLVE),
        ("blas_strsm", "", Work.SOLVE),
        ("aten::cat", "", Work.JOIN),
        ("a", "ConcatV2", Work.JOIN),
        ("wrapped_concatenate", "", Work.JOIN),
        ("copy_concatenate_fusion.2", "", Work.JOIN),
        ("pad.7", "", Work.JOIN),
        ("aten::linalg_vector_norm", "", Work.REDUCE),
        # Calls others, which say what it does.
        ("aten::linalg_matrix_norm", "", Work.OTHER),
        ("sample/RandomShuffle", "RandomShuffle", Work.RANDOM),
        ("a", "ArgMax", Work.REDUCE),
        ("aten::cumsum", "", Work.SCAN),
        ("a", "ResizeBilinearGrad", Work.RESIZE),
        ("aten::grid_sampler_2d", "", Work.RESIZE),
        ("aten::_fft_r2c", "", Work.FFT),
        ("fft.3", "", Work.FFT),
        ("Sigmoid/DebugNumericSummaryV2", "DebugNumericSummaryV2", Work.CHECK),
        ("a", "MatrixDiagV3", Work.OTHER),
        ("blas_sgemm", "", Work.OTHER),
        # A fusion is named for the last of what is in it: only what moves or converts says so.
        ("wrapped_transpose", "", Work.LAYOUT),
        ("copy_transpose_fusion.2", "", Work.LAYOUT),
        ("gather_add_fusion", "", Work.GATHER),
        ("add_convert_fusion", "", Work.OTHER),
        # A type that is not known says that it is none of these, whatever the name is.
        ("sort", "MyOwnOp", Work.OTHER),
        ("ProfilerStep::sort", "", Work.OTHER),
        ("sort(train.py)", "", Work.OTHER),
        ("", "", Work.OTHER),
    ],
)
def test_the_kind_of_work(name, op_type, work):
    assert work_of(name, op_type) == work


def test_every_kind_has_words():
    assert set(WORDS) == set(Work) - {Work.OTHER}
