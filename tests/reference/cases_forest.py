"""Grouping: when it runs, the rewrites before it, and nesting."""

from reference.case import Registry, allocate
from reference.event_types import LOOP_OPS
from reference.xspace_builder import LineBuilder, SpaceBuilder, Stats, Uint

FOREST_CASES = Registry()
ROOT: dict[str, object] = {"_r": 1, "step_num": 7}


def produce(context_type: int, context_id: int) -> dict[str, object]:
    """The stats of a producer."""
    return {"_pt": context_type, "_p": context_id}


def consume(context_type: int, context_id: int) -> dict[str, object]:
    """The stats of a consumer."""
    return {"_ct": context_type, "_c": context_id}


def work(line: LineBuilder, begin: int, stats: Stats = (), name: str = "work") -> None:
    """An event of 100 ps with an allocation inside."""
    line.event(name, begin, 100, stats)
    allocate(line, begin + 50, begin, in_use=begin)


@FOREST_CASES.add("grouping: when")
def grouped_already(space: SpaceBuilder) -> None:
    """Every host and device plane knows group_id: the file's own values are used."""
    host = space.host()
    work(host.line(), 100, ROOT | {"group_id": 41})
    allocate(host.line(), 500, 9, in_use=500, group_id=42)
    space.plane("/device:GPU:0").stat_id("group_id")
    space.plane("Task Environment")


@FOREST_CASES.add("grouping: when")
def grouped_in_part(space: SpaceBuilder) -> None:
    """A plane without group_id: all are grouped anew, and what is not reached keeps its value."""
    host = space.host()
    work(host.line(), 100, ROOT | {"group_id": 41})
    line = host.line()
    allocate(line, 120, 8, in_use=90, group_id=42)
    work(line, 500, {"_r": 1})
    space.plane("/device:GPU:0")


@FOREST_CASES.add("grouping: when")
def group_id_repeated_on_an_event(space: SpaceBuilder) -> None:
    """Grouping replaces the first group_id; a second one, read later, stays and wins."""
    line = space.host().line()
    line.event("train", 100, 100, ROOT)
    line.event("MemoryAllocation", 150, 0, [("group_id", 5), ("addr", 1), ("group_id", 6)])


@FOREST_CASES.add("grouping: when")
def loop_ops_prevent_grouping(space: SpaceBuilder) -> None:
    """The mere name of a loop op in any plane leaves everything without a group."""
    work(space.host().line(), 100, ROOT)
    space.plane("Task Environment").event_id(min(LOOP_OPS))


def _loop_op(name: str) -> None:
    def fill(space: SpaceBuilder) -> None:
        """Each loop op by itself prevents grouping; a name that only begins alike does not."""
        host = space.host()
        work(host.line(), 100, ROOT)
        host.event_id(name)

    fill.__name__ = "loop_op_" + "".join(c if c.isalnum() else "_" for c in name.lower())
    FOREST_CASES.add("grouping: when")(fill)


for _name in [*sorted(LOOP_OPS), "ForOp:For"]:
    _loop_op(_name)


@FOREST_CASES.add("grouping: when")
def only_other_planes(space: SpaceBuilder) -> None:
    """Without a host or device plane there is nothing to group."""
    work(space.plane("/host:TPU-runtime").line(), 100, ROOT)


@FOREST_CASES.add("grouping: rewrites")
def batching_roots(space: SpaceBuilder) -> None:
    """ProcessBatch is a root of level 2 and swallows the BatchingSessionRun inside."""
    line = space.host().line()
    line.event("ProcessBatch", 0, 1000, {"_r": 9})
    work(line, 100, name="BatchingSessionRun")
    work(line, 1100, name="BatchingSessionRun")
    work(line, 1300, name="OrbaxServing::ProcessBatch")


@FOREST_CASES.add("grouping: rewrites")
def executor_to_tpu_execute(space: SpaceBuilder) -> None:
    """Connected by id and iteration, any integer kind; both or nothing."""
    host = space.host()
    steps = host.line()
    steps.event("train", 0, 1000, ROOT)
    steps.event("ExecutorState::Process", 100, 100, {"id": 5, "iter_num": 0})
    line = host.line()
    work(line, 300, {"id": Uint(5), "iter_num": Uint(0)}, "TpuExecuteOp")
    work(line, 500, {"id": 5, "iter_num": 1}, "TpuExecuteOp")
    work(line, 700, {"id": 5}, "TpuExecuteOp")


