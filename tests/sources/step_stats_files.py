"""Building traced runs by hand for the tests, and opening them."""

from pathlib import Path
from typing import Any

from peakline import schema
from peakline.formats.common.files import SourceFile
from peakline.formats.run_metadata.reader import RunMetadataReader
from peakline.tables import Profile

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
ZERO = 1_700_000_000_000_000
"""The first start of an execution, in microseconds since the epoch."""


def run_metadata() -> Any:
    """An empty RunMetadata."""
    return schema.message("tensorflow.RunMetadata")()


def open_run(folder: Path, message: Any, form: str = "run_metadata") -> Profile:
    """A profile of the message, or of bytes."""
    path = folder / "run.pb"
    path.write_bytes(message if isinstance(message, bytes) else message.SerializeToString())
    return Profile(RunMetadataReader(SourceFile(str(path)), form))


def add_device(run: Any, name: str = CPU) -> Any:
    """A new device entry."""
    return run.step_stats.dev_stats.add(device=name)


def add_node(
    device: Any, name: str, start: int = 0, length: int = 10, label: str | None = None
) -> Any:
    """An execution ``start`` microseconds after `ZERO`, of ``length`` microseconds.

    ``label`` defaults to ``name = Op()``.
    """
    return device.node_stats.add(
        node_name=name,
        all_start_micros=ZERO + start,
        all_end_rel_micros=length,
        timeline_label=f"{name} = Op()" if label is None else label,
    )


def add_memory(node: Any, records: list[tuple[int, int]], allocator: str = "bfc") -> Any:
    """Allocation records: microseconds after `ZERO` and bytes."""
    memory = node.memory.add(allocator_name=allocator)
    for time, size in records:
        memory.allocation_records.add(alloc_micros=ZERO + time, alloc_bytes=size)
    return memory


def add_output(node: Any, size: int, number: int, address: int = 0, allocator: str = "bfc") -> Any:
    """An output of ``size`` bytes whose buffer has this id, at an address made from it."""
    output = node.output.add(slot=len(node.output))
    tensor = output.tensor_description
    tensor.dtype = 1
    tensor.shape.dim.add(size=size // 4)
    buffer = tensor.allocation_description
    buffer.requested_bytes = buffer.allocated_bytes = size
    buffer.allocator_name, buffer.allocation_id = allocator, number
    buffer.ptr = address or 4096 * number
    return output
