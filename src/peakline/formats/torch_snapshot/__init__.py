"""Snapshots of PyTorch's caching allocator (``torch.cuda.memory._dump_snapshot``)."""

import re

from peakline.formats.common.format import Format

_OLD_PICKLE = re.compile(
    rb"(?:(?:\([dl]|[}\]])(?:p\d+\n|q.|r.{4})?)+(?:\(*[SVTUX]|\.\Z)", re.DOTALL
)
"""Protocol 0 (text) or 1: dicts and lists are begun, numbered or not, and text follows, or the
end."""


def _begins(head: bytes) -> bool:
    is_new = head[0] == 0x80 and len(head) > 1 and 2 <= head[1] <= 5
    return is_new or _OLD_PICKLE.match(head) is not None


FORMAT = Format(
    name="torch_snapshot",
    what="CUDA memory snapshot (pickle)",
    written_by="`torch.cuda.memory._dump_snapshot`",
    fills="`segments`, `blocks`, `allocator_events`, `stacks`, `oom_reports`",
    reader="peakline.formats.torch_snapshot.reader:TorchSnapshotReader",
    rank=8,
    begins=_begins,
    is_text=True,
)
