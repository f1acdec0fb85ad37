"""Sequential kernels over the events of a line: what to keep of them, and what encloses what."""

from __future__ import annotations

import numba as nb
import numpy as np

from peakline.sources.xplane.names import EventKind, Role

__all__ = ["FIRST_MEMORY_ROLE", "NO_PROCESS", "gather"]

U = np.uint64  # an unsigned index needs no check for counting from the end

# XStat.value cases.
DOUBLE, UINT64, INT64, STR, REF = 2, 3, 4, 5, 7

NO_PROCESS = 1 << 40
"""Stands for no process; a process is an int32."""

FIRST_MEMORY_ROLE = int(Role.DEVICE_ORDINAL)
_ALLOCATOR, _ORDINAL = int(Role.ALLOCATOR_NAME), int(Role.DEVICE_ORDINAL)
_INDEX_ON_HOST = int(Role.INDEX_ON_HOST)
_FIRST_NUMBER, _LAST_NUMBER = int(Role.BYTES_RESERVED), int(Role.ADDRESS)
_FRAGMENTATION, _DATA_TYPE, _FIRST_TEXT = (
    int(Role.FRAGMENTATION), int(Role.DATA_TYPE), int(Role.TF_OP),
)  # fmt: skip
_PT, _P, _CT, _C = (
    int(Role.PRODUCER_TYPE), int(Role.PRODUCER_ID), int(Role.CONSUMER_TYPE), int(Role.CONSUMER_ID),
)  # fmt: skip
_ROOT, _ASYNC, _PROCESS, _ID = (
    int(Role.IS_ROOT), int(Role.IS_ASYNC), int(Role.PROCESS), int(Role.ID),
)  # fmt: skip
_ITER, _STEP, _GRAPH, _CORRELATION, _GROUP = (
    int(Role.ITER_NUM), int(Role.STEP_NUM), int(Role.GRAPH_TYPE),
    int(Role.CORRELATION_ID), int(Role.GROUP_ID),
)  # fmt: skip
_REQUEST, _QUEUE_ADDR, _QUEUE, _RUN, _CORE = (
    int(Role.REQUEST_ID), int(Role.QUEUE_ADDR), int(Role.QUEUE_ID),
    int(Role.RUN_ID), int(Role.CORE_TYPE),
)  # fmt: skip
_ROLES = len(Role)
_IS_ATTRIBUTE = np.zeros(_ROLES, np.bool_)
_IS_ATTRIBUTE[[_ROOT, _ASYNC, _ITER, _STEP, _GRAPH, _CORRELATION, _GROUP]] = True

_ALLOCATION, _DEALLOCATION = int(EventKind.ALLOCATION), int(EventKind.DEALLOCATION)
_START, _STOP = int(EventKind.START_REGION), int(EventKind.STOP_REGION)
_EXECUTOR, _TPU_EXECUTE = int(EventKind.EXECUTOR), int(EventKind.TPU_EXECUTE)
_ENQUEUE, _QUEUE_CONSUMER = int(EventKind.ENQUEUE_REQUEST), int(EventKind.QUEUE_CONSUMER)
_PROGRAM, _CALLBACKS = int(EventKind.ENQUEUE_PROGRAM), int(EventKind.COMPLETE_CALLBACKS)
_ALONE = np.zeros(32, np.bool_)  # kinds that open steps without any stat
_ALONE[[EventKind.TRACE_CONTEXT, EventKind.PROCESS_BATCH, EventKind.BATCHING_SESSION_RUN]] = True
_USES_ID = _ALONE.copy()  # kinds whose id is looked at
_USES_ID[
    [
        EventKind.EXECUTOR,
        EventKind.ITERATOR_GET_NEXT,
        EventKind.ITERATOR_GET_NEXT_OPTIONAL,
        EventKind.TF_DATA_RUN,
    ]
] = True

_LEGACY, _TPU_STREAM, _TPU_LAUNCH = 1, 11, 12
_RUN_ID_MASK = np.uint64(2**27 - 1)


@nb.njit(forceinline=True)
def _step(mixed, value):  # type: ignore[no-untyped-def]
    mixed = mixed ^ value
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