@FOREST_CASES.add("grouping: rewrites")
def executor_loses_its_own_context(space: SpaceBuilder) -> None:
    """An executor event with id and iteration no longer produces what it said; others do."""
    host = space.host()
    steps = host.line()
    steps.event("train", 0, 1000, ROOT)
    steps.event("ExecutorState::Process", 100, 50, {"id": 5, "iter_num": 0} | produce(2, 1))
    steps.event("ExecutorState::Process", 200, 50, {"id": 5} | produce(2, 2))
    line = host.line()
    work(line, 300, consume(2, 1))
    work(line, 500, consume(2, 2))


@FOREST_CASES.add("grouping: rewrites")
def queue_requests(space: SpaceBuilder) -> None:
    """EnqueueRequestLocked leads to requests of the same id and queue."""
    host = space.host()
    steps = host.line()
    steps.event("train", 0, 10000, ROOT)
    steps.event("EnqueueRequestLocked", 100, 50, {"request_id": 3, "queue_addr": 77})
    line = host.line()
    names = ["RunProgramRequest", "HostCallbackRequest", "TransferH2DRequest", "CustomWait"]
    names += ["TransferPreprocessedH2DRequest", "TransferD2HRequest", "OnDeviceSendRequest"]
    names += ["OnDeviceRecvRequest", "OnDeviceSendRecvLocalRequest", "PjrtAsyncWait"]
    names += ["OnDeviceSendRequestMulti", "OnDeviceRecvRequestMulti", "OtherRequest"]
    for number, name in enumerate(names):
        work(line, 300 + 200 * number, {"request_id": 3, "queue_addr": Uint(77)}, name)
    work(line, 9000, {"request_id": 4, "queue_addr": 77}, "RunProgramRequest")
    work(line, 9200, {"queue_addr": 77}, "RunProgramRequest")


@FOREST_CASES.add("grouping: rewrites")
def launch_callbacks(space: SpaceBuilder) -> None:
    """DoEnqueueProgram leads to CompleteCallbacks; run ids are cut to 27 bits first."""
    host = space.host()
    launch = {"device_ordinal": 0, "queue_id": 1, "run_id": (5 << 27) + 9}
    steps = host.line()
    steps.event("train", 0, 1000, ROOT)
    steps.event("DoEnqueueProgram", 100, 50, launch)
    line = host.line()
    work(line, 300, launch | {"run_id": 9}, "CompleteCallbacks")
    work(line, 500, launch | {"run_id": 9, "core_type": 0}, "CompleteCallbacks")
    work(line, 700, launch | {"run_id": 9, "core_type": 1}, "CompleteCallbacks")
    work(line, 900, {"queue_id": 1, "run_id": 9}, "CompleteCallbacks")


@FOREST_CASES.add("grouping: rewrites")
def launches_belong_to_no_process(space: SpaceBuilder) -> None:
    """An event that produces or consumes type 12 leaves its process, with all its contexts."""
    host = space.host({"process_id": 8})
    steps = host.line()
    steps.event("train", 0, 1000, ROOT | produce(12, 5))
    steps.event("train", 10, 10, produce(2, 3))
    work(space.plane("/host:CPU [9]", {"process_id": 9}).line(), 300, consume(12, 5))
    line = host.line()
    work(line, 500, consume(12, 6) | consume(2, 3))
    work(line, 700, {"_pt": 12} | consume(2, 3))


@FOREST_CASES.add("grouping: rewrites")
def threadpool_region(space: SpaceBuilder) -> None:
    """A region spans start and stop, nests what lies inside, and does not lead to the start."""
    host = space.host()
    host.line().event("train", 100, 1000, ROOT | produce(15, 4))
    line = host.line()
    line.event("ThreadpoolListener::StartRegion", 200, 0, consume(15, 4))
    work(line, 300)
    work(line, 500, consume(15, 4))
    line.event("ThreadpoolListener::StopRegion", 700)
    work(line, 800)


@FOREST_CASES.add("grouping: rewrites")
def threadpool_region_is_a_parent(space: SpaceBuilder) -> None:
    """A region encloses a root but has none itself; sorting puts it before what it encloses."""
    line = space.host().line()
    line.event("outer", 50, 2000)
    line.event("ThreadpoolListener::StartRegion", 100, 0, {"_c": 1})
    work(line, 200, ROOT)
    line.event("ThreadpoolListener::StopRegion", 500)
    line.event("ThreadpoolListener::StopRegion", 900)
    work(line, 600, ROOT)


