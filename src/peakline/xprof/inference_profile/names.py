"""Names of the events by which a file of a model server is known."""

from __future__ import annotations

REQUESTS = (
    ("BatchingSessionRun",), ("TfrtModelRun",), ("ServingModelRun",), ("SessionRun", "RunGraph"),
)  # fmt: skip
"""What a request is: the first of these of which there is any event, batching requests first."""
BATCHES = ("ProcessBatch", "OrbaxServing::ProcessBatch")
SERVER = "ModelServerRequest_"
"""A root of such a name is a request, whatever its level."""
SHOWN = frozenset((*(name for names in REQUESTS[:3] for name in names), *BATCHES))
"""Names that only a server's events have; sessions run in training too."""
