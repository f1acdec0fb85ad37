"""Profile running jobs: call the profilers inside them, on many hosts at once; store the answers.

`capture` is the whole of it; `monitor` and `terminate` are the two other calls that a profiler
answers. docs/capture.md says what happens when a host is slow, busy, old, dead or broken.
"""

from __future__ import annotations

from peakline.capture.client import WorkerError, monitor, terminate
from peakline.capture.host import WorkerLocks
from peakline.capture.request import (
    CaptureRequest,
    Target,
    capture_deadline_s,
    default_options,
    default_session_id,
    default_session_ids,
    parse_address,
    profile_options,
)
from peakline.capture.result import CaptureResult, HostOutcome, Progress
from peakline.capture.session import capture

__all__ = [
    "CaptureRequest",
    "CaptureResult",
    "HostOutcome",
    "Progress",
    "Target",
    "WorkerError",
    "WorkerLocks",
    "capture",
    "capture_deadline_s",
    "default_options",
    "default_session_id",
    "default_session_ids",
    "monitor",
    "parse_address",
    "profile_options",
    "terminate",
]
