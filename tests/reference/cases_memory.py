"""memory_profile: which plane, which events, which stats, and how each value is read."""

from typing import Any

from reference.case import Registry, allocate, free, memory_stats
from reference.xspace_builder import Ref, SpaceBuilder, Uint

MEMORY_CASES = Registry()
INT64_MAX, INT64_MIN = 2**63 - 1, -(2**63)


@MEMORY_CASES.add("memory: plane of host threads")
def no_host_plane(space: SpaceBuilder) -> None:
    """Without a plane of host threads the answer is empty, whatever other planes hold."""
    allocate(space.plane("/device:GPU:0").line(), 10)


@MEMORY_CASES.add("memory: plane of host threads")
def no_planes(space: SpaceBuilder) -> None:
    """An XSpace without planes is the empty file."""


@MEMORY_CASES.add("memory: plane of host threads")
def host_without_lines(space: SpaceBuilder) -> None:
    """A host plane without lines gives a document without allocators."""
    space.host()


@MEMORY_CASES.add("memory: plane of host threads")
def host_without_memory_events(space: SpaceBuilder) -> None:
    """A host plane without memory events gives a document without allocators."""
    space.host().line().event("work", 10, 5, {"allocator_name": "cpu"})


@MEMORY_CASES.add("memory: plane of host threads")
def host_plane_name_is_exact(space: SpaceBuilder) -> None:
    """A subprocess's plane and others that begin alike are not the host plane."""
    allocate(space.plane("/host:CPU [17]").line(), 10)
    allocate(space.plane("/host:CPUs").line(), 10)


@MEMORY_CASES.add("memory: plane of host threads")
def first_of_same_named_planes(space: SpaceBuilder) -> None:
    """Of several host planes the first is read; the rest is not."""
    allocate(space.host().line(), 10, 1, in_use=64)
    allocate(space.host().line(), 20, 2, in_use=128)


@MEMORY_CASES.add("memory: plane of host threads")
def other_planes_are_not_read(space: SpaceBuilder) -> None:
    """Memory events of device planes and of other host planes do not count."""
    allocate(space.plane("/host:TPU-runtime").line(), 10)
    allocate(space.host().line(), 10)
    space.plane("/device:GPU:0").line().event("MemFree", 10, 0, {"MemFree_details": "bytes:5"})
    allocate(space.plane("/device:GPU:0").line(), 10)


@MEMORY_CASES.add("memory: time")
def lines_with_different_timestamps(space: SpaceBuilder) -> None:
    """Offsets of lines that begin at different times are compared as they are."""
    host = space.host()
    late = host.line("late", timestamp_ns=1000)
    allocate(late, 10, 1, in_use=64)
    free(late, 40, 1, in_use=0)
    early = host.line("early", timestamp_ns=0)
    allocate(early, 20, 2, in_use=128)
    free(early, 30, 2, in_use=64)


@MEMORY_CASES.add("memory: time")
def duration_is_ignored(space: SpaceBuilder) -> None:
    """The time is the event's start, however long it took."""
    line = space.host().line()
    line.event("MemoryAllocation", 50, 1000, memory_stats(1))
    line.event("MemoryDeallocation", 60, 5, memory_stats(1, in_use=0))


@MEMORY_CASES.add("memory: time")
def aggregated_event_has_time_zero(space: SpaceBuilder) -> None:
    """An event with a number of occurrences in place of an offset reads as offset 0."""
    line = space.host().line(timestamp_ns=7)
    allocate(line, 50, 1, in_use=10)
    line.event("MemoryAllocation", stats=memory_stats(2, in_use=20), num_occurrences=4)


@MEMORY_CASES.add("memory: time")
def negative_offset(space: SpaceBuilder) -> None:
    """Offsets before the line's timestamp sort first."""
    line = space.host().line(timestamp_ns=7)
    allocate(line, 50, 1, in_use=10)
    allocate(line, -50, 2, in_use=20)


@MEMORY_CASES.add("memory: memory id")
def device_ordinal_after_name_wins(space: SpaceBuilder) -> None:
    """The last of the stats that name the memory wins."""
    line = space.host().line()
    line.event("MemoryAllocation", 10, 0, memory_stats(1) | {"device_ordinal": 3})
    line.event("MemoryAllocation", 20, 0, memory_stats(2) | {"index_on_host": 0})
    line.event("MemoryAllocation", 30, 0, memory_stats(3) | {"device_ordinal": Uint(9)})


@MEMORY_CASES.add("memory: memory id")
def device_ordinal_before_name_loses(space: SpaceBuilder) -> None:
    """The last of the stats that name the memory wins."""
    line = space.host().line()
    line.event("MemoryAllocation", 10, 0, {"device_ordinal": 3} | memory_stats(1))
    line.event("MemoryAllocation", 20, 0, {"index_on_host": 4} | memory_stats(2))


