"""memory_profile: the peak, steps, frees, sampling, and the table at the peak."""

from reference.case import Registry, allocate, free
from reference.xspace_builder import LineBuilder, SpaceBuilder

PEAK_CASES = Registry()


@PEAK_CASES.add("memory: test vector of XProf itself")
def upstream_unit_test(space: SpaceBuilder) -> None:
    """The input of xplane_to_memory_profile_test.cc in openxla/xprof."""
    first: dict[str, object] = {
        "bytes_reserved": 2000, "bytes_allocated": 3000, "bytes_available": 5000,
        "peak_bytes_in_use": 8500, "requested_bytes": 200, "allocation_bytes": 256, "addr": 222333,
        "id": -93746, "data_type": 1, "allocator_name": "GPU_0_bfc", "tf_op": "foo/bar",
        "region_type": "output", "shape": "[3, 3, 512, 512]",
    }  # fmt: skip
    second = first | {"bytes_allocated": 2744, "bytes_available": 5256, "id": 0, "data_type": 0}
    second |= {"region_type": "", "shape": ""}
    del second["tf_op"]
    third = first | {"bytes_allocated": 5000, "bytes_available": 3000, "peak_bytes_in_use": 9500}
    third |= {"requested_bytes": 300, "allocation_bytes": 300, "addr": 345678, "data_type": 9}
    third |= {"tf_op": "mul_grad/Sum", "region_type": "temp", "shape": "[1, 2]"}
    line = space.host().line()
    line.event("MemoryAllocation", 40000, 1000, first)
    line.event("MemoryDeallocation", 50000, 1000, second)
    line.event("MemoryAllocation", 70000, 1000, third)


@PEAK_CASES.add("memory: summary")
def lifetime_peak_is_the_last_in_the_file(space: SpaceBuilder) -> None:
    """The lifetime peak is what the file's last event says, not the largest nor the latest."""
    host = space.host()
    allocate(host.line(), 90, 1, peak_bytes_in_use=500)
    line = host.line()
    allocate(line, 10, 2, peak_bytes_in_use=900)
    allocate(line, 20, 3, peak_bytes_in_use=300)


@PEAK_CASES.add("memory: summary")
def equal_peaks_the_later_in_the_file_wins(space: SpaceBuilder) -> None:
    """An event that reaches the peak again takes it over, in the order of the file."""
    host = space.host()
    line = host.line()
    allocate(line, 100, 1, in_use=512, bytes_available=1)
    allocate(line, 200, 2, in_use=512, bytes_available=2)
    allocate(host.line(), 50, 3, in_use=500, bytes_reserved=12, bytes_available=3)


@PEAK_CASES.add("memory: summary")
def negative_usage_is_no_peak(space: SpaceBuilder) -> None:
    """Usage below zero never reaches the peak, which starts at zero."""
    line = space.host().line()
    allocate(line, 10, 1, in_use=-5)
    allocate(line, 20, 2, in_use=-1, bytes_reserved=-10)


@PEAK_CASES.add("memory: summary")
def usage_of_zero_is_a_peak(space: SpaceBuilder) -> None:
    """Zero reaches the peak that starts at zero, every time."""
    line = space.host().line()
    for offset in (10, 20, 30):
        allocate(line, offset, offset, 0, in_use=0, bytes_available=offset)


@PEAK_CASES.add("memory: order")
def events_out_of_order_are_sorted(space: SpaceBuilder) -> None:
    """Snapshots of all lines are sorted by time for everything but the summary."""
    host = space.host()
    line = host.line()
    for offset in (50, 10, 30):
        allocate(line, offset, offset, in_use=offset)
    other = host.line()
    for offset in (40, 20, 60):
        free(other, offset, offset - 10, in_use=offset)


@PEAK_CASES.add("memory: order")
def equal_times_keep_the_order_of_the_file(space: SpaceBuilder) -> None:
    """Few snapshots of one time stay in the order of the file."""
    line = space.host().line()
    allocate(line, 10, 1, in_use=64, tf_op="first")
    free(line, 10, 1, in_use=0)
    allocate(line, 10, 1, in_use=64, tf_op="second")
    free(line, 20, 1, in_use=0)