@FOREST_CASES.add("grouping: rewrites")
def threadpool_region_markers(space: SpaceBuilder) -> None:
    """A start at time zero or without _c is none; a stop before any start is none."""
    host = space.host()
    for begin, stats in ((0, {"_c": 1}), (100, {}), (100, {"_c": "text"})):
        line = host.line()
        line.event("ThreadpoolListener::StopRegion", begin)
        line.event("ThreadpoolListener::StartRegion", begin, 0, stats)
        work(line, 400, ROOT)
        work(line, 200, {"_r": 1})
        line.event("ThreadpoolListener::StopRegion", 900)


@FOREST_CASES.add("grouping: rewrites")
def threadpool_sorting_changes_the_last_event(space: SpaceBuilder) -> None:
    """Sorting a line with regions changes which memory event is the last of the file."""
    line = space.host().line()
    line.event("ThreadpoolListener::StartRegion", 100, 0, {"_c": 1})
    allocate(line, 300, 1, peak_bytes_in_use=300)
    allocate(line, 200, 2, peak_bytes_in_use=200)
    line.event("ThreadpoolListener::StopRegion", 400)


@FOREST_CASES.add("grouping: nesting")
def nesting_includes_both_ends(space: SpaceBuilder) -> None:
    """An event that begins and ends with its parent is inside; 1 ps more is not."""
    host = space.host()
    for begin, duration in ((100, 100), (100, 101), (99, 50), (200, 0), (201, 0), (150, 50)):
        line = host.line()
        line.event("train", 100, 100, ROOT)
        line.event("MemoryAllocation", begin, duration, {"addr": begin})


@FOREST_CASES.add("grouping: nesting")
def instants_nest(space: SpaceBuilder) -> None:
    """Of two instants at one time the first is the parent of the second."""
    line = space.host().line()
    line.event("train", 100, 0, ROOT)
    allocate(line, 100, 1)
    allocate(line, 101, 2)


@FOREST_CASES.add("grouping: nesting")
def nesting_follows_the_file(space: SpaceBuilder) -> None:
    """Lines are not sorted: a child before its parent is not inside it."""
    line = space.host().line()
    work(line, 150)
    line.event("train", 100, 500, ROOT)
    work(line, 300)
    work(line, 900)
    work(line, 200)


@FOREST_CASES.add("grouping: nesting")
def overlapping_neighbours_do_not_nest(space: SpaceBuilder) -> None:
    """Events that overlap in part are no relatives, and the later one ends the earlier."""
    line = space.host().line()
    line.event("train", 100, 200, ROOT)
    line.event("work", 250, 200)
    allocate(line, 260, 1)


@FOREST_CASES.add("grouping: nesting")
def async_events_do_not_nest(space: SpaceBuilder) -> None:
    """An async event is neither inside nor around others, yet its contexts count."""
    host = space.host()
    line = host.line()
    line.event("train", 100, 1000, ROOT | produce(2, 1))
    line.event("async", 200, 500, {"_a": 1} | consume(2, 1) | produce(2, 2))
    allocate(line, 300, 1)
    line.event("async", 400, 500, {"_a": 1, "_r": 1})
    line.event("sync", 500, 500, {"_a": 0} | produce(2, 3))
    line.event("sync", 550, 50, {"_a": Uint(1)} | produce(2, 3))
    work(host.line(), 1200, consume(2, 2))
    work(host.line(), 1400, consume(2, 3))


@FOREST_CASES.add("grouping: nesting")
def absolute_times_decide(space: SpaceBuilder) -> None:
    """Roots of lines with different timestamps are ordered on one clock."""
    host = space.host()
    work(host.line(timestamp_ns=5), 0, {"_r": 1})
    work(host.line(timestamp_ns=0), 4000, {"_r": 1})
    work(host.line(timestamp_ns=-1), 500, {"_r": 1})


@FOREST_CASES.add("grouping: nesting")
def negative_times_nest_unsigned(space: SpaceBuilder) -> None:
    """Spans are compared without a sign: one that crosses zero encloses nothing."""
    line = space.host().line()
    line.event("train", -100, 200, ROOT)
    allocate(line, -50, 1)
    allocate(line, 50, 2)
    line.event("train", -90, 50, ROOT)
    allocate(line, -60, 3)
    line.event("train", 500, -1, ROOT)
    allocate(line, 600, 4)
