"""The one kernel: walks protobuf wire bytes and emits rows, guided by a plan's tables.

A *frame* is a message that is a row each time it occurs (the root, an element of a repeated
field, a map entry). Singular sub-messages live inside their frame (*inline*), so that two
occurrences merge as the encoding demands. Values of the open frames are stored in *cells*, one
per column, and reach the columns when the frame ends: a frame that a filter rejects or that
turns out to be damaged leaves no trace.

Containers (large messages whose parts are worth having without the whole) and the atomic
messages inside them are emitted by separate walks over the same bytes: the *skeleton* walk
skips the atoms and may pause at any field, so the atoms between two pauses can be decoded by
other threads. Both walks are this function.

Nothing outside ``buf[starts[k]:ends[k]]`` is read, every loop consumes bytes, and a row is
stored only below its table's capacity: no input can crash, hang, or write outside.
"""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.bits import low64, signed32, signed64, unsigned64
    from peakline.kernels.layout import (
        AS_IS,
        BOOL,
        D_BYTES,
        D_COUNT,
        D_CUT,
        D_FIRST,
        D_GROUPS,
        D_MISSING,
        F_ACTION,
        F_CASE_CELL,
        F_CELL,
        F_CHILD,
        F_HAS_CELL,
        F_KIND,
        F_WIDTH,
        F_WIRE,
        FRAME,
        INLINE,
        INT32,
        K_CELLS,
        K_END,
        K_NODE,
        K_ROW,
        K_WIDTH,
        MAX_DEPTH,
        MESSAGE,
        N_CELL,
        N_CELLS,
        N_COLUMN,
        N_COLUMNS,
        N_DESCENDANTS,
        N_DESCENDANTS_END,
        N_FILTER,
        N_FILTER_CELL,
        N_FRAME,
        N_LAST,
        N_LEAF,
        N_PARENT_NODE_CELL,
        N_PHASE,
        N_ROW_CELL,
        N_SPAN_CELL,
        N_WIDTH,
        S_ATOM_BYTES,
        S_DEPTH,
        S_POSITION,
        S_ROOT,
        SCALAR,
        SKIP,
        SPAN,
        SPANS,
        UINT32,
        UNION,
        VALUES,
        ZIGZAG32,
        ZIGZAG64,
    )

__all__ = ["walk"]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _number(bits: cython.ulonglong, kind: cython.longlong) -> cython.longlong:
    """The int64 that holds the value (or, for doubles and uint64, its bits)."""
    low: cython.ulonglong = low64(bits << 32) >> 32
    if kind == INT32:
        return signed32(bits)
    if kind == UINT32:
        return signed64(low)
    if kind == BOOL:
        return 1 if bits != 0 else 0
    if kind == ZIGZAG32:
        return signed32((low >> 1) ^ low64(0 - (low & 1)))
    if kind == ZIGZAG64:
        return signed64((bits >> 1) ^ low64(0 - (bits & 1)))
    return signed64(bits)


