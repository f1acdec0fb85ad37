"""What the events of an XSpace are, beyond what its tables say."""

from __future__ import annotations

import re

from peakline.formats.common.kernel_details import parse_details
from peakline.formats.common.upstream_stats import CORRELATION, OF_TPUS
from peakline.tables.event_rules import EventRules, FunctionCalls, LaunchStats, PlaneNames

RULES = EventRules(
    links=(CORRELATION, *OF_TPUS),
    launches=LaunchStats(
        ("kernel_details",), lambda texts: parse_details(texts[0]), is_on_every_kernel=True
    ),
    function_calls=FunctionCalls(
        re.compile(r"EagerLocalExecute: __(?:inference|forward|backward)_(?P<name>.+)_\d+"),
        "tracing_count",
    ),
    planes=PlaneNames(),
    recorders=frozenset(("JAX", "TensorFlow")),
)