def _step(line: LineBuilder, begin: int, number: int) -> None:
    line.event("train", begin, 100, {"_r": 1, "step_num": number})


@PEAK_CASES.add("memory: steps")
def ungrouped_events_go_to_the_next_step(space: SpaceBuilder) -> None:
    """What has no step gets the number after the last seen, also in the middle of a step."""
    host = space.host()
    steps = host.line()
    for number, begin in enumerate((1000, 2000, 3000)):
        _step(steps, begin, 170 + number)
        allocate(steps, begin + 10, number, in_use=number)
    other = host.line()
    for offset in (500, 1005, 1050, 1500, 2050, 3500):
        allocate(other, offset, offset, in_use=offset)


@PEAK_CASES.add("memory: steps")
def steps_may_go_backwards(space: SpaceBuilder) -> None:
    """The number of the latest grouped event counts, even if it is smaller than one before."""
    host = space.host()
    outer = host.line(timestamp_ns=1)
    _step(outer, 0, 1)
    allocate(outer, 60, 1, in_use=10)
    other = host.line(timestamp_ns=0)
    _step(other, 2000, 2)
    allocate(other, 2010, 2, in_use=20)
    late = host.line(timestamp_ns=2)
    _step(late, 20, 3)
    allocate(late, 30, 3, in_use=30)
    allocate(host.line(), 70, 4, in_use=40)


@PEAK_CASES.add("memory: frees")
def frees_inherit_the_first_allocation(space: SpaceBuilder) -> None:
    """Two allocations at one address: the first names the free, the second stays active."""
    line = space.host().line()
    allocate(line, 10, 1, 64, in_use=64, tf_op="first", shape="[1]")
    allocate(line, 20, 1, 96, in_use=160, tf_op="second", shape="[2]", data_type=9)
    free(line, 30, 1, 96, in_use=64)
    free(line, 40, 1, 64, in_use=0, tf_op="own name", shape="[9]")


@PEAK_CASES.add("memory: frees")
def free_without_allocation_keeps_its_own(space: SpaceBuilder) -> None:
    """A free of an unknown address, or a second free, stays as it was written."""
    line = space.host().line()
    free(line, 10, 5, in_use=500, tf_op="kept", region_type="temp")
    allocate(line, 20, 5, in_use=600, tf_op="alloc")
    free(line, 30, 5, in_use=500)
    free(line, 40, 5, in_use=400)


@PEAK_CASES.add("memory: frees")
def address_reuse(space: SpaceBuilder) -> None:
    """An address freed and used again is a new allocation."""
    line = space.host().line()
    for number in range(4):
        allocate(line, number * 20, 1, 64 + number, in_use=64 + number, tf_op=f"op{number}")
        free(line, number * 20 + 10, 1, 64 + number, in_use=0)


def _many(space: SpaceBuilder, count: int) -> None:
    line = space.host().line()
    for number in range(count):
        in_use = (number * 7919) % 613
        if number % 2 == 0:
            allocate(line, number, number, number % 96, in_use=in_use, bytes_reserved=number % 3)
        else:
            free(line, number, number - 1, (number - 1) % 96, in_use=in_use)


@PEAK_CASES.add("memory: sampling")
def sampling_1000(space: SpaceBuilder) -> None:
    """As many as the limit: all are kept."""
    _many(space, 1000)


@PEAK_CASES.add("memory: sampling")
def sampling_1001(space: SpaceBuilder) -> None:
    """One more than the limit: a single bucket of two, at the end."""
    _many(space, 1001)


@PEAK_CASES.add("memory: sampling")
def sampling_1500(space: SpaceBuilder) -> None:
    """Half of the buckets hold one, half two."""
    _many(space, 1500)


@PEAK_CASES.add("memory: sampling")
def sampling_2000(space: SpaceBuilder) -> None:
    """Twice the limit: all buckets hold two."""
    _many(space, 2000)


@PEAK_CASES.add("memory: sampling")
def sampling_2500(space: SpaceBuilder) -> None:
    """Buckets of two, then of three."""
    _many(space, 2500)


@PEAK_CASES.add("memory: sampling")
def sampling_12345(space: SpaceBuilder) -> None:
    """Buckets of 12, then of 13."""
    _many(space, 12345)


