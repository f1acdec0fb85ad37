"""Whose code a recorded frame is, and what its call does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.each_row import each_row

from peakline.trace.calls import WORDS, Call, call_of
from peakline.trace.frames import Frame, frame_of, module_of, whose_file


@each_row(
    ("name", "frame"),
    [
        ("$train.py:151 load_batch", Frame("train.py", 151, "load_batch", "program")),
        ("$<ipython-input-3>:2 step", Frame("<ipython-input-3>", 2, "step", "program")),
        ("$threading.py:604 wait", Frame("threading.py", 604, "wait", "library")),
        ("$encoder.py:205 iterencode", Frame("encoder.py", 205, "iterencode", "library")),
        ("$encoder.py:9 encode_image", Frame("encoder.py", 9, "encode_image", "program")),
        ("$__init__.py:183 dumps", Frame("__init__.py", 183, "dumps", "library")),
        ("$__init__.py:7 make_model", Frame("__init__.py", 7, "make_model", "program")),
        ("$<frozen importlib>:9 load", Frame("<frozen importlib>", 9, "load", "library")),
        ("$builtins isinstance", Frame("", 0, "isinstance", "library")),
        ("$time sleep", Frame("", 0, "time.sleep", "library")),
        ("$jaxlib._jax execute", Frame("", 0, "jaxlib._jax.execute", "framework")),
        ("train.py(12): step", Frame("train.py", 12, "step", "program")),
        ("torch/nn/modules/module.py(1751): _call_impl",
         Frame("torch/nn/modules/module.py", 1751, "_call_impl", "framework")),
        ("json/encoder.py(20): encode", Frame("json/encoder.py", 20, "encode", "library")),
        ("<built-in method item of Tensor object at 0x7f>", Frame("", 0, "Tensor.item", "library")),
        ("<built-in function len>", Frame("", 0, "len", "library")),
        ("<built-in method linear of type object at 0x7f>", Frame("", 0, "linear", "library")),
        ("<built-in ?>", Frame("", 0, "<built-in ?>", "library")),
        ("aten::mm", None),
        ("PjitFunction(step)", None),
        ("", None),
        ("$", None),
        ("train.py(12345678901): far", None),
    ],
)  # fmt: skip
def test_a_frame_by_the_name_of_its_event(name, frame):
    assert frame_of(name) == frame


def test_a_title_has_the_name_of_the_file_alone():
    assert Frame("a/b/train.py", 3, "step", "program").title == "step (train.py:3)"
    assert Frame("", 0, "time.sleep", "library").title == "time.sleep"


def test_the_name_of_a_module_that_runs():
    assert module_of("nn.Module: Linear_3") == "Linear_3"
    assert module_of("aten::mm") == ""


@each_row(
    ("path", "whose"),
    [
        ("/home/me/train.py", "program"),
        ("train.py", "program"),
        ("models/torch_model.py", "program"),
        ("/opt/venv/lib/python3.11/site-packages/jax/_src/api.py", "framework"),
        ("C:\\venv\\Lib\\site-packages\\keras\\layers.py", "framework"),
        ("/opt/venv/lib/python3.11/site-packages/numpy/core.py", "library"),
        ("/usr/lib/python3.11/threading.py", "library"),
        ("threading.py", "library"),
        ("/home/me/threading.py", "program"),
        ("/home/me/torch/model.py", "program"),
        ("torch/optim/adam.py", "framework"),
        ("<string>", "library"),
        ("??", "library"),
        ("aten/src/ATen/ops.cpp", "library"),
    ],
)
def test_whose_a_file_is(path, whose):
    assert whose_file(path) == whose


@given(st.text(max_size=40))
def test_no_text_breaks_a_frame_or_a_call(text):
    for name in (text, f"${text}", f"<built-in {text}", f"{text}.py(1): {text}"):
        found = frame_of(name)
        assert found is None or found.title is not None
        assert call_of(name) in WORDS


@each_row(
    ("name", "call"),
    [
        ("$time sleep", Call.SLEEP),
        ("$threading.py:604 wait", Call.LOCK),
        ("$queue.py:154 get", Call.LOCK),
        ("$_thread.lock acquire", Call.LOCK),
        ("$threading.py:271 __enter__", Call.LOCK),
        ("$threading.py:283 _acquire_restore", Call.LOCK),
        ("$<unknown> __enter__", Call.LOCK),
        ("$<unknown> get", Call.LOCK),
        ("<built-in method __enter__ of _thread.lock object at 0x7f>", Call.LOCK),
        ("<built-in method get of _queue.SimpleQueue object at 0x7f>", Call.LOCK),
        ("<built-in method get of dict object at 0x7f>", Call.WORK),
        ("$connection.py:246 recv", Call.LOCK),
        ("multiprocessing/queues.py(102): get", Call.LOCK),
        ("multiprocessing/synchronize.py(94): __enter__", Call.LOCK),
        ("/usr/lib/python3.11/concurrent/futures/_base.py(428): result", Call.LOCK),
        ("$subprocess.py:1165 communicate", Call.LOCK),
        ("$select poll", Call.LOCK),
        ("$tempfile.py:487 __enter__", Call.WORK),
        ("$posixpath.py:71 join", Call.WORK),
        ("$threading.py:1100 start", Call.WORK),
        ("$gc collect", Call.COLLECT),
        ("$copy.py:128 deepcopy", Call.COPY),
        ("$builtins print", Call.PRINT),
        ("$posix fsync", Call.FILE),
        ("<built-in method item of Tensor object at 0x7f>", Call.READ),
        ("torch/serialization.py(900): save", Call.FILE),
        ("aten::item", Call.READ),
        ("cudaStreamSynchronize", Call.READ),
        ("np.asarray(jax.Array)", Call.READ),
        ("cudaMemcpyAsync", Call.TRANSFER),
        ("save/SaveV2:SaveV2", Call.FILE),
        ("PrintV2", Call.PRINT),
        ("aten::mm", Call.WORK),
    ],
)
def test_what_a_call_does(name, call):
    assert call_of(name) == call


@pytest.mark.parametrize("name", ["$train.py:3 sleep", "train.py(4): item", "$train.py:5 save"])
def test_what_a_program_calls_its_own_functions_says_nothing(name):
    assert call_of(name) == Call.WORK
