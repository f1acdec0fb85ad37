import os
import subprocess
import sys

from tests.each_row import each_row

_CODE = """
import sys
from peakline.precompile import main
main()
from peakline.analysis import churn_kernels, fragmentation_kernels, lifetimes, savings_kernels
from peakline.analysis import signature_kernels, usage
compiled = [
    lifetimes._match, usage._measure, signature_kernels._number, churn_kernels.count_churn,
    fragmentation_kernels.sweep, savings_kernels.peaks_without,
]
print([kernel.py_func.__name__ for kernel in compiled if not kernel.signatures])
"""


@each_row(("form", "left"), [("xplane", []), ("run_metadata", None), ("memory_log", None)])
def test_the_helper_has_the_kernels_of_the_memory_answer_compiled(form, left):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _CODE, form],
        env={**os.environ, "PEAKLINE_PRECOMPILING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    if left is not None:
        assert done.stdout.strip() == str(left)
