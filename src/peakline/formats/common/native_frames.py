"""What a person calls frames of PyTorch's C++, and which only allocate, dispatch or unwind.

Snapshots with ``stacks="all"`` hold these beside Python's frames, and on the threads of the
backward pass nothing else. Ops are called through ``at::_ops::NAME_OVERLOAD::call``
(torchgen/api/types/signatures.py), nodes of autograd are applied
(``torch::autograd::generated::MeanBackward0::apply``, tools/autograd/gen_autograd_functions.py).
"""

from __future__ import annotations

import re

from peakline.text import remembered

_NODE = re.compile(
    r"torch::autograd::(?:generated::)?(?:CppNode<(?:\w+::)*)?(?P<node>(?!PyNode)\w+)>?::apply\("
)
_OP = re.compile(r"at::_ops::(?P<op>\w+)::(?:call|redispatch)(?:$|\()")
_OVERLOAD = re.compile(r"(?<!^)_[A-Z]")
_ALLOCATES = re.compile(r"(?:aten|at)::(?:new_)?(?:_?empty(?:_\w+)?|_?resize_\w*|set_)$")
_MACHINERY = re.compile(
    r"(?:(?:void|static|at::TensorBase|at::Tensor|_object\*|PyObject\*) )*(?:"
    r"torch::unwind::|torch::CapturedTraceback|torch::cuda::\(anonymous|torch::jit::|"
    r"torch::autograd::(?:Engine|Node|python::|THPVariable|TypeError_|VariableType|ADInplace|"
    r"dispatch_|PyNode)|torch::utils::|torch::tensors?::|"
    r"c10::|at::detail::|at::(?:meta|impl|functorch|indexing)::|at::TensorIterator|"
    r"at::\(anonymous|at::(?:native::)?(?:empty|new_empty|_?resize)\w*(?:$|[(<])|"
    r"at::Tensor::|at::_ops::(?:new_)?(?:_?empty|_?resize|set_)|"
    r"std::|pybind11::|cfunction|method_vectorcall|vectorcall|slot_|type_call|binary_op|object_|"
    r"_?Py[A-Z_]|_?PyObject|pyrun|py_|run_mod|run_eval|pymain|"
    r"pythread|thread_run|execute_native_thread|start_thread|__clone|clone$|_start$|__libc|main$)"
)


@remembered(1 << 14)
def native_op(function: str) -> str:
    """``MeanBackward0`` of a node of autograd that is applied, ``aten::div`` of an op that is
    called; empty of what only allocates, and of any other function.

    >>> native_op("at::_ops::div_Tensor::call(at::Tensor const&, at::Tensor const&)")
    'aten::div'
    """
    if node := _NODE.match(function):
        return node["node"]
    op = _OP.match(function)
    name = f"aten::{_OVERLOAD.split(op['op'], 1)[0]}" if op else ""
    return "" if is_allocation(name) else name


def is_allocation(op: str) -> bool:
    """Whether an op does nothing but allocate (``aten::empty_strided``): what calls it says what
    the memory is for.
    """
    return _ALLOCATES.match(op) is not None


@remembered(1 << 14)
def is_machinery(function: str) -> bool:
    """Whether a C++ function unwinds, allocates, dispatches, or runs the interpreter or a thread:
    it stands in every stack, and says of none what it is for.
    """
    return _MACHINERY.match(function) is not None
