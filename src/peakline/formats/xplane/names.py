"""Names with a meaning inside an XSpace: events, stats, planes and lines.

Source: ``xla/tsl/profiler/utils/xplane_schema.cc`` in openxla/xla. Names are looked up in each
plane's own metadata, since numeric ids differ from file to file.
"""

from __future__ import annotations

import re

from peakline.kernels.xplane_numbers import EventKind, Role
from peakline.text import whole_number

HOST_PLANE = "/host:CPU"

NO_GROUP = -(2**63)
"""Stands for no group: any other number may be a group that a file gives."""


STAT_ROLES: dict[str, Role] = {
    "_pt": Role.PRODUCER_TYPE,
    "_p": Role.PRODUCER_ID,
    "_ct": Role.CONSUMER_TYPE,
    "_c": Role.CONSUMER_ID,
    "_r": Role.IS_ROOT,
    "_a": Role.IS_ASYNC,
    "_pid": Role.PROCESS,
    "id": Role.ID,
    "iter_num": Role.ITER_NUM,
    "step_num": Role.STEP_NUM,
    "graph_type": Role.GRAPH_TYPE,
    "correlation_id": Role.CORRELATION_ID,
    "group_id": Role.GROUP_ID,
    "request_id": Role.REQUEST_ID,
    "queue_addr": Role.QUEUE_ADDR,
    "queue_id": Role.QUEUE_ID,
    "run_id": Role.RUN_ID,
    "core_type": Role.CORE_TYPE,
    "device_ordinal": Role.DEVICE_ORDINAL,
    "index_on_host": Role.INDEX_ON_HOST,
    "allocator_name": Role.ALLOCATOR_NAME,
    "bytes_reserved": Role.BYTES_RESERVED,
    "bytes_allocated": Role.BYTES_ALLOCATED,
    "bytes_available": Role.BYTES_AVAILABLE,
    "fragmentation": Role.FRAGMENTATION,
    "peak_bytes_in_use": Role.PEAK_BYTES_IN_USE,
    "requested_bytes": Role.REQUESTED_BYTES,
    "allocation_bytes": Role.ALLOCATION_BYTES,
    "addr": Role.ADDRESS,
    "tf_op": Role.TF_OP,
    "region_type": Role.REGION_TYPE,
    "data_type": Role.DATA_TYPE,
    "shape": Role.SHAPE,
}

KEPT_STATS = frozenset(
    """
    _ipl_stage_cat _ipl_stage_id _ipl_stage_name all_reduce_unique_id bytes_accessed
    correlation_id device_duration_ps device_offset_ps equation flops group_id hlo_module hlo_op
    is_eager kernel_details memcpy_details program_id step_name tf_op
    """.split()
)
"""Stats that say which op or step an event belongs to: stored with the events, where these are."""

LOOP_OPS = {"WhileOp-EvalCond", "WhileOp-StartBody", "ForOp", "ParallelForOp", "ForeverOp"}
"""A capture that holds one of these event names is not grouped at all."""

IMPLICIT_ROOTS = {"FunctionRun", "SessionRun", "RunGraph", "ExecutorState::Process"}
"""Roots whose name does not become part of the step's name."""

TPU_STEP_LINES = ("Steps", "Sparse Core Steps")
TPU_MODULE_LINES = ("XLA Modules", "Sparse Core Modules")

EVENT_KINDS: dict[str, EventKind] = {
    "MemoryAllocation": EventKind.ALLOCATION,
    "MemoryDeallocation": EventKind.DEALLOCATION,
    "ExecutorState::Process": EventKind.EXECUTOR,
    "IteratorGetNextOp::DoCompute": EventKind.ITERATOR_GET_NEXT,
    "IteratorGetNextAsOptionalOp::DoCompute": EventKind.ITERATOR_GET_NEXT_OPTIONAL,
    "InstantiatedCapturedFunction::Run": EventKind.TF_DATA_RUN,
    "InstantiatedCapturedFunction::RunWithBorrowedArgs": EventKind.TF_DATA_RUN,
    "InstantiatedCapturedFunction::RunInstantiated": EventKind.TF_DATA_RUN,
    "InstantiatedCapturedFunction::RunAsync": EventKind.TF_DATA_RUN,
    "TraceContext": EventKind.TRACE_CONTEXT,
    "ProcessBatch": EventKind.PROCESS_BATCH,
    "OrbaxServing::ProcessBatch": EventKind.PROCESS_BATCH,
    "BatchingSessionRun": EventKind.BATCHING_SESSION_RUN,
    "ThreadpoolListener::StartRegion": EventKind.START_REGION,
    "ThreadpoolListener::StopRegion": EventKind.STOP_REGION,
    "TpuExecuteOp": EventKind.TPU_EXECUTE,
    "EnqueueRequestLocked": EventKind.ENQUEUE_REQUEST,
    "RunProgramRequest": EventKind.QUEUE_CONSUMER,
    "HostCallbackRequest": EventKind.QUEUE_CONSUMER,
    "TransferH2DRequest": EventKind.QUEUE_CONSUMER,
    "TransferPreprocessedH2DRequest": EventKind.QUEUE_CONSUMER,
    "TransferD2HRequest": EventKind.QUEUE_CONSUMER,
    "OnDeviceSendRequest": EventKind.QUEUE_CONSUMER,
    "OnDeviceRecvRequest": EventKind.QUEUE_CONSUMER,
    "OnDeviceSendRecvLocalRequest": EventKind.QUEUE_CONSUMER,
    "CustomWait": EventKind.QUEUE_CONSUMER,
    "OnDeviceSendRequestMulti": EventKind.QUEUE_CONSUMER,
    "OnDeviceRecvRequestMulti": EventKind.QUEUE_CONSUMER,
    "PjrtAsyncWait": EventKind.QUEUE_CONSUMER,
    "DoEnqueueProgram": EventKind.ENQUEUE_PROGRAM,
    "CompleteCallbacks": EventKind.COMPLETE_CALLBACKS,
    "DoEnqueueContinuationProgram": EventKind.CONTINUATION_PROGRAM,
    "KernelLaunch": EventKind.KERNEL_LAUNCH,
    "KernelExecute": EventKind.KERNEL_EXECUTE,
}

