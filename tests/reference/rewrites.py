"""What is done to each plane before events are grouped (preprocess_xplane.h in openxla/xla)."""

import re

from reference.model import Event, Line, Plane

ROOT_LEVELS = {"ProcessBatch": 2, "OrbaxServing::ProcessBatch": 2, "BatchingSessionRun": 1}
RUN_ID_MASKED = {"DoEnqueueProgram", "CompleteCallbacks", "DoEnqueueContinuationProgram"}
QUEUE_CONSUMERS = {
    "RunProgramRequest", "HostCallbackRequest", "TransferH2DRequest",
    "TransferPreprocessedH2DRequest", "TransferD2HRequest", "OnDeviceSendRequest",
    "OnDeviceRecvRequest", "OnDeviceSendRecvLocalRequest", "CustomWait", "OnDeviceSendRequestMulti",
    "OnDeviceRecvRequestMulti", "PjrtAsyncWait",
}  # fmt: skip
LEGACY, TPU_STREAM, TPU_LAUNCH = 1, 11, 12
START_REGION = "ThreadpoolListener::StartRegion"
STOP_REGION = "ThreadpoolListener::StopRegion"
REGION = "ThreadpoolListener::Region"


def tensor_core(plane_name: str) -> int | None:
    """The number of the TensorCore whose plane this is."""
    match = re.fullmatch(r"/device:TPU:([0-9]+)", plane_name)
    return None if match is None else int(match[1])


def rewrite_plane(plane: Plane) -> None:
    """Apply every rewrite to ``plane``."""
    for line in plane.lines:
        _add_threadpool_regions(line)
        core = tensor_core(plane.name)
        if core is not None and line.name == "XLA Modules":
            for event in line.events:
                _connect_module(event, core)
        for event in line.events:
            _rewrite_event(event)


def _add_threadpool_regions(line: Line) -> None:
    """Add an event over each start and stop of a pool's work, then sort the line.

    The start must say whom it works for, and must not be at time zero, which counts as none.
    """
    start = 0
    regions = []
    for event in line.events:
        if event.name == START_REGION and event.stat("_c") is not None:
            start = event.span.begin
        elif event.name == STOP_REGION and start != 0:
            offset = start - line.timestamp_ns * 1000
            regions.append(Event(REGION, offset, event.span.begin - start, [], line))
    if regions:
        line.events.extend(regions)
        line.events.sort(key=lambda e: (e.offset_ps % 2**64, -(e.duration_ps % 2**64)))


def _rewrite_event(event: Event) -> None:
    if event.name in ROOT_LEVELS:
        event.set_stat("_r", "int64", ROOT_LEVELS[event.name])
    if event.name == "ExecutorState::Process":
        _connect(event, "producer", LEGACY, ("id", "iter_num"))
    if event.name == "TpuExecuteOp":
        _connect(event, "consumer", LEGACY, ("id", "iter_num"))
    if event.name == "EnqueueRequestLocked":
        _connect(event, "producer", TPU_STREAM, ("request_id", "queue_addr"))
    if event.name in QUEUE_CONSUMERS:
        _connect(event, "consumer", TPU_STREAM, ("request_id", "queue_addr"))
    run_id = event.stat("run_id")
    if event.name in RUN_ID_MASKED and run_id is not None:
        event.set_stat("run_id", "int64", run_id.int_or_uint & (2**27 - 1))
    launch = ("device_ordinal", "queue_id", "run_id", "core_type")
    if event.name == "DoEnqueueProgram":
        _connect(event, "producer", TPU_LAUNCH, launch)
    if event.name == "CompleteCallbacks":
        _connect(event, "consumer", TPU_LAUNCH, launch)


def _connect_module(event: Event, core: int) -> None:
    """Make a module's run the consumer of the host's launch; the plane names the device."""
    queue_id, run_id = event.stat("queue_id"), event.stat("run_id")
    core_type = event.stat("core_type")
    if queue_id is None or run_id is None:
        return
    key = (
        core,
        queue_id.int_or_uint,
        run_id.int_or_uint,
        core_type.int_or_uint if core_type else 0,
    )
    _set_context(event, "consumer", TPU_LAUNCH, key)


def _connect(event: Event, side: str, context_type: int, names: tuple[str, ...]) -> None:
    """Overwrite the event's producer or consumer stats if it has all the named stats."""
    key = []
    for name in names:
        stat = event.stat(name)
        if stat is not None:
            key.append(stat.int_or_uint)
        elif name == "core_type":
            key.append(0)
        else:
            return
    _set_context(event, side, context_type, tuple(key))


def _set_context(event: Event, side: str, context_type: int, key: tuple[int, ...]) -> None:
    type_name, id_name = ("_pt", "_p") if side == "producer" else ("_ct", "_c")
    event.set_stat(type_name, "int64", context_type)
    event.set_stat(id_name, "context", key)
