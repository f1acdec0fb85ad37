"""What op the name of an event stands for, by the rules of the profilers that write them.

Source: ``xla/tsl/profiler/utils/tf_op_utils.cc`` in openxla/xla. A name is ``op:type``; tf.data
stages, copies and JAX primitives have forms of their own. A name without any is no op, but a
range that somebody marked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from peakline.text import remembered

UNKNOWN, TENSORFLOW, JAX, TF_DATA = "unknown", "tensorflow", "jax", "tf.data"
INPUT_PIPELINE, COPY = "input pipeline", "copy"
EAGER = "EagerLocalExecute: "
"""With this before its name an op is run eagerly by TensorFlow (``eager/execute.cc``)."""
IDLE = "IDLE"
"""Name and type of the op that stands for time without one."""

_TF_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_./>-]*")
_TF_TYPE = re.compile(r"[A-Z_][a-zA-Z0-9_]*")
# A dot is anything but the end of a line there as here.
_JAX_TYPE = re.compile(r"[a-z_][a-z0-9_]*(\[.*\])?")
_INTEGER = re.compile(r"[ \t\n\v\f\r]*([+-]?)0*([0-9]{1,19})[ \t\n\v\f\r]*")
_COPIES = {
    "memcpyhtod": "MemcpyHToD",
    "memcpydtoh": "MemcpyDToH",
    "memcpydtod": "MemcpyDToD",
    "memcpyhtoh": "MemcpyHToH",
}


@dataclass(frozen=True, slots=True)
class OpName:
    """An op: its name, its type (empty: not known) and what kind of op it is.

    ``category`` is one of the constants of this module; `UNKNOWN` is no op.
    """

    name: str
    op_type: str
    category: str

    @property
    def is_op(self) -> bool:
        """Whether it is an op at all."""
        return self.category != UNKNOWN


@remembered(1 << 16)
def parse_op_name(text: str) -> OpName:
    """The op that ``text`` names."""
    name, colon, op_type = text.partition(":")
    if not colon:
        for prefix, copy in _COPIES.items():
            if text[: len(prefix)].lower() == prefix:
                return OpName(text, copy, COPY)
        return OpName(text, "", UNKNOWN)
    if name == "Iterator":
        return OpName(text, "Dataset", TF_DATA)
    if is_tf_op(name, op_type):
        return OpName(name, op_type, TENSORFLOW)
    result = op_type or _derived_type(name)
    if is_jax_type(result):
        return OpName(name, result.split("[", 1)[0], JAX)
    if not op_type:
        return OpName(name, result, TENSORFLOW)
    return OpName(text, "", UNKNOWN)


def is_tf_op(name: str, op_type: str) -> bool:
    """Whether both have the form of a TensorFlow op's."""
    return _TF_NAME.fullmatch(name) is not None and _TF_TYPE.fullmatch(op_type) is not None


def is_jax_type(op_type: str) -> bool:
    """Whether it has the form of a JAX primitive's name, with its parameters or without."""
    return _JAX_TYPE.fullmatch(op_type) is not None


def is_jax_op(name: str, op_type: str) -> bool:
    """Whether a name and a type are those of an op of JAX: the name's last scope holds the type."""
    return bool(name) and is_jax_type(op_type) and op_type in name.rsplit("/", 1)[-1]


def _derived_type(name: str) -> str:
    """The last scope of a name, without the number that makes it unique."""
    scope = name.rsplit("/", 1)[-1]
    suffix = scope.rsplit("_", 1)[-1]
    result = _INTEGER.fullmatch(suffix)
    is_number = result is not None and -(2**63) <= int(result[1] + result[2]) < 2**63
    return scope[: -len(suffix) - 1] if is_number and suffix != scope else scope