@MEMORY_CASES.add("memory: memory id")
def index_on_host_names_the_memory(space: SpaceBuilder) -> None:
    """TPU memory is named by number, as decimal text, negative numbers too."""
    line = space.host().line()
    for offset, number in enumerate((0, 1, 10, 9, -1, INT64_MAX)):
        allocate(line, offset, offset, allocator_name=None, index_on_host=number)


@MEMORY_CASES.add("memory: memory id")
def no_memory_id(space: SpaceBuilder) -> None:
    """Without any of the stats, or with a number as the name, the memory id is empty."""
    line = space.host().line()
    allocate(line, 10, 1, allocator_name=None)
    allocate(line, 20, 2, allocator_name=7)
    allocate(line, 30, 3, allocator_name=Ref(""))


@MEMORY_CASES.add("memory: memory id")
def memory_ids_sort_bytewise(space: SpaceBuilder) -> None:
    """memory_ids are sorted by their UTF-8 bytes; each memory has a profile of its own."""
    line = space.host().line()
    names = ["é", "b", "a", "B", "", "10", "9", "\U0001f600", "￰", "GPU_0_bfc"]
    for offset, name in enumerate(names):
        allocate(line, offset, offset, in_use=64 + offset, allocator_name=name)


@MEMORY_CASES.add("memory: value kinds")
def uint64_values_read_zero(space: SpaceBuilder) -> None:
    """Every numeric stat stored as uint64 reads 0."""
    numbers = ["bytes_reserved", "bytes_allocated", "bytes_available", "peak_bytes_in_use"]
    numbers += ["requested_bytes", "allocation_bytes", "addr", "data_type", "group_id"]
    line = space.host().line()
    for offset, name in enumerate(numbers):
        odd: dict[str, Any] = {name: Uint(3)}
        allocate(line, offset, 100 + offset, **odd)
    allocate(line, 50, 7, allocator_name=None, device_ordinal=Uint(3))


@MEMORY_CASES.add("memory: value kinds")
def other_kinds_read_zero(space: SpaceBuilder) -> None:
    """Doubles, text, bytes and missing values in integer stats read 0."""
    line = space.host().line()
    for offset, value in enumerate((3.0, "3", b"3", Ref("3"), True)):
        names = ("bytes_allocated", "allocation_bytes", "requested_bytes", "data_type")
        odd: dict[str, Any] = dict.fromkeys(names, value)
        allocate(line, offset, 100 + offset, **odd)
    line.event("MemoryAllocation", 50, 0, [("bytes_allocated", 5), ("bytes_allocated", None)])


@MEMORY_CASES.add("memory: value kinds")
def fragmentation_kinds(space: SpaceBuilder) -> None:
    """Only a double counts; not-a-number and infinity have names in JSON."""
    line = space.host().line()
    values = (
        0.5, float("nan"), 1, 0, Uint(1), float("inf"), float("-inf"), "0.5", 1.0, 1e-310, 0.1,
    )  # fmt: skip
    for offset, value in enumerate(values):
        allocate(line, offset, offset, fragmentation=value)


@MEMORY_CASES.add("memory: value kinds")
def data_type_names(space: SpaceBuilder) -> None:
    """Every DataType number, references to them, and numbers without a name."""
    line = space.host().line()
    numbers = [
        *range(-2, 34),
        *range(99, 134),
        201,
        899,
        999,
        2**31,
        2**32 + 1,
        INT64_MAX,
        INT64_MIN,
    ]
    for offset, number in enumerate(numbers):
        allocate(line, offset, offset, data_type=number, in_use=offset)
    allocate(line, 900, 900, data_type=None)
    allocate(line, 901, 901, data_type="1")


@MEMORY_CASES.add("memory: value kinds")
def strings_by_reference(space: SpaceBuilder) -> None:
    """A reference to a name equals the name; a reference to nothing is empty."""
    host = space.host()
    line = host.line()
    names = ("allocator_name", "tf_op", "region_type", "shape")
    references: dict[str, Any] = {name: Ref(f"the {name}") for name in names}
    allocate(line, 10, 1, **references)
    strings: dict[str, Any] = {name: f"the {name}" for name in names}
    allocate(line, 20, 2, **strings)
    allocate(line, 30, 3, tf_op=Ref("x"))
    host.message.lines[0].events[2].stats[-5].ref_value = 9999