@nb.njit(forceinline=True)
def mix(a, b, c):  # type: ignore[no-untyped-def]
    """One 64-bit number for three (splitmix64 steps)."""
    mixed = _step(np.uint64(0x9E3779B97F4A7C15), np.uint64(a))
    return _step(_step(mixed, np.uint64(b)), np.uint64(c))


@nb.njit(cache=True, nogil=True)
def gather(  # type: ignore[no-untyped-def]
    kinds, case, bits, duration,
    stat_event, stat_role, stat_case, stat_bits, stat_length,
    first_event, line_event, first_node, ref_ids, ref_table, want_memory, process, core,
    prune, own_ends,
    begin, length, node, marks,
    at, node_kind, root_node, root_event,
    producer_node, producer_key, consumer_node, consumer_key,
    attr_node, attr_role, attr_case, attr_bits,
    mem_node, mem_event, mem_kind, mem_numbers, mem_codes, first_mem, mem_dtype, mem_id,
    mem_have, mem_odd,
    spans,
):  # fmt: skip
    """Sort the events and stats of one piece of a line into what later steps need.

    ``begin``/``length``/``node`` get one entry per event (offset, duration, node number or -1).
    Events that can open a step, that are reached from elsewhere, or that carry a stat which
    grouping reads become nodes, numbered from ``first_node``. Any other event shares the group of
    the node around it, so producers and memory events are noted by their number in the line
    (``line_event`` is that of the first); ``own_ends`` makes nodes of all producers. With
    ``prune`` an instant that only consumes, that nothing can lie in, and whose own step nobody
    asks for, is left out: it leads nowhere.

    ``at`` gets how many nodes, roots, producers, consumers, attributes, memory records and spans
    there are, how many ``marks`` of thread-pool regions (twice the event's number, plus one for a
    stop), how many asynchronous attributes, and how many events were left out.
    A memory event fills one row of the ``mem_`` arrays: numbers by role; codes of strings (the
    position of a reference among ``ref_ids``, looked up in ``ref_table`` where it is small;
    -2 - k for the k-th span; -1 for none); bits by role from device_ordinal on for what is
    present (``have``) and what upstream reads as zero because of its kind (``odd``).
    """
    nodes, roots, producers, consumers, attrs = 0, 0, 0, 0, 0
    memory, texts, marked, asynchronous, pruned = 0, 0, 0, 0, 0
    last = kinds.size - 1
    as_float = np.zeros(1)
    as_bits = as_float.view(np.int64)
    seen = np.zeros(_ROLES, np.int64)  # 1 + the stat that counts, per role, for this event
    s = 0
    for e in range(kinds.size):
        first = s
        while s < stat_event.size and stat_event[U(s)] == first_event + e:
            s += 1
        begin[U(e)] = bits[U(e)] if case[U(e)] == 2 else 0
        length[U(e)] = duration[U(e)]
        kind = kinds[U(e)]
        is_memory = want_memory and (kind == _ALLOCATION or kind == _DEALLOCATION)
        if kind == _STOP:
            marks[U(marked)] = 2 * e + 1
            marked += 1
        if first == s and not is_memory and not _ALONE[U(kind)]:
            node[U(e)] = -1
            continue

        # Contexts are read from the last stat of a name, everything else from the first.
        wanted = _ALONE[U(kind)]
        any_role = np.int64(0)
        for k in range(first, s):
            role = stat_role[U(k)]
            if role > FIRST_MEMORY_ROLE:
                continue
            bit = np.int64(1) << role
            if not (any_role & bit) or role <= _C or role == _PROCESS:
                seen[U(role)] = k
            any_role |= bit
            if _IS_ATTRIBUTE[U(role)]:
                wanted = True
        has_p = (any_role >> _P) & 1 == 1
        has_c = (any_role >> _C) & 1 == 1
        produces = has_p and (any_role >> _PT) & 1 == 1
        consumes = has_c and (any_role >> _CT) & 1 == 1
        p_type, c_type = np.int64(0), np.int64(0)
        p_id, c_id = np.uint64(0), np.uint64(0)
        if (any_role >> _PT) & 1 == 1 and stat_case[U(seen[U(_PT)])] == INT64:
            p_type = np.int64(np.int32(stat_bits[U(seen[U(_PT)])]))
        if (any_role >> _CT) & 1 == 1 and stat_case[U(seen[U(_CT)])] == INT64:
            c_type = np.int64(np.int32(stat_bits[U(seen[U(_CT)])]))
        if has_p and (stat_case[U(seen[U(_P)])] == INT64 or stat_case[U(seen[U(_P)])] == UINT64):
            p_id = np.uint64(stat_bits[U(seen[U(_P)])])
        if has_c and (stat_case[U(seen[U(_C)])] == INT64 or stat_case[U(seen[U(_C)])] == UINT64):
            c_id = np.uint64(stat_bits[U(seen[U(_C)])])
        if kind == _START and has_c:
            marks[U(marked)] = 2 * e
            marked += 1
        if kind >= _TPU_EXECUTE or kind == _EXECUTOR or core >= 0:
            # Older events name their contexts in other stats.
            one, two, context_type, ready = _ID, _ITER, _LEGACY, False
            queued = kind == _ENQUEUE or kind == _QUEUE_CONSUMER
            launch = kind == _PROGRAM or kind == _CALLBACKS or core >= 0
            if queued:
                one, two, context_type = _REQUEST, _QUEUE_ADDR, _TPU_STREAM
            elif launch:
                one, two, context_type = _QUEUE, _RUN, _TPU_LAUNCH
            if kind == _EXECUTOR or kind == _TPU_EXECUTE or queued or launch:
                ready = (any_role >> one) & 1 == 1 and (any_role >> two) & 1 == 1
            if launch and core < 0:
                ready = ready and (any_role >> _ORDINAL) & 1 == 1
            if ready:
                a = np.uint64(0)
                b = np.uint64(0)
                if stat_case[U(seen[U(one)])] == INT64 or stat_case[U(seen[U(one)])] == UINT64:
                    a = np.uint64(stat_bits[U(seen[U(one)])])
                if stat_case[U(seen[U(two)])] == INT64 or stat_case[U(seen[U(two)])] == UINT64:
                    b = np.uint64(stat_bits[U(seen[U(two)])])
                context = mix(a, b, np.uint64(0))
                if launch:
                    device, core_type = np.uint64(0), np.uint64(0)
                    if core >= 0:
                        device = np.uint64(core)
                    else:
                        b &= _RUN_ID_MASK
                        k = seen[U(_ORDINAL)]
                        if stat_case[U(k)] == INT64 or stat_case[U(k)] == UINT64:
                            device = np.uint64(stat_bits[U(k)])
                    k = seen[U(_CORE)]
                    if (any_role >> _CORE) & 1 == 1 and (
                        stat_case[U(k)] == INT64 or stat_case[U(k)] == UINT64
                    ):
                        core_type = np.uint64(stat_bits[U(k)])
                    context = mix(a, b, mix(device, core_type, np.uint64(1)))
                if kind == _EXECUTOR or kind == _ENQUEUE or (kind == _PROGRAM and core < 0):
                    produces, has_p, p_type, p_id = True, True, np.int64(context_type), context
                else:
                    consumes, c_type, c_id = True, np.int64(context_type), context
        uses_id = (any_role >> _ID) & 1 == 1 and (_USES_ID[U(kind)] or (any_role >> _ROOT) & 1 == 1)
        is_node = wanted or uses_id or consumes or (produces and own_ends)
        only_consumes = consumes and not (wanted or uses_id or produces or is_memory)
        if prune and only_consumes and duration[U(e)] == 0:
            after = np.int64(0)
            if e < last:
                after = bits[U(e + 1)] if case[U(e + 1)] == 2 else 0
            if e < last and after > begin[U(e)]:
                is_node, consumes = False, False
                pruned += 1
        n = np.int64(-1)
        if is_node:
            n = first_node + nodes
            node_kind[U(nodes)] = kind
            nodes += 1
            if _ALONE[U(kind)] or kind == _EXECUTOR or (any_role >> _ROOT) & 1 == 1:
                root_node[U(roots)] = n
                root_event[U(roots)] = e
                roots += 1
        node[U(e)] = n
        if not (is_node or produces or is_memory):
            continue

        where = process
        if (any_role >> _PROCESS) & 1 == 1 and (process == NO_PROCESS or not has_p):
            k = seen[U(_PROCESS)]
            where = np.int64(0)
            if stat_case[U(k)] == INT64:
                where = np.int64(np.int32(stat_bits[U(k)]))
        if p_type == _TPU_LAUNCH or c_type == _TPU_LAUNCH:
            where = np.int64(NO_PROCESS)
        if produces:
            producer_node[U(producers)] = line_event + e
            producer_key[U(producers)] = mix(where, p_type, p_id)
            producers += 1
        if consumes:
            consumer_node[U(consumers)] = n
            consumer_key[U(consumers)] = mix(where, c_type, c_id)
            consumers += 1

        m = memory
        if is_memory:
            memory += 1
            mem_node[U(m)] = line_event + e
            mem_event[U(m)] = e
            mem_kind[U(m)] = kind
            mem_id[U(m)] = -1
            for c in range(mem_codes.shape[0]):
                mem_codes[c, first_mem + m] = -1
        for k in range(first, s):
            role, what, value = stat_role[U(k)], stat_case[U(k)], stat_bits[U(k)]
            is_int = what == INT64 or what == UINT64
            if _IS_ATTRIBUTE[U(role)] or (role == _ID and uses_id):
                attr_node[U(attrs)] = n
                attr_role[U(attrs)] = role
                attr_case[U(attrs)] = what
                attr_bits[U(attrs)] = value if is_int or what == REF else 0
                if what == STR and role == _GRAPH:
                    # Where the text lies and how long it is, in one number.
                    attr_bits[U(attrs)] = value | min(stat_length[U(k)], 1 << 18) << 44
                attrs += 1
                asynchronous += role == _ASYNC
            if not is_memory or role < FIRST_MEMORY_ROLE:
                continue
            flag = np.int64(1) << (role - FIRST_MEMORY_ROLE)
            have = np.int64(mem_have[U(m)]) | flag
            odd = np.int64(mem_odd[U(m)]) & ~flag
            if role == _ORDINAL or role == _INDEX_ON_HOST:
                mem_id[U(m)] = role
                mem_numbers[8, first_mem + m] = value if what == INT64 else 0
            elif _FIRST_NUMBER <= role <= _LAST_NUMBER:
                number = np.int64(0)
                if role == _FRAGMENTATION:
                    if what == DOUBLE:
                        number = value
                    else:
                        as_float[0] = np.float64(value) if is_int else 0.0
                        number = as_bits[0]
                        odd |= flag
                else:
                    if is_int:
                        number = value
                    if what != INT64:
                        odd |= flag
                if number != 0 or mem_numbers[role - _FIRST_NUMBER, first_mem + m] != 0:
                    mem_numbers[role - _FIRST_NUMBER, first_mem + m] = number
            elif role == _DATA_TYPE:
                mem_dtype[U(m)] = np.int32(value) if is_int else 0
                if what == UINT64:
                    odd |= flag
            else:
                # allocator_name, tf_op, region_type, shape: only a string or a reference is text.
                row = 1 + role - _FIRST_TEXT
                if role > _DATA_TYPE:
                    row -= 1
                if role == _ALLOCATOR:
                    row = 0
                    mem_id[U(m)] = role
                code = np.int64(ref_ids.size)
                if what == REF:
                    if 0 <= value < ref_table.size:
                        code = np.int64(ref_table[U(value)])
                    else:
                        low, high = 0, ref_ids.size
                        while low < high:
                            middle = (low + high) >> 1
                            if ref_ids[middle] < value:
                                low = middle + 1
                            else:
                                high = middle
                        if low < ref_ids.size and ref_ids[low] == value:
                            code = np.int64(low)
                elif what == STR:
                    spans[0, texts] = value
                    spans[1, texts] = stat_length[U(k)]
                    code = np.int64(-2 - texts)
                    texts += 1
                mem_codes[row, first_mem + m] = code
            mem_have[U(m)] = have
            mem_odd[U(m)] = odd
    at[0], at[1], at[2], at[3], at[4] = nodes, roots, producers, consumers, attrs
    at[5], at[6], at[7], at[8], at[9] = memory, texts, marked, asynchronous, pruned