_KNOWN = LOOP_OPS | set(
    """
    UnknownHostEventType SessionRun FunctionRun RunGraph RunGraphDone TfOpRun EagerExecute
    ExecutorDoneCallback RemotePerfCounter Iterator Iterator::Prefetch::Generator
    PrefetchProduce PrefetchConsume ParallelInterleaveProduce ParallelInterleaveConsume
    ParallelInterleaveInitializeInput ParallelMapProduce ParallelMapConsume MapAndBatchProduce
    MapAndBatchConsume ParseExampleProduce ParseExampleConsume ParallelBatchProduce
    ParallelBatchConsume BrainSessionRun ConcatInputTensors MergeInputTensors
    ScheduleWithoutSplit ScheduleWithSplit ScheduleWithEagerSplit ASBSQueue::Schedule
    OrbaxServing::ConcatInputBuffers TfrtModelRun ServingModelRun WriteHbm ReadHbm
    TPUPartitionedCallOp-InitializeVarOnTPU TPUPartitionedCallOp-ExecuteRemote
    TPUPartitionedCallOp-ExecuteLocal Linearize Delinearize
    TransferBufferFromDevice-FastPath tpu::System::TransferToDevice=>IssueEvent
    tpu::System::TransferToDevice=>IssueEvent=>Done tpu::System::TransferFromDevice=>IssueEvent
    tpu::System::TransferFromDevice=>IssueEvent=>Done tpu::System::Execute
    """.split()
)
_TF_OP = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_./>-]*")
_TF_TYPE = re.compile(r"[A-Z_][a-zA-Z0-9_]*")
_JAX_TYPE = re.compile(r"[a-z_][a-z0-9_]*(\[.*\])?")
_HOST_PREFIXES = (
    "/host:CPU", "Host CPUs", "/host:tfstreamz", "/host:metadata", "Syscalls",
    "/host:python-tracer", "/host:CUPTI", "/host:__ScopeRangeCallStack__",
)  # fmt: skip


def has_known_type(name: str) -> bool:
    """Whether the name alone says what an event is: a known host event, a TensorFlow or
    tf.data op.
    """
    if name in _KNOWN or (name in EVENT_KINDS and "Region" not in name):
        return True
    op, colon, op_type = name.partition(":")
    if not colon:
        return False
    if op == "Iterator" or (_TF_OP.fullmatch(op) and _TF_TYPE.fullmatch(op_type)):
        return True
    if op_type:
        return False
    scope = op.split("/")[-1]
    suffix = scope.split("_")[-1]
    if re.fullmatch(r"[+-]?[0-9]+", suffix):
        scope = scope[: -len(suffix) - 1]
    return _JAX_TYPE.fullmatch(scope) is None


def is_host_plane(name: str) -> bool:
    """Whether the plane holds threads of a host."""
    return name.startswith(_HOST_PREFIXES)


def is_device_plane(name: str) -> bool:
    """Whether the plane holds what a device did."""
    return not is_host_plane(name) and name.startswith(("/device", "#Chip", "/custom:"))


def tensor_core(plane: str) -> int | None:
    """The number of the TensorCore whose plane this is."""
    match = re.fullmatch(r"/device:TPU:([0-9]+)", plane)
    return None if match is None else whole_number(match[1])


def is_sparse_core(plane: str) -> bool:
    """Whether the plane is that of a SparseCore."""
    pattern = r"/device:TPU:[0-9]+ SparseCore(?: [a-zA-Z]+)? ([0-9]+)"
    return re.fullmatch(pattern, plane) is not None
