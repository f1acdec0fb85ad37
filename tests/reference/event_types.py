"""Which event names the grouping knows (xplane_schema.cc and tf_op_utils.cc in openxla/xla)."""

import re

LOOP_OPS = {"WhileOp-EvalCond", "WhileOp-StartBody", "ForOp", "ParallelForOp", "ForeverOp"}
TF_DATA_RUNS = {
    "InstantiatedCapturedFunction::Run",
    "InstantiatedCapturedFunction::RunWithBorrowedArgs",
    "InstantiatedCapturedFunction::RunInstantiated",
    "InstantiatedCapturedFunction::RunAsync",
}
HOST_EVENTS = LOOP_OPS | TF_DATA_RUNS
HOST_EVENTS |= set(
    """
    UnknownHostEventType TraceContext SessionRun FunctionRun RunGraph RunGraphDone TfOpRun
    EagerExecute ExecutorState::Process ExecutorDoneCallback MemoryAllocation MemoryDeallocation
    RemotePerfCounter IteratorGetNextOp::DoCompute IteratorGetNextAsOptionalOp::DoCompute
    Iterator Iterator::Prefetch::Generator PrefetchProduce PrefetchConsume
    ParallelInterleaveProduce ParallelInterleaveConsume ParallelInterleaveInitializeInput
    ParallelMapProduce ParallelMapConsume MapAndBatchProduce MapAndBatchConsume
    ParseExampleProduce ParseExampleConsume ParallelBatchProduce ParallelBatchConsume
    BatchingSessionRun ProcessBatch BrainSessionRun ConcatInputTensors MergeInputTensors
    ScheduleWithoutSplit ScheduleWithSplit ScheduleWithEagerSplit ASBSQueue::Schedule
    OrbaxServing::ProcessBatch OrbaxServing::ConcatInputBuffers TfrtModelRun ServingModelRun
    KernelLaunch KernelExecute EnqueueRequestLocked RunProgramRequest HostCallbackRequest
    TransferH2DRequest TransferPreprocessedH2DRequest TransferD2HRequest OnDeviceSendRequest
    OnDeviceRecvRequest OnDeviceSendRecvLocalRequest CustomWait OnDeviceSendRequestMulti
    OnDeviceRecvRequestMulti PjrtAsyncWait DoEnqueueProgram DoEnqueueContinuationProgram WriteHbm
    ReadHbm TpuExecuteOp CompleteCallbacks TPUPartitionedCallOp-InitializeVarOnTPU
    TPUPartitionedCallOp-ExecuteRemote TPUPartitionedCallOp-ExecuteLocal Linearize Delinearize
    TransferBufferFromDevice-FastPath tpu::System::TransferToDevice=>IssueEvent
    tpu::System::TransferToDevice=>IssueEvent=>Done tpu::System::TransferFromDevice=>IssueEvent
    tpu::System::TransferFromDevice=>IssueEvent=>Done tpu::System::Execute
    """.split()
)


def has_known_type(name: str) -> bool:
    """Whether the name alone says what the event is: a host event, a TensorFlow or tf.data op."""
    if name in HOST_EVENTS:
        return True
    op, colon, op_type = name.partition(":")
    if not colon:
        return False
    if op == "Iterator":
        return True
    if re.fullmatch(r"[A-Za-z0-9.][A-Za-z0-9_./>-]*", op) and re.fullmatch(
        r"[A-Z_][a-zA-Z0-9_]*", op_type
    ):
        return True
    return op_type == "" and not _is_jax_type(_type_from_name(op))


def _is_jax_type(op_type: str) -> bool:
    return re.fullmatch(r"[a-z_][a-z0-9_]*(\[.*\])?", op_type) is not None


def _type_from_name(op: str) -> str:
    """The last scope of an op's name without its number: model/MatMul_1 gives MatMul."""
    last = op.rsplit("/", maxsplit=1)[-1]
    suffix = last.split("_")[-1]
    return last[: -len(suffix) - 1] if re.fullmatch(r"[+-]?[0-9]+", suffix) else last
