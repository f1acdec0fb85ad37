"""What ops cost: the views of TensorFlow's own tfprof over a traced run, and its advice."""

from peakline.analysis.op_stats.advice import advise
from peakline.analysis.op_stats.gathered import code_view, op_view
from peakline.analysis.op_stats.graph import FULL_GRAPHS, read_graph
from peakline.analysis.op_stats.model import OpNodes, OpStats, read_op_stats
from peakline.analysis.op_stats.options import MEASURES, ORDERS, SELECTABLE, Options
from peakline.analysis.op_stats.patterns import check_patterns
from peakline.analysis.op_stats.shown import Shown
from peakline.analysis.op_stats.views import GRAPH_PARENT, SCOPE_PARENT, graph_view, scope_view

__all__ = [
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
]
