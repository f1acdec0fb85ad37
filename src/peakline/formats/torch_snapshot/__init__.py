"""Snapshots of PyTorch's caching allocator (``torch.cuda.memory._dump_snapshot``)."""

import re

from peakline.formats.common.format import Format

__all__ = ["FORMAT"]


def _is_pickle(head: bytes) -> bool:
    return head[0] == 0x80 and len(head) > 1 and 2 <= head[1] <= 5


_OLD_PICKLE = re.compile(
    rb"(?:(?:\([dl]|[}\]])(?:p\d+\n|q.|r.{4})?)+(?:\(*[SVTUX]|\.\Z)", re.DOTALL
)


def _is_old_pickle(head: bytes) -> bool:
    """Protocol 0 (text) or 1: dicts and lists are begun, numbered or not, and text follows, or
    the end.
    """
    return _OLD_PICKLE.match(head) is not None


def _begins(head: bytes) -> bool:
    return _is_pickle(head) or _is_old_pickle(head)


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