@PEAK_CASES.add("memory: sampling")
def sampling_takes_the_first_of_equals(space: SpaceBuilder) -> None:
    """Of equal snapshots in a bucket the first is taken; heap and stack count together."""
    line = space.host().line()
    for number in range(3000):
        allocate(line, number, number, in_use=100 - number % 2, bytes_reserved=number % 2)


@PEAK_CASES.add("memory: sampling")
def sampling_is_per_memory(space: SpaceBuilder) -> None:
    """Each memory has its own limit."""
    line = space.host().line()
    for number in range(2400):
        name = "large" if number % 2 else "small"
        if name == "large" or number % 6 == 0:
            allocate(line, number, number, in_use=number % 701, allocator_name=name)


@PEAK_CASES.add("memory: step of the peak")
def peak_step_is_the_last_at_the_peak(space: SpaceBuilder) -> None:
    """The last snapshot in time whose use equals the peak names the step."""
    line = space.host().line()
    for number, begin in enumerate((0, 1000, 2000)):
        _step(line, begin, number)
        allocate(line, begin + 10, number, 32, in_use=500 if number < 2 else 400)
        allocate(line, begin + 20, 10 + number, 16, in_use=300)


@PEAK_CASES.add("memory: step of the peak")
def peak_step_after_the_peak_time(space: SpaceBuilder) -> None:
    """Where the file's order differs from time's, the peak's step may lie after its time."""
    host = space.host()
    line = host.line()
    _step(line, 1000, 1)
    allocate(line, 1010, 2, 32, in_use=500)
    other = host.line()
    _step(other, 0, 0)
    allocate(other, 10, 1, 32, in_use=500)


@PEAK_CASES.add("memory: step of the peak")
def peak_that_no_snapshot_equals(space: SpaceBuilder) -> None:
    """If all usage is below zero no snapshot equals the peak and its step is 0."""
    line = space.host().line()
    _step(line, 0, 1)
    _step(line, 1000, 2)
    allocate(line, 1010, 2, 32, in_use=-500)


@PEAK_CASES.add("memory: active allocations")
def active_set_holds_the_peak_step_only(space: SpaceBuilder) -> None:
    """Allocations of earlier steps, live or freed, are lumped together."""
    line = space.host().line()
    _step(line, 0, 0)
    allocate(line, 10, 1, 100, in_use=100, tf_op="weights")
    allocate(line, 20, 2, 50, in_use=150, tf_op="old")
    _step(line, 1000, 1)
    allocate(line, 1010, 3, 200, in_use=350, tf_op="activation")
    free(line, 1020, 2, 50, in_use=300)
    allocate(line, 1030, 4, 30, in_use=330, tf_op="temp")
    free(line, 1040, 4, 30, in_use=300)
    allocate(line, 1050, 5, 300, in_use=600, tf_op="gradient")
    allocate(line, 1060, 6, 10, in_use=590, tf_op="after the peak")


@PEAK_CASES.add("memory: active allocations")
def later_allocation_replaces_at_one_address(space: SpaceBuilder) -> None:
    """A second allocation at an address replaces the first; both reduce what is unmapped."""
    line = space.host().line()
    allocate(line, 10, 1, 100, in_use=100, tf_op="first")
    allocate(line, 20, 1, 70, in_use=400, tf_op="second")


@PEAK_CASES.add("memory: active allocations")
def events_at_the_peak_time_count(space: SpaceBuilder) -> None:
    """Everything up to and including the time of the peak counts."""
    host = space.host()
    allocate(host.line(), 50, 1, 100, in_use=800, tf_op="peak")
    other = host.line()
    allocate(other, 50, 2, 70, in_use=700, tf_op="same time")
    allocate(other, 51, 3, 60, in_use=600, tf_op="later")


@PEAK_CASES.add("memory: special allocations")
def unmapped_and_stack(space: SpaceBuilder) -> None:
    """What active allocations leave over, and the stack, are rows of their own."""
    allocate(space.host().line(), 10, 1, 100, in_use=1000, bytes_reserved=300)