def walk(
    buf: cython.const[cython.uchar][::1],
    starts: cython.const[cython.longlong][::1],
    ends: cython.const[cython.longlong][::1],
    fields: cython.longlong,
    spec: cython.const[cython.int][::1],
    nodes: cython.const[cython.int][::1],
    descendants: cython.const[cython.int][::1],
    lut: cython.const[cython.int][::1],
    lut_at: cython.const[cython.longlong][::1],
    ids: cython.const[cython.longlong][::1],
    ids_at: cython.const[cython.longlong][::1],
    state: cython.longlong[::1],
    stack: cython.longlong[::1],
    cells: cython.longlong[::1],
    rows: cython.longlong[::1],
    saved: cython.longlong[:, ::1],
    phase: cython.longlong,
    stop_root: cython.longlong,
    stop_position: cython.longlong,
    pause_after: cython.longlong,
    out8: cython.uchar[::1],
    out32: cython.int[::1],
    out64: cython.longlong[::1],
    width: cython.const[cython.schar][::1],
    base: cython.const[cython.longlong][::1],
    capacity: cython.const[cython.longlong][::1],
    damage: cython.longlong[::1],
) -> bool:
    """Walk messages from ``state`` to the stop position, or until ``pause_after`` bytes passed.

    ``spec``/``nodes``/``descendants``/``lut`` ... ``ids_at`` come from a plan for this ``phase``.
    ``rows`` holds the row counter of every table, in and out: more than ``capacity`` where some
    found no room. Returns True when every root is done.
    """
    root: cython.longlong
    i: cython.longlong
    depth: cython.longlong
    passed: cython.longlong = 0
    pause_at: cython.longlong
    node: cython.longlong
    row: cython.longlong
    at_cells: cython.longlong
    end: cython.longlong
    ready: cython.longlong
    ready_row: cython.longlong
    ready_cells: cython.longlong
    ready_depth: cython.longlong
    packed_stop: cython.longlong
    packed_node: cython.longlong
    packed_wire: cython.longlong
    packed_kind: cython.longlong
    fail_at: cython.longlong
    fail_group: cython.bint
    scratch: cython.longlong
    filter_: cython.longlong
    cell: cython.longlong
    value: cython.longlong
    position: cython.longlong
    low_id: cython.longlong
    high_id: cython.longlong
    middle: cython.longlong
    d: cython.longlong
    n: cython.longlong
    c: cython.longlong
    q: cython.longlong
    at_row: cython.longlong
    first: cython.longlong
    frame: cython.longlong
    lost_to: cython.longlong
    j: cython.longlong
    bits: cython.ulonglong
    tag: cython.ulonglong
    byte: cython.ulonglong
    shift: cython.ulonglong
    torn: cython.bint
    bad: cython.bint
    group: cython.bint
    packed: cython.bint
    keep: cython.bint
    descend: cython.bint
    finished: cython.bint = False
    at: cython.longlong
    action: cython.longlong
    sp: cython.longlong
    wire: cython.longlong
    length: cython.longlong
    stop: cython.longlong
    field: cython.longlong
    left: cython.longlong
    size: cython.longlong
    case_cell: cython.longlong
    before: cython.longlong
    old: cython.longlong
    old_action: cython.longlong
    gone: cython.longlong
    dead: cython.longlong
    child: cython.longlong
    leaf: cython.longlong
    first_field: cython.longlong
    last_byte: cython.longlong
    row_cell: cython.longlong
    farthest: cython.longlong = 1 << 62
    with cython.nogil:
        root, i, depth = state[S_ROOT], state[S_POSITION], state[S_DEPTH]
        pause_at = farthest
        if pause_after > 0:
            pause_at = min(pause_after, farthest)
        node, row, at_cells, end = 0, 0, 0, 0
        if depth >= 0:
            end = stack[depth * K_WIDTH + K_END]
            node = stack[depth * K_WIDTH + K_NODE]
            row = stack[depth * K_WIDTH + K_ROW]
            at_cells = stack[depth * K_WIDTH + K_CELLS]
        # A row whose values are complete in the cells, waiting to be stored; -1: none.
        ready, ready_row, ready_cells, ready_depth = -1, 0, 0, 0
        # The rest of a packed field: where it ends, its table, wire type and kind.
        packed_stop, packed_node, packed_wire, packed_kind = -1, 0, 0, 0
        # Where the bytes turned out to be broken; -1: nowhere.
        fail_at, fail_group = -1, False
        scratch = cells.shape[0] - 3
        while True:
            if ready >= 0:
                keep = True
                filter_ = nodes[ready * N_WIDTH + N_FILTER]
                if filter_ >= 0:
                    cell = ready_cells + nodes[ready * N_WIDTH + N_FILTER_CELL]
                    value = cells[cell]
                    position = -1
                    if 0 <= value < lut_at[filter_ + 1] - lut_at[filter_]:
                        position = lut[lut_at[filter_] + value]
                    else:
                        low_id, high_id = ids_at[filter_], ids_at[filter_ + 1]
                        while low_id < high_id:
                            middle = (low_id + high_id) >> 1
                            if ids[middle] < value:
                                low_id = middle + 1
                            else:
                                high_id = middle
                        if low_id < ids_at[filter_ + 1] and ids[low_id] == value:
                            position = low_id - ids_at[filter_]
                    cells[cell] = position
                    if position < 0:
                        keep = False
                        rows[ready] = ready_row
                        for d in range(
                            nodes[ready * N_WIDTH + N_DESCENDANTS],
                            nodes[ready * N_WIDTH + N_DESCENDANTS_END],
                        ):
                            rows[descendants[d]] = saved[ready_depth, descendants[d]]
                if keep:
                    for n in range(ready, nodes[ready * N_WIDTH + N_LAST] + 1):
                        at_row = ready_row
                        if n != ready:
                            at_row = cells[ready_cells + nodes[n * N_WIDTH + N_ROW_CELL]] - 1
                            if at_row < 0:
                                continue
                        if at_row >= capacity[n]:
                            continue
                        first, cell = (
                            nodes[n * N_WIDTH + N_COLUMN],
                            ready_cells + nodes[n * N_WIDTH + N_CELL],
                        )
                        for c in range(first, first + nodes[n * N_WIDTH + N_COLUMNS]):
                            value = cells[cell]
                            cell += 1
                            if width[c] == 8:
                                out64[base[c] + at_row] = value
                            elif width[c] == 4:
                                out32[base[c] + at_row] = signed32(value)
                            else:
                                out8[base[c] + at_row] = value & 0xFF
                ready = -1

            if fail_at >= 0:
                # Contain the damage in the smallest message that can be dropped or cut.
                frame = nodes[node * N_WIDTH + N_FRAME]
                lost_to = end
                if nodes[frame * N_WIDTH + N_PHASE] == 1:
                    while node != frame:
                        depth -= 1
                        node = stack[depth * K_WIDTH + K_NODE]
                    lost_to = stack[depth * K_WIDTH + K_END]
                if nodes[frame * N_WIDTH + N_PHASE] == phase:
                    damage[D_COUNT] += 1
                    damage[D_BYTES] += lost_to - fail_at
                    if fail_group:
                        damage[D_GROUPS] += 1
                    if damage[D_FIRST] < 0 or fail_at < damage[D_FIRST]:
                        damage[D_FIRST] = fail_at
                passed += lost_to - fail_at
                i, fail_at, fail_group = lost_to, -1, False
                if nodes[frame * N_WIDTH + N_PHASE] == 1:
                    rows[frame] = stack[depth * K_WIDTH + K_ROW]
                    for d in range(
                        nodes[frame * N_WIDTH + N_DESCENDANTS],
                        nodes[frame * N_WIDTH + N_DESCENDANTS_END],
                    ):
                        rows[descendants[d]] = saved[depth, descendants[d]]
                    depth -= 1
                    if depth < 0:
                        root += 1
                        if root < starts.shape[0]:
                            i = starts[root]
                if depth >= 0:
                    end = stack[depth * K_WIDTH + K_END]
                    node = stack[depth * K_WIDTH + K_NODE]
                    row = stack[depth * K_WIDTH + K_ROW]
                    at_cells = stack[depth * K_WIDTH + K_CELLS]
                continue

            if packed_stop >= 0:
                # One more element of a packed field.
                if i >= packed_stop:
                    packed_stop = -1
                    continue
                bits, torn, j = 0, True, i
                if packed_wire == 0:
                    shift = 0
                    while j < min(packed_stop, i + 10):
                        byte = buf[j]
                        j += 1
                        bits = low64(bits | (byte & 0x7F) << shift)
                        shift += 7
                        if byte < 0x80:
                            torn = False
                            break
                else:
                    j = i + (8 if packed_wire == 1 else 4)
                    torn = j > packed_stop
                    if not torn:
                        for q in range(j - i):
                            byte = buf[i + q]
                            bits |= byte << 8 * q
                if torn:
                    if nodes[packed_node * N_WIDTH + N_PHASE] == 1:
                        fail_at = i
                    elif phase == 0:
                        # A container keeps the values before the tear.
                        damage[D_COUNT] += 1
                        damage[D_BYTES] += packed_stop - i
                        if damage[D_FIRST] < 0 or i < damage[D_FIRST]:
                            damage[D_FIRST] = i
                    i, packed_stop = packed_stop, -1
                    continue
                i = j
                cells[scratch], cells[scratch + 1] = row, _number(bits, packed_kind)
                if nodes[packed_node * N_WIDTH + N_PHASE] == phase:
                    ready, ready_row, ready_cells = packed_node, rows[packed_node], scratch
                rows[packed_node] += 1
                continue

            if depth >= 0 and i >= end:
                # The message ends here; a frame's rows are complete.
                if (
                    nodes[node * N_WIDTH + N_FRAME] == node
                    and nodes[node * N_WIDTH + N_PHASE] == phase
                ):
                    ready, ready_row, ready_cells, ready_depth = node, row, at_cells, depth
                depth -= 1
                if depth >= 0:
                    end = stack[depth * K_WIDTH + K_END]
                    node = stack[depth * K_WIDTH + K_NODE]
                    row = stack[depth * K_WIDTH + K_ROW]
                    at_cells = stack[depth * K_WIDTH + K_CELLS]
                else:
                    root += 1
                    if root < starts.shape[0]:
                        i = starts[root]
                continue
            if depth < 0:
                if root >= starts.shape[0]:
                    finished = True
                    break
                if root > stop_root or (root == stop_root and i >= stop_position):
                    break
                # Open the next root.
                i, end, node, at_cells = starts[root], ends[root], 0, 0
                row = rows[0]
                rows[0] += 1
                depth = 0
                for c in range(nodes[0 * N_WIDTH + N_CELLS]):
                    cells[c] = 0
                cells[nodes[0 * N_WIDTH + N_CELL]] = root
                if nodes[0 * N_WIDTH + N_SPAN_CELL] >= 0:
                    cells[nodes[0 * N_WIDTH + N_SPAN_CELL]] = i
                    cells[nodes[0 * N_WIDTH + N_SPAN_CELL] + 1] = end - i
                (
                    stack[0 * K_WIDTH + K_END],
                    stack[0 * K_WIDTH + K_NODE],
                    stack[0 * K_WIDTH + K_ROW],
                    stack[0 * K_WIDTH + K_CELLS],
                ) = end, 0, row, 0
                for d in range(
                    nodes[0 * N_WIDTH + N_DESCENDANTS], nodes[0 * N_WIDTH + N_DESCENDANTS_END]
                ):
                    saved[0, descendants[d]] = rows[descendants[d]]
                passed += 1
                continue
            if root > stop_root or (root == stop_root and i >= stop_position):
                break
            if passed >= pause_at:
                break

            # One field.
            at = i
            bad, group = False, False
            action, sp, wire = SKIP, 0, 0
            bits, length = 0, 0
            tag = buf[i]
            if tag < 0x80:
                i += 1
            else:
                tag, shift, bad = 0, 0, True
                stop = min(end, i + 5)
                while i < stop:
                    byte = buf[i]
                    i += 1
                    tag |= (byte & 0x7F) << shift
                    shift += 7
                    if byte < 0x80:
                        bad = tag >> 32 != 0
                        break
            if not bad:
                field = tag >> 3
                wire = tag & 7
                bad = field == 0
                if field < fields:
                    sp = node * fields + field
                    action = spec[sp * F_WIDTH + F_ACTION]
            if not bad:
                if wire == 0 or wire == 2:
                    shift, bad = 0, True
                    stop = min(end, i + 10)
                    while i < stop:
                        byte = buf[i]
                        i += 1
                        bits = low64(bits | (byte & 0x7F) << shift)
                        shift += 7
                        if byte < 0x80:
                            bad = False
                            break
                    if wire == 2 and not bad:
                        left = end - i
                        if bits > unsigned64(left):
                            # Too long for what encloses it. A container is read as far as it goes.
                            bad = True
                            if phase == 0 and depth == 0 and end == buf.shape[0]:
                                damage[D_MISSING] = signed64(
                                    min(bits - unsigned64(left), unsigned64(farthest))
                                )
                            if (
                                action == FRAME
                                or (action == SPANS and spec[sp * F_WIDTH + F_KIND] == MESSAGE)
                            ) and (nodes[spec[sp * F_WIDTH + F_CHILD] * N_WIDTH + N_PHASE] == 0):
                                bad = False
                                # What ends where a cut container ends was cut by the same blow.
                                if phase == 0 and end != damage[D_CUT]:
                                    damage[D_CUT] = end
                                    damage[D_COUNT] += 1
                                    if damage[D_FIRST] < 0 or at < damage[D_FIRST]:
                                        damage[D_FIRST] = at
                                bits = unsigned64(left)
                        length = signed64(bits)
                elif wire == 1 or wire == 5:
                    size = 8 if wire == 1 else 4
                    bad = end - i < size
                    if not bad:
                        for q in range(size):
                            byte = buf[i + q]
                            bits |= byte << 8 * q
                        i += size
                else:
                    bad = True
                    group = wire == 3 or wire == 4
            packed = False
            if not bad and action != SKIP and wire != spec[sp * F_WIDTH + F_WIRE]:
                # A repeated number may come packed; any other mismatch is an unknown field.
                if action == VALUES and wire == 2:
                    packed = True
                else:
                    action = SKIP
            descend = action == FRAME or action == INLINE
            if not bad and descend and depth + 1 >= MAX_DEPTH:
                bad = True

            if bad:
                fail_at, fail_group = at, group
                continue

            if action == SKIP:
                i += length
                passed += i - at
                continue

            # A oneof member: the last one set wins, the one before it is gone.
            case_cell = spec[sp * F_WIDTH + F_CASE_CELL]
            if case_cell >= 0:
                field = tag >> 3
                before = cells[at_cells + case_cell]
                if before != field:
                    if before != 0:
                        old = node * fields + before
                        old_action = spec[old * F_WIDTH + F_ACTION]
                        if spec[old * F_WIDTH + F_HAS_CELL] >= 0:
                            cells[at_cells + spec[old * F_WIDTH + F_HAS_CELL]] = 0
                        if old_action == SCALAR:
                            cells[at_cells + spec[old * F_WIDTH + F_CELL]] = 0
                        elif old_action == SPAN:
                            cells[at_cells + spec[old * F_WIDTH + F_CELL]] = 0
                            cells[at_cells + spec[old * F_WIDTH + F_CELL] + 1] = 0
                        elif old_action == INLINE:
                            # Its rows stay allocated; a parent of -1 marks them for removal.
                            gone = spec[old * F_WIDTH + F_CHILD]
                            for n in range(gone, spec[old * F_WIDTH + F_CELL] + 1):
                                dead = cells[at_cells + nodes[n * N_WIDTH + N_ROW_CELL]] - 1
                                if dead >= 0 and nodes[n * N_WIDTH + N_PHASE] == phase:
                                    c = nodes[n * N_WIDTH + N_COLUMN]
                                    if dead < capacity[n]:
                                        if width[c] == 8:
                                            out64[base[c] + dead] = -1
                                        else:
                                            out32[base[c] + dead] = -1
                                cells[at_cells + nodes[n * N_WIDTH + N_ROW_CELL]] = 0
                                for c in range(nodes[n * N_WIDTH + N_COLUMNS]):
                                    cells[at_cells + nodes[n * N_WIDTH + N_CELL] + c] = 0
                    cells[at_cells + case_cell] = field
            if spec[sp * F_WIDTH + F_HAS_CELL] >= 0:
                cells[at_cells + spec[sp * F_WIDTH + F_HAS_CELL]] = 1

            if action == SCALAR:
                cells[at_cells + spec[sp * F_WIDTH + F_CELL]] = _number(
                    bits, spec[sp * F_WIDTH + F_KIND]
                )
            elif action == UNION:
                cell = at_cells + spec[sp * F_WIDTH + F_CELL]
                if wire == 2:
                    cells[cell] = i
                    cells[cell + 1] = length
                else:
                    cells[cell] = _number(bits, spec[sp * F_WIDTH + F_KIND])
                    cells[cell + 1] = 0
            elif action == SPAN:
                cell = at_cells + spec[sp * F_WIDTH + F_CELL]
                cells[cell] = i
                cells[cell + 1] = length
            elif action == FRAME:
                child = spec[sp * F_WIDTH + F_CHILD]
                if nodes[child * N_WIDTH + N_PHASE] == 1 and phase == 0:
                    i += length
                    # The atoms of a container mostly come one after the other.
                    if tag < 0x80:
                        stop = min(end, at + pause_at - passed)
                        while i < stop and buf[i] == tag:
                            j, bits, shift, bad = i + 1, 0, 0, True
                            while j < end and shift < 35:
                                byte = buf[j]
                                j += 1
                                bits = low64(bits | (byte & 0x7F) << shift)
                                shift += 7
                                if byte < 0x80:
                                    bad = bits > unsigned64(end - j)
                                    break
                            if bad:
                                # Left to the general case.
                                break
                            i = j + signed64(bits)
                    passed += i - at
                    state[S_ATOM_BYTES] += i - at
                    continue
                if nodes[child * N_WIDTH + N_LEAF] == 1:
                    # Most rows are of this kind: read it here, without opening a frame.
                    leaf = at_cells + nodes[nodes[node * N_WIDTH + N_FRAME] * N_WIDTH + N_CELLS]
                    for c in range(leaf, leaf + nodes[child * N_WIDTH + N_CELLS]):
                        cells[c] = 0
                    cells[leaf] = row
                    if nodes[child * N_WIDTH + N_PARENT_NODE_CELL] >= 0:
                        cells[leaf + nodes[child * N_WIDTH + N_PARENT_NODE_CELL]] = node
                    if nodes[child * N_WIDTH + N_SPAN_CELL] >= 0:
                        cells[leaf + nodes[child * N_WIDTH + N_SPAN_CELL]] = i
                        cells[leaf + nodes[child * N_WIDTH + N_SPAN_CELL] + 1] = length
                    first_field = child * fields
                    stop = i + length
                    while i < stop:
                        at = i
                        tag = buf[i]
                        i += 1
                        if tag >= 0x80:
                            tag &= 0x7F
                            shift, bad = 7, True
                            while i < min(stop, at + 5):
                                byte = buf[i]
                                i += 1
                                tag |= (byte & 0x7F) << shift
                                shift += 7
                                if byte < 0x80:
                                    bad = tag >> 32 != 0
                                    break
                            if bad:
                                break
                        field, wire = tag >> 3, tag & 7
                        if field == 0:
                            bad = True
                            break
                        sp = first_field + field if field < fields else 0
                        action = spec[sp * F_WIDTH + F_ACTION]
                        if action != SKIP and wire != spec[sp * F_WIDTH + F_WIRE]:
                            action = SKIP
                        length = 0
                        if wire == 0 or wire == 2:
                            if i >= stop:
                                bad = True
                                break
                            bits = buf[i]
                            i += 1
                            if bits >= 0x80:
                                bits &= 0x7F
                                shift, bad = 7, True
                                last_byte = min(stop, i + 9)
                                while i < last_byte:
                                    byte = buf[i]
                                    i += 1
                                    bits = low64(bits | (byte & 0x7F) << shift)
                                    shift += 7
                                    if byte < 0x80:
                                        bad = False
                                        break
                                if bad:
                                    break
                            if wire == 2:
                                if bits > unsigned64(stop - i):
                                    bad = True
                                    break
                                length = signed64(bits)
                        elif wire == 1 or wire == 5:
                            size = 8 if wire == 1 else 4
                            if stop - i < size:
                                bad = True
                                break
                            bits = 0
                            for q in range(size):
                                byte = buf[i + q]
                                bits |= byte << 8 * q
                            i += size
                        else:
                            bad, group = True, wire == 3 or wire == 4
                            break
                        if action == SKIP:
                            i += length
                            continue
                        cell = leaf + spec[sp * F_WIDTH + F_CELL]
                        if action == UNION:
                            cells[leaf + spec[sp * F_WIDTH + F_CASE_CELL]] = field
                            cells[cell + 1] = length
                        if wire == 2:
                            cells[cell] = i
                            if action == SPAN:
                                cells[cell + 1] = length
                            i += length
                        elif spec[sp * F_WIDTH + F_KIND] == AS_IS:
                            cells[cell] = signed64(bits)
                        else:
                            cells[cell] = _number(bits, spec[sp * F_WIDTH + F_KIND])
                    if bad:
                        damage[D_COUNT] += 1
                        damage[D_BYTES] += stop - at
                        if group:
                            damage[D_GROUPS] += 1
                        if damage[D_FIRST] < 0 or at < damage[D_FIRST]:
                            damage[D_FIRST] = at
                        i = stop
                        passed += 1
                        continue
                    ready, ready_row, ready_cells = child, rows[child], leaf
                    rows[child] += 1
                    continue
                passed += i - at
                at_cells += nodes[nodes[node * N_WIDTH + N_FRAME] * N_WIDTH + N_CELLS]
                for c in range(nodes[child * N_WIDTH + N_CELLS]):
                    cells[at_cells + c] = 0
                cells[at_cells + nodes[child * N_WIDTH + N_CELL]] = row
                if nodes[child * N_WIDTH + N_PARENT_NODE_CELL] >= 0:
                    cells[at_cells + nodes[child * N_WIDTH + N_PARENT_NODE_CELL]] = node
                if nodes[child * N_WIDTH + N_SPAN_CELL] >= 0:
                    cells[at_cells + nodes[child * N_WIDTH + N_SPAN_CELL]] = i
                    cells[at_cells + nodes[child * N_WIDTH + N_SPAN_CELL] + 1] = length
                node, row, end = child, rows[child], i + length
                rows[child] += 1
                depth += 1
                stack[depth * K_WIDTH + K_END], stack[depth * K_WIDTH + K_NODE] = end, node
                stack[depth * K_WIDTH + K_ROW], stack[depth * K_WIDTH + K_CELLS] = row, at_cells
                for d in range(
                    nodes[node * N_WIDTH + N_DESCENDANTS], nodes[node * N_WIDTH + N_DESCENDANTS_END]
                ):
                    saved[depth, descendants[d]] = rows[descendants[d]]
                continue
            elif action == INLINE:
                passed += i - at
                child = spec[sp * F_WIDTH + F_CHILD]
                row_cell = at_cells + nodes[child * N_WIDTH + N_ROW_CELL]
                if cells[row_cell] == 0:
                    rows[child] += 1
                    cells[row_cell] = rows[child]
                    cells[at_cells + nodes[child * N_WIDTH + N_CELL]] = row
                    if nodes[child * N_WIDTH + N_PARENT_NODE_CELL] >= 0:
                        cells[at_cells + nodes[child * N_WIDTH + N_PARENT_NODE_CELL]] = node
                if nodes[child * N_WIDTH + N_SPAN_CELL] >= 0:
                    cells[at_cells + nodes[child * N_WIDTH + N_SPAN_CELL]] = i
                    cells[at_cells + nodes[child * N_WIDTH + N_SPAN_CELL] + 1] = length
                node, row, end = child, cells[row_cell] - 1, i + length
                depth += 1
                stack[depth * K_WIDTH + K_END], stack[depth * K_WIDTH + K_NODE] = end, node
                stack[depth * K_WIDTH + K_ROW], stack[depth * K_WIDTH + K_CELLS] = row, at_cells
                continue
            elif action == VALUES or action == SPANS:
                # One row per element: parent, then the number, or start and length.
                child = spec[sp * F_WIDTH + F_CHILD]
                if packed:
                    packed_stop, packed_node = i + length, child
                    packed_wire, packed_kind = (
                        spec[sp * F_WIDTH + F_WIRE],
                        spec[sp * F_WIDTH + F_KIND],
                    )
                    passed += packed_stop - at
                    continue
                cells[scratch], cells[scratch + 1], cells[scratch + 2] = row, i, length
                if action == VALUES:
                    cells[scratch + 1] = _number(bits, spec[sp * F_WIDTH + F_KIND])
                if nodes[child * N_WIDTH + N_PHASE] == phase:
                    ready, ready_row, ready_cells = child, rows[child], scratch
                rows[child] += 1
            i += length
            passed += i - at

        state[S_ROOT], state[S_POSITION], state[S_DEPTH] = root, i, depth
    return finished
