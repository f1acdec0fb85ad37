"""What to keep of the events of a line."""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.bits import low64, signed32, unsigned64
    from peakline.kernels.xplane_numbers import (
        ALONE,
        ATTRIBUTES,
        C_LEGACY,
        C_TPU_LAUNCH,
        C_TPU_STREAM,
        FIRST_MEMORY_ROLE,
        K_ALLOCATION,
        K_CALLBACKS,
        K_DEALLOCATION,
        K_ENQUEUE,
        K_EXECUTOR,
        K_PROGRAM,
        K_QUEUE_CONSUMER,
        K_START,
        K_STOP,
        K_TPU_EXECUTE,
        KEEP,
        R_ALLOCATOR,
        R_ASYNC,
        R_CONSUMER,
        R_CONSUMER_TYPE,
        R_CORE,
        R_DATA_TYPE,
        R_FIRST_NUMBER,
        R_FIRST_TEXT,
        R_FRAGMENTATION,
        R_GRAPH,
        R_ID,
        R_INDEX_ON_HOST,
        R_ITER,
        R_KEPT,
        R_LAST_NUMBER,
        R_ORDINAL,
        R_PROCESS,
        R_PRODUCER,
        R_PRODUCER_TYPE,
        R_QUEUE,
        R_QUEUE_ADDR,
        R_REQUEST,
        R_ROOT,
        R_RUN,
        R_STEP,
        USES_ID,
        V_DOUBLE,
        V_INT64,
        V_REF,
        V_STR,
        V_UINT64,
    )

__all__ = ["NO_PROCESS", "gather"]

NO_PROCESS = 1 << 40
"""Stands for no process; a process is an int32."""


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _step(mixed: cython.ulonglong, value: cython.ulonglong) -> cython.ulonglong:
    mixed = mixed ^ value
    mixed = low64((mixed ^ (mixed >> 30)) * low64(0xBF58476D1CE4E5B9))
    mixed = low64((mixed ^ (mixed >> 27)) * low64(0x94D049BB133111EB))
    return mixed ^ (mixed >> 31)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _mix(a: cython.ulonglong, b: cython.ulonglong, c: cython.ulonglong) -> cython.ulonglong:
    """One 64-bit number for three (splitmix64 steps)."""
    return _step(_step(_step(low64(0x9E3779B97F4A7C15), a), b), c)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_int(case: cython.longlong) -> cython.bint:
    return case == V_INT64 or case == V_UINT64


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _has(roles: cython.longlong, role: cython.longlong) -> cython.bint:
    """Whether the bit of a role is set."""
    return (roles >> role) & 1 == 1