@PEAK_CASES.add("memory: special allocations")
def stack_only(space: SpaceBuilder) -> None:
    """Nothing unmapped: the stack is special allocation 0 with index -1."""
    allocate(space.host().line(), 10, 1, 1000, in_use=1000, bytes_reserved=300)


@PEAK_CASES.add("memory: special allocations")
def negative_unmapped_is_dropped(space: SpaceBuilder) -> None:
    """Active allocations beyond the heap leave less than nothing, which is not shown."""
    allocate(space.host().line(), 10, 1, 5000, in_use=1000)


@PEAK_CASES.add("memory: special allocations")
def negative_and_zero_sizes(space: SpaceBuilder) -> None:
    """Sizes below zero add to what is unmapped and sort last; a negative stack is none."""
    line = space.host().line()
    allocate(line, 10, 1, -100, in_use=900, tf_op="negative")
    allocate(line, 20, 2, 0, in_use=900, tf_op="zero")
    free(line, 30, 9, -50, in_use=950)
    allocate(line, 40, 3, 20, in_use=1000, bytes_reserved=-7, tf_op="positive")


@PEAK_CASES.add("memory: rows")
def rows_sort_by_every_key(space: SpaceBuilder) -> None:
    """Size, then request, both largest first, then op, region, type and shape."""
    line = space.host().line()
    keys = [
        (64, 64, "b", "temp", 1, "[1]"),
        (64, 64, "a", "temp", 1, "[1]"),
        (64, 60, "0", "temp", 1, "[1]"),
        (128, 1, "z", "temp", 1, "[1]"),
        (64, 64, "b", "output", 1, "[1]"),
        (64, 64, "b", "temp", 9, "[1]"),
        (64, 64, "b", "temp", 1, "[0]"),
        (64, 64, "é", "temp", 1, "[1]"),
        (64, 64, "\U0001f600", "temp", 1, "[1]"),
        (64, 64, "￰", "temp", 1, "[1]"),
        (64, 64, "B", "temp", 1, "[1]"),
        (64, 64, "", "temp", 1, "[1]"),
    ]
    for number, (size, requested, op, region, data_type, shape) in enumerate(keys):
        allocate(
            line,
            number * 10,
            number,
            size,
            in_use=number * 100,
            requested_bytes=requested,
            tf_op=op,
            region_type=region,
            data_type=data_type,
            shape=shape,
        )


@PEAK_CASES.add("memory: rows")
def equal_rows_merge(space: SpaceBuilder) -> None:
    """Equal allocations are one row with a count; the kept snapshots are one per row."""
    line = space.host().line()
    for number in range(12):
        size = 64 if number % 3 else 32
        allocate(line, number * 10, number, size, in_use=number * 100, tf_op=f"op{number % 2}")


@PEAK_CASES.add("memory: rows")
def special_row_among_normal_ones(space: SpaceBuilder) -> None:
    """Special rows take their place by size; kept snapshots are numbered in row order."""
    line = space.host().line()
    allocate(line, 10, 1, 50, in_use=50, tf_op="small")
    allocate(line, 20, 2, 500, in_use=550, tf_op="large")
    allocate(line, 30, 3, 300, in_use=1050, bytes_reserved=100, tf_op="medium")


@PEAK_CASES.add("memory: rows")
def unnamed_op_at_the_peak(space: SpaceBuilder) -> None:
    """Allocations without any annotation have empty names, not missing ones."""
    line = space.host().line()
    bare = dict.fromkeys(("tf_op", "region_type", "data_type", "shape"))
    allocate(line, 10, 1, 64, in_use=64, **bare)


@PEAK_CASES.add("memory: several memories")
def several_allocators(space: SpaceBuilder) -> None:
    """Each memory has its own peak, steps, frees and rows, even for equal addresses."""
    line = space.host().line()
    _step(line, 0, 0)
    for number, name in enumerate(("GPU_0_bfc", "GPU_1_bfc", "cpu")):
        allocate(line, 10 + number, 1, 64 + number, in_use=64 + number, allocator_name=name)
    free(line, 20, 1, 65, in_use=0, allocator_name="GPU_1_bfc")
    free(line, 30, 1, 64, in_use=0, allocator_name="cuda_host_bfc")
