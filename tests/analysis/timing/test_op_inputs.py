"""Shapes and types of the inputs of ops, as PyTorch records them."""

import numpy as np
from tests.analysis.timing.traces import HOST_PLANE, profile_of
from tests.each_row import each_row

from peakline.trace.op_inputs import inputs_of


def inputs(*stats, kind="chrome_trace"):
    events = [(f"aten::op{number}", number * 10, number * 10 + 5) for number in range(3)]
    return inputs_of(profile_of({HOST_PLANE: {"1": events}}, kind=kind, stats=stats))


def test_the_largest_input_of_each_event():
    found = inputs((0, "Input Dims", "[[8, 4], [], [2, 64]]"), (2, "Input Dims", "[[3]]"))
    dims = found.dims(np.arange(3))
    assert [found.dims_text(code) for code in dims.tolist()] == ["[2, 64]", "", "[3]"]
    assert found.is_recorded


@each_row(
    ("types", "is_float64"),
    [
        ('["double", "double"]', True),
        ('["double", "Scalar", "long int"]', True),
        ('["float", "double"]', False),
        ('["c10::Half"]', False),
        ('["long int"]', False),
        ('["Scalar", ""]', False),
        ('["complex<double>"]', True),
    ],
)
def test_an_op_is_float64_when_all_of_its_floating_inputs_are(types, is_float64):
    assert inputs((1, "Input type", types)).is_float64.tolist() == [False, is_float64, False]


def test_tensors_are_known_by_their_types():
    found = inputs((0, "Input type", '["Scalar"]'), (1, "Input type", '["long int"]'))
    assert found.has_tensor.tolist() == [False, True, False]


@each_row("text", ["", "[", "{}", "[1, 2]", '[["a"]]', "[[1.5]]", "null"])
def test_what_is_no_list_of_shapes_is_none(text):
    found = inputs((0, "Input Dims", text))
    assert found.dims_text(int(found.dims(np.array([0]))[0])) == ""


def test_other_formats_record_none():
    found = inputs((0, "Input Dims", "[[3]]"), kind="xplane")
    assert not found.is_recorded
    assert found.dims(np.array([0])).tolist() == [-1]
