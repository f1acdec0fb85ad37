"""The colours of XLA's drawings by opcode (``hlo_graph_dumper.cc``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peakline.xprof.graph_viewer.labels import is_small

if TYPE_CHECKING:
    from peakline.xprof.graph_viewer.linked import Instruction


@dataclass(frozen=True)
class Colors:
    """What a node is drawn with."""

    fill: str
    stroke: str
    font: str = "black"
    style: str = "filled"

    def text(self) -> str:
        """As attributes of a node."""
        return (
            f'style="{self.style}", fontcolor="{self.font}", color="{self.stroke}", '
            f'fillcolor="{self.fill}"'
        )


BROWN = Colors("#bcaaa4", "#8c7b75")
DARK_RED = Colors("#b71c1c", "#7f0000", "white")
DASHED = Colors("white", "#757575", "#757575", "filled,dashed")
_WHITE = Colors("white", "#9e9e9e")
_YELLOW = Colors("#fff9c4", "#cbc693")
_GREEN = Colors("#c8e6c9", "#97b498")
_DARK_BLUE = Colors("#1565c0", "#003c8f", "white")
_PURPLE = Colors("#e1bee7", "#af8eb5")
_GRAY = Colors("#cfd8dc", "#9ea7aa")
_DARK_GREEN = Colors("#2e7d32", "#005005", "white")
_ORANGE = Colors("#ffe0b2", "#cbae82")
_DARK_ORANGE = Colors("#ffb74d", "#c88719")

_OPCODES = {
    _YELLOW: "broadcast dynamic-update-slice",
    _GREEN: "concatenate dynamic-slice reshape dynamic-reshape reverse transpose copy copy-start "
    "copy-done",
    _DARK_BLUE: "convolution dot ragged-dot scaled-dot fft triangular-solve cholesky",
    _PURPLE: "batch-norm-grad batch-norm-inference batch-norm-training reduce reduce-window scan "
    "scatter select-and-scatter gather",
    _GRAY: "domain fusion map get-dimension-size set-dimension-size",
    BROWN: "all-gather all-gather-start all-gather-done all-reduce reduce-scatter all-reduce-start "
    "all-reduce-done all-to-all collective-broadcast collective-permute collective-permute-start "
    "collective-permute-done infeed outfeed partition-id ragged-all-to-all recv recv-done send "
    "send-done replica-id",
    _DARK_GREEN: "call conditional custom-call while",
}
_BY_OPCODE = {opcode: color for color, names in _OPCODES.items() for opcode in names.split()}
_ASYNC = ("async-start", "async-update", "async-done")


def parameter_color(made: Instruction) -> Colors:
    """That of parameters: darker where they are large."""
    return _ORANGE if is_small(made) else _DARK_ORANGE


def color_of(made: Instruction) -> Colors:
    """That of an instruction."""
    for _ in range(len(made.parent.made)):
        if made.opcode not in _ASYNC:
            break
        made = made.calls[0].root if made.opcode == "async-start" else made.operands[0]
    if made.opcode == "parameter":
        return parameter_color(made)
    if made.opcode == "bitcast":
        return _GREEN if made.fused_by is not None else _WHITE
    return _BY_OPCODE.get(made.opcode, _WHITE)