@MEMORY_CASES.add("memory: value kinds")
def text_in_other_kinds_is_empty(space: SpaceBuilder) -> None:
    """An op called 12 arrives as an integer and is lost; bytes and doubles too."""
    line = space.host().line()
    for offset, value in enumerate((12, Uint(12), b"op", 1.5)):
        allocate(line, offset, offset, tf_op=value, region_type=value, shape=value)


@MEMORY_CASES.add("memory: stats")
def unknown_stats_are_skipped(space: SpaceBuilder) -> None:
    """Stats of other names change nothing; `id` is the runtime's step id, not the step."""
    line = space.host().line()
    extra = {"id": 77, "layout": "x", "step_num": 4, "allocation id": 3, "": 9}
    line.event("MemoryAllocation", 10, 0, memory_stats(1) | extra)


@MEMORY_CASES.add("memory: stats")
def repeated_stats_last_wins(space: SpaceBuilder) -> None:
    """Of several stats of one name the last counts, even when it reads 0."""
    stats = [("addr", 1), ("bytes_allocated", 10), ("bytes_allocated", 20), ("tf_op", "a")]
    stats += [("tf_op", "b"), ("addr", 2), ("allocation_bytes", 5), ("allocation_bytes", Uint(6))]
    space.host().line().event("MemoryAllocation", 10, 0, stats)


@MEMORY_CASES.add("memory: stats")
def stats_of_the_metadata_are_not_read(space: SpaceBuilder) -> None:
    """Stats shared by all events of a name are not the event's."""
    host = space.host()
    allocate(host.line(), 10, 1, tf_op=None, allocator_name=None)
    metadata = host.message.event_metadata[host.event_id("MemoryAllocation")]
    host.add_stats(metadata, {"tf_op": "shared", "allocator_name": "shared"})


@MEMORY_CASES.add("memory: stats")
def empty_memory_event(space: SpaceBuilder) -> None:
    """An event without stats is a snapshot of zeros in the memory without a name."""
    space.host().line().event("MemoryAllocation").event("MemoryDeallocation", 5)


@MEMORY_CASES.add("memory: stats")
def missing_metadata_entries(space: SpaceBuilder) -> None:
    """Events and stats whose metadata is not in the file have no name."""
    host = space.host()
    line = host.line()
    allocate(line, 10, 1)
    line.event("MemoryAllocation", 20, 0, memory_stats(2, in_use=999), metadata_id=8888)
    allocate(line, 30, 3)
    host.message.lines[0].events[2].stats[1].metadata_id = 7777


@MEMORY_CASES.add("memory: stats")
def metadata_id_zero(space: SpaceBuilder) -> None:
    """Id 0 is an id like any other when the file has an entry for it."""
    host = space.host()
    host.line().event("MemoryAllocation", 20, 0, memory_stats(2), metadata_id=0)
    host.message.event_metadata[0].name = "MemoryAllocation"


@MEMORY_CASES.add("memory: integers")
def int64_extremes(space: SpaceBuilder) -> None:
    """Values at the ends of the range, and sums beyond it, which wrap around."""
    line = space.host().line()
    allocate(line, 10, INT64_MIN, INT64_MAX, in_use=INT64_MAX, bytes_available=INT64_MIN)
    allocate(line, 20, -1, INT64_MIN, in_use=INT64_MIN, bytes_available=INT64_MAX)
    allocate(line, 30, 5, 10, in_use=INT64_MAX, bytes_available=5, bytes_reserved=7)
    free(line, INT64_MAX, -1, INT64_MAX, in_use=INT64_MIN, bytes_available=0)
    allocate(line, INT64_MIN, 7, 1, in_use=1, peak_bytes_in_use=INT64_MIN)


@MEMORY_CASES.add("memory: integers")
def negative_address_prints_unsigned(space: SpaceBuilder) -> None:
    """The address is unsigned: -1 prints as the largest number."""
    line = space.host().line()
    allocate(line, 10, -1, tf_op="high")
    free(line, 20, -1)


@MEMORY_CASES.add("memory: TPU and device modules")
def modules_of_tpu_planes(space: SpaceBuilder) -> None:
    """Runs of XLA modules on TPU planes, numbered through, with offsets of their own lines."""
    space.plane("/device:GPU:0").line("XLA Modules").event("no", 1, 1)
    space.plane("/device:TPU:1").line("XLA Modules", 5).event("b", 10, 5).event("a", 20, 5)
    allocate(space.host().line(), 10, allocator_name=None, index_on_host=0)
    core = space.plane("/device:TPU:0 SparseCore 2")
    core.line("XLA Ops").event("no", 1, 1)
    core.line("XLA Modules").event("c", 7, 0).event("", -3, 2, metadata_id=999)
    core.line("XLA Modules").event("c", 3, 1)
