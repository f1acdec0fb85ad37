"""Grouping: edges between threads, by equal stats and by contexts."""

from reference.case import Registry, allocate
from reference.cases_forest import ROOT, consume, produce, work
from reference.xspace_builder import SpaceBuilder, Uint

CONTEXT_CASES = Registry()


@CONTEXT_CASES.add("grouping: threads")
def iterator_get_next(space: SpaceBuilder) -> None:
    """The executor leads to both iterator ops of equal id and iteration."""
    host = space.host()
    steps = host.line()
    steps.event("train", 0, 1000, ROOT)
    steps.event("ExecutorState::Process", 100, 100, {"id": 5, "iter_num": 0})
    line = host.line()
    work(line, 200, {"id": 5, "iter_num": 0}, "IteratorGetNextOp::DoCompute")
    work(line, 400, {"id": 5, "iter_num": Uint(0)}, "IteratorGetNextAsOptionalOp::DoCompute")
    work(line, 600, {"id": 6, "iter_num": 0}, "IteratorGetNextOp::DoCompute")
    work(line, 800, {"id": 5}, "IteratorGetNextOp::DoCompute")


@CONTEXT_CASES.add("grouping: threads")
def last_executor_of_a_key_wins(space: SpaceBuilder) -> None:
    """Of two executor events of one key only the last read leads on."""
    host = space.host()
    key = {"id": 5, "iter_num": 0}
    steps = host.line()
    for begin in (0, 1000):
        steps.event("train", begin, 900, ROOT)
        steps.event("ExecutorState::Process", begin + 100, 100, key)
    work(host.line(), 3000, key, "IteratorGetNextOp::DoCompute")


@CONTEXT_CASES.add("grouping: threads")
def kernels_by_correlation(space: SpaceBuilder) -> None:
    """A host event with a correlation id launches the device events that share it."""
    host = space.host()
    line = host.line()
    line.event("train", 0, 1000, ROOT)
    line.event("cudaLaunchKernel", 100, 50, {"correlation_id": Uint(31)})
    line.event("MatMul:MatMul", 200, 50, {"correlation_id": 32})
    line.event("Iterator::Map", 300, 50, {"correlation_id": 33})
    line.event("matmul:dot_general[x=1]", 400, 50, {"correlation_id": 34})
    line.event("model/MatMul_1:", 500, 50, {"correlation_id": 35})
    line.event("model/matmul_1:", 600, 50, {"correlation_id": 36})
    stream = space.plane("/device:GPU:0").line("Stream #1")
    for number in range(31, 38):
        stream.event("kernel", number * 100, 50, {"correlation_id": number})
    other = space.plane("/host:CUPTI").line()
    other.event("kernel", 100, 50, {"correlation_id": 31} | produce(2, 9))
    allocate(host.line(), 5000, 1)
    work(host.line(), 6000, consume(2, 9))


@CONTEXT_CASES.add("grouping: threads")
def last_launch_of_a_correlation_wins(space: SpaceBuilder) -> None:
    """A reused correlation id belongs to the last launch read."""
    line = space.host().line()
    for begin in (0, 1000):
        line.event("train", begin, 500, {"_r": 1})
        line.event("launch", begin + 100, 50, {"correlation_id": 1})
    space.plane("/device:GPU:0").line().event("kernel", 2000, 50, {"correlation_id": 1})


@CONTEXT_CASES.add("grouping: contexts")
def contexts_join_threads(space: SpaceBuilder) -> None:
    """Type and id must be equal; -1 and 2^64-1 are one id; a type of another kind reads 0."""
    host = space.host()
    steps = host.line()
    produced = [(2, 1), (2, -1), (3, 1), (0, 6)]
    for number, (context_type, context_id) in enumerate(produced):
        stats = {"_r": 1} | produce(context_type, context_id)
        steps.event("train", number * 100, 90, stats)
    line = host.line()
    consumed = [consume(2, 1), {"_ct": 2, "_c": Uint(2**64 - 1)}, consume(3, 1)]
    consumed += [{"_ct": Uint(2), "_c": 6}, {"_ct": 2**32 + 2, "_c": 1}, {"_ct": 2}, {"_c": 1}]
    for number, stats in enumerate(consumed):
        work(line, 1000 + number * 200, stats)


