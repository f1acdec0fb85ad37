"""The numbers that the readers of an XSpace and their kernels share: kinds of events, roles of
stats, and cases of a stat's value.
"""

from __future__ import annotations

from enum import IntEnum


class EventKind(IntEnum):
    """What the name of an event makes of it, where memory or step grouping care."""

    OTHER = 0
    ALLOCATION = 1
    DEALLOCATION = 2
    EXECUTOR = 3
    ITERATOR_GET_NEXT = 4
    ITERATOR_GET_NEXT_OPTIONAL = 5
    TF_DATA_RUN = 6
    TRACE_CONTEXT = 7
    PROCESS_BATCH = 8
    BATCHING_SESSION_RUN = 9
    START_REGION = 10
    STOP_REGION = 11
    TPU_EXECUTE = 12
    ENQUEUE_REQUEST = 13
    QUEUE_CONSUMER = 14
    ENQUEUE_PROGRAM = 15
    COMPLETE_CALLBACKS = 16
    CONTINUATION_PROGRAM = 17
    KERNEL_LAUNCH = 18
    KERNEL_EXECUTE = 19
    KNOWN = 20
    """A name that says what the event is: a correlation id makes no launch of it."""


class Role(IntEnum):
    """What the name of a stat makes of it."""

    PRODUCER_TYPE = 0
    PRODUCER_ID = 1
    CONSUMER_TYPE = 2
    CONSUMER_ID = 3
    IS_ROOT = 4
    IS_ASYNC = 5
    PROCESS = 6
    ID = 7
    ITER_NUM = 8
    STEP_NUM = 9
    GRAPH_TYPE = 10
    CORRELATION_ID = 11
    GROUP_ID = 12
    REQUEST_ID = 13
    QUEUE_ADDR = 14
    QUEUE_ID = 15
    RUN_ID = 16
    CORE_TYPE = 17
    DEVICE_ORDINAL = 18
    INDEX_ON_HOST = 19
    ALLOCATOR_NAME = 20
    BYTES_RESERVED = 21
    BYTES_ALLOCATED = 22
    BYTES_AVAILABLE = 23
    FRAGMENTATION = 24
    PEAK_BYTES_IN_USE = 25
    REQUESTED_BYTES = 26
    ALLOCATION_BYTES = 27
    ADDRESS = 28
    TF_OP = 29
    REGION_TYPE = 30
    DATA_TYPE = 31
    SHAPE = 32
    KEPT = 33
    """No meaning here."""


# Kinds of events by name.
K_ALLOCATION, K_DEALLOCATION = int(EventKind.ALLOCATION), int(EventKind.DEALLOCATION)
K_START, K_STOP = int(EventKind.START_REGION), int(EventKind.STOP_REGION)
K_EXECUTOR, K_TPU_EXECUTE = int(EventKind.EXECUTOR), int(EventKind.TPU_EXECUTE)
K_ENQUEUE, K_QUEUE_CONSUMER = int(EventKind.ENQUEUE_REQUEST), int(EventKind.QUEUE_CONSUMER)
K_PROGRAM, K_CALLBACKS = int(EventKind.ENQUEUE_PROGRAM), int(EventKind.COMPLETE_CALLBACKS)

ALONE = (
    1 << EventKind.TRACE_CONTEXT
    | 1 << EventKind.PROCESS_BATCH
    | 1 << EventKind.BATCHING_SESSION_RUN
)
"""Bits of the kinds that open steps without any stat."""
USES_ID = (
    ALONE
    | 1 << EventKind.EXECUTOR
    | 1 << EventKind.ITERATOR_GET_NEXT
    | 1 << EventKind.ITERATOR_GET_NEXT_OPTIONAL
    | 1 << EventKind.TF_DATA_RUN
)
"""Bits of the kinds whose id is looked at."""

# Roles of stats.
FIRST_MEMORY_ROLE = int(Role.DEVICE_ORDINAL)
R_PRODUCER_TYPE, R_PRODUCER = int(Role.PRODUCER_TYPE), int(Role.PRODUCER_ID)
R_CONSUMER_TYPE, R_CONSUMER = int(Role.CONSUMER_TYPE), int(Role.CONSUMER_ID)
R_ROOT, R_ASYNC, R_PROCESS, R_ID = (
    int(Role.IS_ROOT), int(Role.IS_ASYNC), int(Role.PROCESS), int(Role.ID),
)  # fmt: skip
R_ITER, R_GRAPH, R_STEP = int(Role.ITER_NUM), int(Role.GRAPH_TYPE), int(Role.STEP_NUM)
R_REQUEST, R_QUEUE_ADDR, R_QUEUE, R_RUN, R_CORE = (
    int(Role.REQUEST_ID), int(Role.QUEUE_ADDR), int(Role.QUEUE_ID),
    int(Role.RUN_ID), int(Role.CORE_TYPE),
)  # fmt: skip
R_ORDINAL, R_INDEX_ON_HOST = int(Role.DEVICE_ORDINAL), int(Role.INDEX_ON_HOST)
R_ALLOCATOR = int(Role.ALLOCATOR_NAME)
R_FIRST_NUMBER, R_LAST_NUMBER = int(Role.BYTES_RESERVED), int(Role.ADDRESS)
R_FRAGMENTATION, R_DATA_TYPE, R_FIRST_TEXT = (
    int(Role.FRAGMENTATION), int(Role.DATA_TYPE), int(Role.TF_OP),
)  # fmt: skip
R_KEPT = int(Role.KEPT)
KEEP = 128
"""Added to the role of a stat that is stored with its event as it is, whatever else it means."""

ATTRIBUTES = (
    1 << Role.IS_ROOT
    | 1 << Role.IS_ASYNC
    | 1 << Role.ITER_NUM
    | 1 << Role.STEP_NUM
    | 1 << Role.GRAPH_TYPE
    | 1 << Role.CORRELATION_ID
    | 1 << Role.GROUP_ID
)
"""Bits of the roles that grouping reads; none is as high as `FIRST_MEMORY_ROLE`."""

# Cases of XStat.value.
V_DOUBLE, V_UINT64, V_INT64, V_STR, V_REF = 2, 3, 4, 5, 7

# Types of contexts, as tsl's context_types.h numbers them.
C_LEGACY, C_TPU_STREAM, C_TPU_LAUNCH = 1, 11, 12