def gather(
    kinds: cython.const[cython.uchar][::1],
    case: cython.const[cython.uchar][::1],
    bits: cython.const[cython.longlong][::1],
    duration: cython.const[cython.longlong][::1],
    stat_event: cython.const[cython.int][::1],
    stat_role: cython.const[cython.uchar][::1],
    stat_case: cython.const[cython.uchar][::1],
    stat_bits: cython.const[cython.longlong][::1],
    stat_length: cython.const[cython.int][::1],
    *,
    line_event: cython.longlong,
    first_node: cython.longlong,
    ref_ids: cython.const[cython.longlong][::1],
    ref_table: cython.const[cython.int][::1],
    want_memory: cython.bint,
    process: cython.longlong,
    core: cython.longlong,
    prune: cython.bint,
    own_ends: cython.bint,
    begin: cython.longlong[::1],
    length: cython.longlong[::1],
    node: cython.int[::1],
    marks: cython.longlong[::1],
    at: cython.longlong[::1],
    node_kind: cython.uchar[::1],
    root_node: cython.int[::1],
    root_event: cython.int[::1],
    producer_node: cython.int[::1],
    producer_key: cython.ulonglong[::1],
    consumer_node: cython.int[::1],
    consumer_key: cython.ulonglong[::1],
    attr_node: cython.int[::1],
    attr_role: cython.uchar[::1],
    attr_case: cython.uchar[::1],
    attr_bits: cython.longlong[::1],
    mem_node: cython.int[::1],
    mem_event: cython.int[::1],
    mem_kind: cython.uchar[::1],
    mem_numbers: cython.longlong[:, ::1],
    mem_codes: cython.int[:, ::1],
    first_mem: cython.longlong,
    mem_dtype: cython.int[::1],
    mem_id: cython.schar[::1],
    mem_have: cython.ushort[::1],
    mem_odd: cython.ushort[::1],
    spans: cython.longlong[:, ::1],
    chosen: cython.int[::1],
    seen: cython.longlong[::1],
    as_float: cython.double[::1],
    as_bits: cython.const[cython.longlong][::1],
) -> None:
    """Sort the events and stats of one piece of a line into what later steps need.

    ``begin``/``length``/``node`` get one entry per event (offset, duration, node number or -1).
    Events that can open a step, that are reached from elsewhere, or that carry a stat which
    grouping reads become nodes, numbered from ``first_node``. Any other event shares the group of
    the node around it, so producers and memory events are noted by their number in the line
    (``line_event`` is that of the first); ``own_ends`` makes nodes of all producers. With
    ``prune`` an instant that only consumes, that nothing can lie in, and whose own step nobody
    requests, is left out: it leads nowhere.

    ``at`` gets how many nodes, roots, producers, consumers, attributes, memory records and spans
    there are, how many ``marks`` of thread-pool regions (twice the event's number, plus one for a
    stop), how many stats are ``chosen`` (the numbers of those whose role has `KEEP`), how many
    asynchronous attributes, and how many events were left out.
    A memory event fills one row of the ``mem_`` arrays: numbers by role; codes of strings (the
    position of a reference among ``ref_ids``, looked up in ``ref_table`` where it is small;
    -2 - k for the k-th span; -1 for none); bits by role from device_ordinal on for what is
    present (``have``) and what upstream reads as zero because of its kind (``odd``).

    ``seen`` has room for a number per role, ``as_float`` and ``as_bits`` are one double, seen as
    that and as its bits.
    """
    nodes: cython.longlong = 0
    roots: cython.longlong = 0
    producers: cython.longlong = 0
    consumers: cython.longlong = 0
    attrs: cython.longlong = 0
    memory: cython.longlong = 0
    texts: cython.longlong = 0
    marked: cython.longlong = 0
    keeps: cython.longlong = 0
    asynchronous: cython.longlong = 0
    pruned: cython.longlong = 0
    count: cython.longlong = kinds.shape[0]
    stats: cython.longlong = stat_event.shape[0]
    refs: cython.longlong = ref_ids.shape[0]
    nowhere: cython.longlong = NO_PROCESS
    s: cython.longlong = 0
    e: cython.longlong
    k: cython.longlong
    c: cython.longlong
    first: cython.longlong
    kind: cython.longlong
    role: cython.longlong
    what: cython.longlong
    value: cython.longlong
    bit: cython.longlong
    any_role: cython.longlong
    p_type: cython.longlong
    c_type: cython.longlong
    p_id: cython.ulonglong
    c_id: cython.ulonglong
    a: cython.ulonglong
    b: cython.ulonglong
    device: cython.ulonglong
    core_type: cython.ulonglong
    context: cython.ulonglong
    context_type: cython.longlong
    one: cython.longlong
    two: cython.longlong
    after: cython.longlong
    n: cython.longlong
    m: cython.longlong
    where: cython.longlong
    flag: cython.longlong
    have: cython.longlong
    odd: cython.longlong
    number: cython.longlong
    row: cython.longlong
    code: cython.longlong
    low: cython.longlong
    high: cython.longlong
    middle: cython.longlong
    place: cython.longlong
    is_memory: cython.bint
    is_alone: cython.bint
    is_mark: cython.bint
    is_node: cython.bint
    is_int: cython.bint
    wanted: cython.bint
    has_p: cython.bint
    has_c: cython.bint
    produces: cython.bint
    consumes: cython.bint
    only_consumes: cython.bint
    uses_id: cython.bint
    ready: cython.bint
    queued: cython.bint
    launch: cython.bint
    with cython.nogil:
        for e in range(count):
            first = s
            while s < stats and stat_event[s] == e:
                s += 1
            begin[e] = bits[e] if case[e] == 2 else 0
            length[e] = duration[e]
            kind = kinds[e]
            is_memory = want_memory and (kind == K_ALLOCATION or kind == K_DEALLOCATION)
            is_alone = (ALONE >> kind) & 1 == 1
            if kind == K_STOP:
                marks[marked] = 2 * e + 1
                marked += 1
            if first == s and not is_memory and not is_alone:
                node[e] = -1
                continue

            # Contexts are read from the last stat of a name, everything else from the first.
            wanted = is_alone
            any_role = 0
            for k in range(first, s):
                role = stat_role[k]
                if role & KEEP:
                    chosen[keeps] = k
                    keeps += 1
                    role ^= KEEP
                if role > FIRST_MEMORY_ROLE:
                    continue
                bit = 1 << role
                if not any_role & bit or role <= R_CONSUMER or role == R_PROCESS:
                    seen[role] = k
                any_role |= bit
                if ATTRIBUTES & bit:
                    wanted = True
            has_p, has_c = _has(any_role, R_PRODUCER), _has(any_role, R_CONSUMER)
            produces = has_p and _has(any_role, R_PRODUCER_TYPE)
            consumes = has_c and _has(any_role, R_CONSUMER_TYPE)
            p_type, c_type, p_id, c_id = 0, 0, 0, 0
            if _has(any_role, R_PRODUCER_TYPE) and stat_case[seen[R_PRODUCER_TYPE]] == V_INT64:
                p_type = signed32(unsigned64(stat_bits[seen[R_PRODUCER_TYPE]]))
            if _has(any_role, R_CONSUMER_TYPE) and stat_case[seen[R_CONSUMER_TYPE]] == V_INT64:
                c_type = signed32(unsigned64(stat_bits[seen[R_CONSUMER_TYPE]]))
            if has_p and _is_int(stat_case[seen[R_PRODUCER]]):
                p_id = unsigned64(stat_bits[seen[R_PRODUCER]])
            if has_c and _is_int(stat_case[seen[R_CONSUMER]]):
                c_id = unsigned64(stat_bits[seen[R_CONSUMER]])
            if kind == K_START and has_c:
                marks[marked] = 2 * e
                marked += 1
            if kind >= K_TPU_EXECUTE or kind == K_EXECUTOR or core >= 0:
                # Older events name their contexts in other stats.
                one, two, context_type, ready = R_ID, R_ITER, C_LEGACY, False
                queued = kind == K_ENQUEUE or kind == K_QUEUE_CONSUMER
                launch = kind == K_PROGRAM or kind == K_CALLBACKS or core >= 0
                if queued:
                    one, two, context_type = R_REQUEST, R_QUEUE_ADDR, C_TPU_STREAM
                elif launch:
                    one, two, context_type = R_QUEUE, R_RUN, C_TPU_LAUNCH
                if kind == K_EXECUTOR or kind == K_TPU_EXECUTE or queued or launch:
                    ready = _has(any_role, one) and _has(any_role, two)
                if launch and core < 0:
                    ready = ready and _has(any_role, R_ORDINAL)
                if ready:
                    a, b = 0, 0
                    if _is_int(stat_case[seen[one]]):
                        a = unsigned64(stat_bits[seen[one]])
                    if _is_int(stat_case[seen[two]]):
                        b = unsigned64(stat_bits[seen[two]])
                    context = _mix(a, b, 0)
                    if launch:
                        device, core_type = 0, 0
                        if core >= 0:
                            device = unsigned64(core)
                        else:
                            # The run's id counts 27 bits.
                            b = low64(b << 37) >> 37
                            k = seen[R_ORDINAL]
                            if _is_int(stat_case[k]):
                                device = unsigned64(stat_bits[k])
                        if _has(any_role, R_CORE) and _is_int(stat_case[seen[R_CORE]]):
                            core_type = unsigned64(stat_bits[seen[R_CORE]])
                        context = _mix(a, b, _mix(device, core_type, 1))
                    if kind == K_EXECUTOR or kind == K_ENQUEUE or (kind == K_PROGRAM and core < 0):
                        produces, has_p, p_type, p_id = True, True, context_type, context
                    else:
                        consumes, c_type, c_id = True, context_type, context
            uses_id = _has(any_role, R_ID) and (_has(USES_ID, kind) or _has(any_role, R_ROOT))
            is_node = wanted or uses_id or consumes or (produces and own_ends)
            only_consumes = consumes and not (wanted or uses_id or produces or is_memory)
            if prune and only_consumes and duration[e] == 0 and e + 1 < count:
                after = bits[e + 1] if case[e + 1] == 2 else 0
                if after > begin[e]:
                    is_node, consumes = False, False
                    pruned += 1
            n = -1
            if is_node:
                n = first_node + nodes
                node_kind[nodes] = kind
                nodes += 1
                is_mark = _has(any_role, R_ROOT) or _has(any_role, R_STEP)
                if is_alone or kind == K_EXECUTOR or is_mark:
                    root_node[roots] = n
                    root_event[roots] = e
                    roots += 1
            node[e] = n
            if not (is_node or produces or is_memory):
                continue

            where = process
            if _has(any_role, R_PROCESS) and (process == nowhere or not has_p):
                k = seen[R_PROCESS]
                where = 0
                if stat_case[k] == V_INT64:
                    where = signed32(unsigned64(stat_bits[k]))
            if p_type == C_TPU_LAUNCH or c_type == C_TPU_LAUNCH:
                where = nowhere
            if produces:
                producer_node[producers] = line_event + e
                producer_key[producers] = _mix(unsigned64(where), unsigned64(p_type), p_id)
                producers += 1
            if consumes:
                consumer_node[consumers] = n
                consumer_key[consumers] = _mix(unsigned64(where), unsigned64(c_type), c_id)
                consumers += 1

            m = memory
            if is_memory:
                memory += 1
                mem_node[m] = line_event + e
                mem_event[m] = e
                mem_kind[m] = kind
                mem_id[m] = -1
                for c in range(mem_codes.shape[0]):
                    mem_codes[c, first_mem + m] = -1
            for k in range(first, s):
                role, what, value = stat_role[k] & ~KEEP, stat_case[k], stat_bits[k]
                is_int = _is_int(what)
                if (role < FIRST_MEMORY_ROLE and _has(ATTRIBUTES, role)) or (
                    role == R_ID and uses_id
                ):
                    attr_node[attrs] = n
                    attr_role[attrs] = role
                    attr_case[attrs] = what
                    attr_bits[attrs] = value if is_int or what == V_REF else 0
                    if what == V_STR and role == R_GRAPH:
                        # Where the text lies and how long it is, in one number.
                        number = min(stat_length[k], 1 << 18)
                        attr_bits[attrs] = value | number << 44
                    attrs += 1
                    if role == R_ASYNC:
                        asynchronous += 1
                if not is_memory or role < FIRST_MEMORY_ROLE or role == R_KEPT:
                    continue
                flag = 1 << (role - FIRST_MEMORY_ROLE)
                have = mem_have[m] | flag
                odd = mem_odd[m] & ~flag
                if role == R_ORDINAL or role == R_INDEX_ON_HOST:
                    mem_id[m] = role
                    mem_numbers[8, first_mem + m] = value if what == V_INT64 else 0
                elif R_FIRST_NUMBER <= role <= R_LAST_NUMBER:
                    number = 0
                    if role == R_FRAGMENTATION:
                        if what == V_DOUBLE:
                            number = value
                        else:
                            as_float[0] = value if is_int else 0
                            number = as_bits[0]
                            odd |= flag
                    else:
                        if is_int:
                            number = value
                        if what != V_INT64:
                            odd |= flag
                    place = role - R_FIRST_NUMBER
                    # Rows are zero before: pages that nobody writes cost nothing.
                    if number != 0 or mem_numbers[place, first_mem + m] != 0:
                        mem_numbers[place, first_mem + m] = number
                elif role == R_DATA_TYPE:
                    mem_dtype[m] = signed32(unsigned64(value)) if is_int else 0
                    if what == V_UINT64:
                        odd |= flag
                else:
                    # allocator_name, tf_op, region_type, shape: only a string or a reference is
                    # text.
                    row = 1 + role - R_FIRST_TEXT
                    if role > R_DATA_TYPE:
                        row -= 1
                    if role == R_ALLOCATOR:
                        row = 0
                        mem_id[m] = role
                    code = refs
                    if what == V_REF:
                        if 0 <= value < ref_table.shape[0]:
                            code = ref_table[value]
                        else:
                            low, high = 0, refs
                            while low < high:
                                middle = (low + high) >> 1
                                if ref_ids[middle] < value:
                                    low = middle + 1
                                else:
                                    high = middle
                            if low < refs and ref_ids[low] == value:
                                code = low
                    elif what == V_STR:
                        spans[0, texts] = value
                        spans[1, texts] = stat_length[k]
                        code = -2 - texts
                        texts += 1
                    mem_codes[row, first_mem + m] = code
                mem_have[m] = have
                mem_odd[m] = odd
        at[0], at[1], at[2], at[3], at[4] = nodes, roots, producers, consumers, attrs
        at[5], at[6], at[7], at[8], at[9] = memory, texts, marked, keeps, asynchronous
        at[10] = pruned