@CONTEXT_CASES.add("grouping: contexts")
def repeated_context_stats(space: SpaceBuilder) -> None:
    """Of repeated context stats the last counts."""
    host = space.host()
    host.line().event("train", 0, 90, [("_r", 1), ("_pt", 2), ("_p", 1), ("_p", 2)])
    work(host.line(), 200, consume(2, 1))
    work(host.line(), 400, [("_c", 7), ("_ct", 3), ("_ct", 2), ("_c", 2)])


@CONTEXT_CASES.add("grouping: contexts")
def contexts_of_metadata_do_not_count(space: SpaceBuilder) -> None:
    """Context stats shared by all events of a name are not read."""
    host = space.host()
    host.line().event("train", 0, 90, ROOT | produce(2, 1))
    work(host.line(), 200)
    host.add_stats(host.message.event_metadata[host.event_id("work")], consume(2, 1))


def _crowd(space: SpaceBuilder, producers: int, consumers: int) -> None:
    host = space.host()
    steps = host.line()
    for number in range(producers):
        steps.event("train", number * 10, 5, {"_r": 1} | produce(2, 1))
    line = host.line()
    for number in range(consumers):
        work(line, 1000 + number * 200, consume(2, 1))


@CONTEXT_CASES.add("grouping: contexts")
def crowd_64_by_64(space: SpaceBuilder) -> None:
    """64 producers and 64 consumers of one key are not connected."""
    _crowd(space, 64, 64)


@CONTEXT_CASES.add("grouping: contexts")
def crowd_63_by_64(space: SpaceBuilder) -> None:
    """One producer fewer, and all are connected: the first root takes every consumer."""
    _crowd(space, 63, 64)


@CONTEXT_CASES.add("grouping: contexts")
def crowd_64_by_63(space: SpaceBuilder) -> None:
    """One consumer fewer, and all are connected."""
    _crowd(space, 64, 63)


@CONTEXT_CASES.add("grouping: contexts")
def contexts_are_per_process(space: SpaceBuilder) -> None:
    """A plane's process, or an event's own, keeps contexts apart."""
    host = space.host({"process_id": 8})
    host.line().event("train", 0, 90, ROOT | produce(2, 1))
    work(host.line(), 200, consume(2, 1))
    work(host.line(), 400, consume(2, 1) | {"_pid": 9})
    work(host.line(), 600, consume(2, 1) | {"_pid": 2**32 + 8})
    work(space.plane("/host:CPU [8]", {"process_id": 8}).line(), 200, consume(2, 1))
    work(space.plane("/host:CPU [9]", {"process_id": 9}).line(), 200, consume(2, 1))
    work(space.plane("/host:CPU [9]").line(), 200, consume(2, 1))
    work(space.plane("/host:CPU [9]").line(), 400, consume(2, 1) | {"_pid": 8})


@CONTEXT_CASES.add("grouping: contexts")
def producers_keep_the_process_of_their_plane(space: SpaceBuilder) -> None:
    """An event's own process does not count where it has _p and its plane a process."""
    host = space.host({"process_id": 8})
    host.line().event("train", 0, 90, ROOT | produce(2, 1) | {"_pid": 9})
    work(host.line(), 600, consume(2, 1) | {"_pid": 9, "_p": 5})
    work(host.line(), 800, consume(2, 1) | {"_pid": 9, "_pt": 5})
    work(host.line(), 200, consume(2, 1))
    work(host.line(), 400, consume(2, 1) | {"_pid": 9})
    free_plane = space.plane("/host:CPU [7]")
    free_plane.line().event("train", 1000, 90, ROOT | produce(2, 1) | {"_pid": 7})
    work(free_plane.line(), 1200, consume(2, 1))
    work(free_plane.line(), 1400, consume(2, 1) | {"_pid": 7})


@CONTEXT_CASES.add("grouping: contexts")
def producer_and_consumer_of_one_context(space: SpaceBuilder) -> None:
    """A root that consumes its own context stands above itself and opens no group."""
    host = space.host()
    work(host.line(), 100, ROOT | produce(2, 1) | consume(2, 1))
    work(host.line(), 300, {"_r": 1})
