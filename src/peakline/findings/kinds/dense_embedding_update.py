"""All rows of an embedding are updated, of which a step reads few."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from peakline.findings.kind import FRAME, Kind, columns, of_frame
from peakline.findings.steps import COLUMNS
from peakline.timing.frame_work import function_of_loop
from peakline.timing.ops.elementwise import in_optimizer
from peakline.timing.ops.in_steps import step_ops_of
from peakline.trace.op_inputs import all_dims_of, inputs_of

if TYPE_CHECKING:
    from peakline.findings.context import Findings
    from peakline.findings.time_context import TimeContext

KIND = Kind(
    "dense_embedding_update",
    __doc__,
    about="time",
    phrase="all rows of an embedding are updated",
    severity="warning",
    least=0.15,
    # Below this it is what most programs do, and a sparse optimizer is another one.
    much=0.4,
    section="steps",
    columns=COLUMNS
    | FRAME
    | columns("op", "shape", table_rows="Rows", rows_read="Rows that a step reads"),
    saves="gain_share",
)

_LOOKS_UP, _GRADIENT = "aten::embedding", "aten::embedding_dense_backward"
_FEW = 0.25
"""A step reads at most so many of the rows."""
_LEAST_OF, _BESIDE, _LIMIT = 0.5, 1.2, 0.98
"""The rows that are read are updated anyhow, and an optimizer of sparse gradients does more each;
in pairs more went than these ops take, as a table of that size evicts what others read.
"""


def find(context: TimeContext) -> Findings:
    """At most one, of PyTorch, where the shapes of inputs were recorded."""
    ops = step_ops_of(context.profile, of_host=True)
    names = [] if ops is None or not ops.wall_ps else [name for name, _ in ops.keys]
    if ops is None or _LOOKS_UP not in names or _GRADIENT not in names:
        return
    codes, texts = all_dims_of(context.profile)
    lookups = ops.event[ops.op == names.index(_LOOKS_UP)]
    shapes = {texts[code] for code in np.unique(codes[lookups]).tolist() if code >= 0}
    inputs = inputs_of(context.profile)
    optimizer = in_optimizer(context.profile, ops)
    dims = inputs.dims(ops.event)
    for text in sorted(shapes):
        table, _, rest = text.partition("], ")
        sides, read = (_sides(one) for one in (table, rest.partition("], ")[0]))
        rows_read = int(np.prod(read, dtype=np.int64)) if read else 0
        if len(sides) != 2 or not rows_read or rows_read > _FEW * sides[0]:
            continue
        shape = f"{table}]"
        mine = optimizer & (np.array([*inputs.shapes, ""], object)[dims] == shape)
        mine |= ops.op == names.index(_GRADIENT)
        lost = ops.covered_ps(mine)
        share = lost / ops.wall_ps
        if share < KIND.least or not (mine & optimizer).any():
            continue
        frame = function_of_loop(context.profile, ops.event[mine])
        where = "" if frame is None else f", in {frame.title}"
        yield KIND.finding(
            f"all {sides[0]:,} rows of an embedding {shape} have a gradient and are updated, of "
            f"which a step reads {rows_read:,} at most: {share:.0%} of the step time{where}",
            {
                "steps": ops.steps,
                "wall_ps": ops.wall_ps,
                "op": _GRADIENT,
                "shape": shape,
                "table_rows": sides[0],
                "rows_read": rows_read,
                **of_frame(frame),
                "share": share,
                "gain_ps": round(_LEAST_OF * lost),
                "gain_share": _LEAST_OF * share,
                "most_gain_share": min(_BESIDE * share, _LIMIT),
            },
            "Let the gradient be sparse (nn.Embedding(sparse=True)) and update the rows that were "
            "used alone: torch.optim.SparseAdam or SGD for the embedding, another optimizer for "
            "the rest.",
        )
        return


def _sides(text: str) -> list[int]:
    return [int(one) for one in text.strip("[]").split(",") if one.strip().isdigit()]
