"""What ops cost: the views of TensorFlow's own tfprof over a traced run, and its advice."""

from peakline.tfprof.advice import advise
from peakline.tfprof.graph import FULL_GRAPHS, read_graph
from peakline.tfprof.model import OpNodes, OpStats, read_op_stats
from peakline.tfprof.options import MEASURES, ORDERS, SELECTABLE, Options, check_patterns
from peakline.tfprof.shown import Shown
from peakline.tfprof.views import (
    DEEPEST_SCOPE,
    GRAPH_PARENT,
    SCOPE_PARENT,
    code_view,
    graph_view,
    op_view,
    scope_view,
    too_deep,
)

__all__ = [
    "DEEPEST_SCOPE",
    "FULL_GRAPHS",
    "GRAPH_PARENT",
    "MEASURES",
    "ORDERS",
    "SCOPE_PARENT",
    "SELECTABLE",
    "OpNodes",
    "OpStats",
    "Options",
    "Shown",
    "advise",
    "check_patterns",
    "code_view",
    "graph_view",
    "op_view",
    "read_graph",
    "read_op_stats",
    "scope_view",
    "too_deep",
]
