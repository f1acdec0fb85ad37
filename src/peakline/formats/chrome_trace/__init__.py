"""Chrome traces (JSON): PyTorch's profiler, JAX, TensorFlow's timeline, Chrome and many others."""

import re
from collections.abc import Mapping

from peakline.formats.common.format import Format


def _is_trace(text: str, keys: Mapping[str, None]) -> bool:
    if text[0] == "[":
        return re.match(r"\[\s*(\{\s*\"|\]|$)", text) is not None
    return "traceEvents" in keys or {"ph", "ts"} <= keys.keys()


FORMAT = Format(
    name="chrome_trace",
    what="Chrome trace, PyTorch profiler trace",
    written_by="PyTorch, JAX, TensorFlow's timeline, ONNX Runtime, Chrome",
    fills=(
        "`planes`, `lines`, `events`, `event_stats`, `flows`, `counters`, `steps`; with "
        "`[memory]` events `allocator_events` and `stacks`"
    ),
    reader="peakline.formats.chrome_trace.reader:ChromeTraceReader",
    rank=10,
    json=_is_trace,
)
