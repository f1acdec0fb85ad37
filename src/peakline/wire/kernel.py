"""The one kernel: walks protobuf wire bytes and emits rows, guided by a plan's tables.

A *frame* is a message that is a row each time it occurs (the root, an element of a repeated
field, a map entry). Singular sub-messages live inside their frame (*inline*), so that two
occurrences merge as the encoding demands. Values of the open frames are kept in *cells*, one
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

import numba as nb
import numpy as np

from peakline.wire.layout import (
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

U = np.uint64  # also for indices: an unsigned one needs no check for counting from the end


@nb.njit(forceinline=True)
def _number(bits, kind):  # type: ignore[no-untyped-def]
    """The int64 that holds the value (or, for doubles and uint64, its bits)."""
    if kind == INT32:
        return np.int64(np.int32(np.uint32(bits & U(0xFFFFFFFF))))
    if kind == UINT32:
        return np.int64(bits & U(0xFFFFFFFF))
    if kind == BOOL:
        return np.int64(1 if bits != U(0) else 0)
    if kind == ZIGZAG32:
        low = bits & U(0xFFFFFFFF)
        return np.int64(np.int32(np.uint32((low >> U(1)) ^ (U(0) - (low & U(1))) & U(0xFFFFFFFF))))
    if kind == ZIGZAG64:
        return np.int64((bits >> U(1)) ^ (U(0) - (bits & U(1))))
    return np.int64(bits)


@nb.njit(cache=True, nogil=True)
def walk(  # type: ignore[no-untyped-def]
    buf, starts, ends,
    fields, spec, nodes, descendants, filters,
    state, stack, cells, rows, saved,
    phase, stop_root, stop_position, pause_after,
    out8, out32, out64, width, base, capacity, low, high, fill,
    damage,
):  # fmt: skip
    """Walk messages from ``state`` to the stop position, or until ``pause_after`` bytes passed.

    ``spec``/``nodes``/``descendants``/``filters`` come from a plan for this ``phase``. ``rows``
    holds the row counter of every table, in and out. With ``fill`` rows are stored, else only
    counted and the range of every column is widened. Returns True when every root is done.
    """
    lut, lut_at, ids, ids_at = filters
    root, i, depth = state[S_ROOT], state[S_POSITION], state[S_DEPTH]
    pause_at = np.int64(1 << 62)
    if pause_after > 0:
        pause_at = min(pause_after, np.int64(1 << 62))
    passed = np.int64(0)
    node, row, at_cells, end = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    if depth >= 0:
        end = stack[U(depth * K_WIDTH + K_END)]
        node = stack[U(depth * K_WIDTH + K_NODE)]
        row = stack[U(depth * K_WIDTH + K_ROW)]
        at_cells = stack[U(depth * K_WIDTH + K_CELLS)]
    finished = False
    # A row whose values are complete in the cells, waiting to be stored; -1: none.
    ready, ready_row, ready_cells, ready_depth = np.int64(-1), np.int64(0), np.int64(0), np.int64(0)
    # The rest of a packed field: where it ends, its table, wire type and kind.
    packed_stop, packed_node, packed_wire, packed_kind = (
        np.int64(-1), np.int64(0), np.int64(0), np.int64(0),
    )  # fmt: skip
    # Where the bytes turned out to be broken; -1: nowhere.
    fail_at, fail_group = np.int64(-1), False
    scratch = cells.size - 3
    while True:
        if ready >= 0:
            keep = True
            filter_ = nodes[U(ready * N_WIDTH + N_FILTER)]
            if filter_ >= 0:
                cell = ready_cells + nodes[U(ready * N_WIDTH + N_FILTER_CELL)]
                value = cells[U(cell)]
                position = np.int64(-1)
                if 0 <= value < lut_at[U(filter_ + 1)] - lut_at[U(filter_)]:
                    position = np.int64(lut[U(lut_at[U(filter_)] + value)])
                else:
                    low_id, high_id = ids_at[U(filter_)], ids_at[U(filter_ + 1)]
                    while low_id < high_id:
                        middle = (low_id + high_id) >> 1
                        if ids[U(middle)] < value:
                            low_id = middle + 1
                        else:
                            high_id = middle
                    if low_id < ids_at[U(filter_ + 1)] and ids[U(low_id)] == value:
                        position = low_id - ids_at[U(filter_)]
                cells[U(cell)] = position
                if position < 0:
                    keep = False
                    rows[U(ready)] = ready_row
                    for d in range(
                        nodes[U(ready * N_WIDTH + N_DESCENDANTS)],
                        nodes[U(ready * N_WIDTH + N_DESCENDANTS_END)],
                    ):
                        rows[U(descendants[U(d)])] = saved[ready_depth, descendants[U(d)]]
            if keep:
                for n in range(ready, nodes[U(ready * N_WIDTH + N_LAST)] + 1):
                    at_row = ready_row
                    if n != ready:
                        at_row = cells[U(ready_cells + nodes[U(n * N_WIDTH + N_ROW_CELL)])] - 1
                        if at_row < 0:
                            continue
                    if fill and at_row >= capacity[U(n)]:
                        continue
                    first, cell = (
                        nodes[U(n * N_WIDTH + N_COLUMN)],
                        ready_cells + nodes[U(n * N_WIDTH + N_CELL)],
                    )
                    for c in range(first, first + nodes[U(n * N_WIDTH + N_COLUMNS)]):
                        value = cells[U(cell)]
                        cell += 1
                        if not fill:
                            low[U(c)] = min(low[U(c)], value)
                            high[U(c)] = max(high[U(c)], value)
                        elif width[U(c)] == 8:
                            out64[U(base[U(c)] + at_row)] = value
                        elif width[U(c)] == 4:
                            out32[U(base[U(c)] + at_row)] = np.int32(value)
                        else:
                            out8[U(base[U(c)] + at_row)] = np.uint8(value)
            ready = np.int64(-1)

        if fail_at >= 0:
            # Contain the damage in the smallest message that can be dropped or cut.
            frame = nodes[U(node * N_WIDTH + N_FRAME)]
            lost_to = end
            if nodes[U(frame * N_WIDTH + N_PHASE)] == 1:
                while node != frame:
                    depth -= 1
                    node = stack[U(depth * K_WIDTH + K_NODE)]
                lost_to = stack[U(depth * K_WIDTH + K_END)]
            if nodes[U(frame * N_WIDTH + N_PHASE)] == phase:
                damage[D_COUNT] += 1
                damage[D_BYTES] += lost_to - fail_at
                if fail_group:
                    damage[D_GROUPS] += 1
                if damage[D_FIRST] < 0 or fail_at < damage[D_FIRST]:
                    damage[D_FIRST] = fail_at
            passed += lost_to - fail_at
            i, fail_at, fail_group = lost_to, np.int64(-1), False
            if nodes[U(frame * N_WIDTH + N_PHASE)] == 1:
                rows[U(frame)] = stack[U(depth * K_WIDTH + K_ROW)]
                for d in range(
                    nodes[U(frame * N_WIDTH + N_DESCENDANTS)],
                    nodes[U(frame * N_WIDTH + N_DESCENDANTS_END)],
                ):
                    rows[U(descendants[U(d)])] = saved[depth, descendants[U(d)]]
                depth -= 1
                if depth < 0:
                    root += 1
                    if root < starts.size:
                        i = starts[U(root)]
            if depth >= 0:
                end = stack[U(depth * K_WIDTH + K_END)]
                node = stack[U(depth * K_WIDTH + K_NODE)]
                row = stack[U(depth * K_WIDTH + K_ROW)]
                at_cells = stack[U(depth * K_WIDTH + K_CELLS)]
            continue

        if packed_stop >= 0:
            # One more element of a packed field.
            if i >= packed_stop:
                packed_stop = np.int64(-1)
                continue
            bits, torn, j = U(0), True, i
            if packed_wire == 0:
                shift = U(0)
                while j < min(packed_stop, i + 10):
                    byte = buf[U(j)]
                    j += 1
                    bits |= U(byte & 0x7F) << shift
                    shift += U(7)
                    if byte < 0x80:
                        torn = False
                        break
            else:
                j = i + (8 if packed_wire == 1 else 4)
                torn = j > packed_stop
                if not torn:
                    for q in range(j - i):
                        bits |= U(buf[U(i + q)]) << U(8 * q)
            if torn:
                if nodes[U(packed_node * N_WIDTH + N_PHASE)] == 1:
                    fail_at = i
                elif phase == 0:
                    # A container keeps the values before the tear.
                    damage[D_COUNT] += 1
                    damage[D_BYTES] += packed_stop - i
                    if damage[D_FIRST] < 0 or i < damage[D_FIRST]:
                        damage[D_FIRST] = i
                i, packed_stop = packed_stop, np.int64(-1)
                continue
            i = j
            cells[U(scratch)], cells[U(scratch + 1)] = row, _number(bits, packed_kind)
            if nodes[U(packed_node * N_WIDTH + N_PHASE)] == phase:
                ready, ready_row, ready_cells = packed_node, rows[U(packed_node)], scratch
            rows[U(packed_node)] += 1
            continue

        if depth >= 0 and i >= end:
            # The message ends here; a frame's rows are complete.
            if (
                nodes[U(node * N_WIDTH + N_FRAME)] == node
                and nodes[U(node * N_WIDTH + N_PHASE)] == phase
            ):
                ready, ready_row, ready_cells, ready_depth = node, row, at_cells, depth
            depth -= 1
            if depth >= 0:
                end = stack[U(depth * K_WIDTH + K_END)]
                node = stack[U(depth * K_WIDTH + K_NODE)]
                row = stack[U(depth * K_WIDTH + K_ROW)]
                at_cells = stack[U(depth * K_WIDTH + K_CELLS)]
            else:
                root += 1
                if root < starts.size:
                    i = starts[U(root)]
            continue
        if depth < 0:
            if root >= starts.size:
                finished = True
                break
            if root > stop_root or (root == stop_root and i >= stop_position):
                break
            # Open the next root.
            i, end, node, at_cells = starts[U(root)], ends[U(root)], np.int64(0), np.int64(0)
            row = rows[0]
            rows[0] += 1
            depth = np.int64(0)
            for c in range(nodes[U(0 * N_WIDTH + N_CELLS)]):
                cells[U(c)] = 0
            cells[U(nodes[U(0 * N_WIDTH + N_CELL)])] = root
            if nodes[U(0 * N_WIDTH + N_SPAN_CELL)] >= 0:
                cells[U(nodes[U(0 * N_WIDTH + N_SPAN_CELL)])] = i
                cells[U(nodes[U(0 * N_WIDTH + N_SPAN_CELL)] + 1)] = end - i
            (
                stack[U(0 * K_WIDTH + K_END)],
                stack[U(0 * K_WIDTH + K_NODE)],
                stack[U(0 * K_WIDTH + K_ROW)],
                stack[U(0 * K_WIDTH + K_CELLS)],
            ) = end, 0, row, 0
            for d in range(
                nodes[U(0 * N_WIDTH + N_DESCENDANTS)], nodes[U(0 * N_WIDTH + N_DESCENDANTS_END)]
            ):
                saved[0, descendants[U(d)]] = rows[U(descendants[U(d)])]
            passed += 1
            continue
        if root > stop_root or (root == stop_root and i >= stop_position):
            break
        if passed >= pause_at:
            break

        # One field.
        at = i
        bad, group = False, False
        action, sp, wire = np.int64(SKIP), np.int64(0), np.int64(0)
        bits, length = U(0), np.int64(0)
        tag = U(buf[U(i)])
        if tag < U(0x80):
            i += 1
        else:
            tag, shift, bad = U(0), U(0), True
            stop = min(end, i + 5)
            while i < stop:
                byte = buf[U(i)]
                i += 1
                tag |= U(byte & 0x7F) << shift
                shift += U(7)
                if byte < 0x80:
                    bad = tag > U(0xFFFFFFFF)
                    break
        if not bad:
            field = np.int64(tag >> U(3))
            wire = np.int64(tag & U(7))
            bad = field == 0
            if field < fields:
                sp = node * fields + field
                action = np.int64(spec[U(sp * F_WIDTH + F_ACTION)])
        if not bad:
            if wire == 0 or wire == 2:
                shift, bad = U(0), True
                stop = min(end, i + 10)
                while i < stop:
                    byte = buf[U(i)]
                    i += 1
                    bits |= U(byte & 0x7F) << shift
                    shift += U(7)
                    if byte < 0x80:
                        bad = False
                        break
                if wire == 2 and not bad:
                    left = end - i
                    if bits > U(left):
                        # Too long for what encloses it. A container is read as far as it goes.
                        bad = True
                        if phase == 0 and depth == 0 and end == buf.size:
                            damage[D_MISSING] = np.int64(min(bits - U(left), U(1 << 62)))
                        if (
                            action == FRAME
                            or (action == SPANS and spec[U(sp * F_WIDTH + F_KIND)] == MESSAGE)
                        ) and (nodes[U(spec[U(sp * F_WIDTH + F_CHILD)] * N_WIDTH + N_PHASE)] == 0):
                            bad = False
                            # What ends where a cut container ends was cut by the same blow.
                            if phase == 0 and end != damage[D_CUT]:
                                damage[D_CUT] = end
                                damage[D_COUNT] += 1
                                if damage[D_FIRST] < 0 or at < damage[D_FIRST]:
                                    damage[D_FIRST] = at
                            bits = U(left)
                    length = np.int64(bits)
            elif wire == 1 or wire == 5:
                size = 8 if wire == 1 else 4
                bad = end - i < size
                if not bad:
                    for q in range(size):
                        bits |= U(buf[U(i + q)]) << U(8 * q)
                    i += size
            else:
                bad = True
                group = wire == 3 or wire == 4
        packed = False
        if not bad and action != SKIP and wire != spec[U(sp * F_WIDTH + F_WIRE)]:
            # A repeated number may come packed; any other mismatch is an unknown field.
            if action == VALUES and wire == 2:
                packed = True
            else:
                action = np.int64(SKIP)
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
        case_cell = spec[U(sp * F_WIDTH + F_CASE_CELL)]
        if case_cell >= 0:
            field = np.int64(tag >> U(3))
            before = cells[U(at_cells + case_cell)]
            if before != field:
                if before != 0:
                    old = node * fields + before
                    old_action = spec[U(old * F_WIDTH + F_ACTION)]
                    if spec[U(old * F_WIDTH + F_HAS_CELL)] >= 0:
                        cells[U(at_cells + spec[U(old * F_WIDTH + F_HAS_CELL)])] = 0
                    if old_action == SCALAR:
                        cells[U(at_cells + spec[U(old * F_WIDTH + F_CELL)])] = 0
                    elif old_action == SPAN:
                        cells[U(at_cells + spec[U(old * F_WIDTH + F_CELL)])] = 0
                        cells[U(at_cells + spec[U(old * F_WIDTH + F_CELL)] + 1)] = 0
                    elif old_action == INLINE:
                        # Its rows stay allocated; a parent of -1 marks them for removal.
                        gone = spec[U(old * F_WIDTH + F_CHILD)]
                        for n in range(gone, spec[U(old * F_WIDTH + F_CELL)] + 1):
                            dead = cells[U(at_cells + nodes[U(n * N_WIDTH + N_ROW_CELL)])] - 1
                            if dead >= 0 and nodes[U(n * N_WIDTH + N_PHASE)] == phase:
                                c = np.int64(nodes[U(n * N_WIDTH + N_COLUMN)])
                                if not fill:
                                    low[U(c)] = -1
                                elif dead < capacity[U(n)]:
                                    if width[U(c)] == 8:
                                        out64[U(base[U(c)] + dead)] = -1
                                    else:
                                        out32[U(base[U(c)] + dead)] = -1
                            cells[U(at_cells + nodes[U(n * N_WIDTH + N_ROW_CELL)])] = 0
                            for c in range(nodes[U(n * N_WIDTH + N_COLUMNS)]):
                                cells[U(at_cells + nodes[U(n * N_WIDTH + N_CELL)] + c)] = 0
                cells[U(at_cells + case_cell)] = field
        if spec[U(sp * F_WIDTH + F_HAS_CELL)] >= 0:
            cells[U(at_cells + spec[U(sp * F_WIDTH + F_HAS_CELL)])] = 1

        if action == SCALAR:
            cells[U(at_cells + spec[U(sp * F_WIDTH + F_CELL)])] = _number(
                bits, spec[U(sp * F_WIDTH + F_KIND)]
            )
        elif action == UNION:
            cell = at_cells + spec[U(sp * F_WIDTH + F_CELL)]
            if wire == 2:
                cells[U(cell)] = i
                cells[U(cell + 1)] = length
            else:
                cells[U(cell)] = _number(bits, spec[U(sp * F_WIDTH + F_KIND)])
                cells[U(cell + 1)] = 0
        elif action == SPAN:
            cell = at_cells + spec[U(sp * F_WIDTH + F_CELL)]
            cells[U(cell)] = i
            cells[U(cell + 1)] = length
        elif action == FRAME:
            child = np.int64(spec[U(sp * F_WIDTH + F_CHILD)])
            if nodes[U(child * N_WIDTH + N_PHASE)] == 1 and phase == 0:
                i += length
                # The atoms of a container mostly come one after the other.
                if tag < U(0x80):
                    stop = min(end, at + pause_at - passed)
                    while i < stop and U(buf[U(i)]) == tag:
                        j, bits, shift, bad = i + 1, U(0), U(0), True
                        while j < end and shift < U(35):
                            byte = buf[U(j)]
                            j += 1
                            bits |= U(byte & 0x7F) << shift
                            shift += U(7)
                            if byte < 0x80:
                                bad = bits > U(end - j)
                                break
                        if bad:
                            # Left to the general case.
                            break
                        i = j + np.int64(bits)
                passed += i - at
                state[S_ATOM_BYTES] += i - at
                continue
            if nodes[U(child * N_WIDTH + N_LEAF)] == 1:
                # Most rows are of this kind: read it here, without opening a frame.
                leaf = at_cells + nodes[U(nodes[U(node * N_WIDTH + N_FRAME)] * N_WIDTH + N_CELLS)]
                for c in range(leaf, leaf + nodes[U(child * N_WIDTH + N_CELLS)]):
                    cells[U(c)] = 0
                cells[U(leaf)] = row
                if nodes[U(child * N_WIDTH + N_PARENT_NODE_CELL)] >= 0:
                    cells[U(leaf + nodes[U(child * N_WIDTH + N_PARENT_NODE_CELL)])] = node
                if nodes[U(child * N_WIDTH + N_SPAN_CELL)] >= 0:
                    cells[U(leaf + nodes[U(child * N_WIDTH + N_SPAN_CELL)])] = i
                    cells[U(leaf + nodes[U(child * N_WIDTH + N_SPAN_CELL)] + 1)] = length
                first_field = child * fields
                stop = i + length
                while i < stop:
                    at = i
                    tag = U(buf[U(i)])
                    i += 1
                    if tag >= U(0x80):
                        tag &= U(0x7F)
                        shift, bad = U(7), True
                        while i < min(stop, at + 5):
                            byte = buf[U(i)]
                            i += 1
                            tag |= U(byte & 0x7F) << shift
                            shift += U(7)
                            if byte < 0x80:
                                bad = tag > U(0xFFFFFFFF)
                                break
                        if bad:
                            break
                    field, wire = np.int64(tag >> U(3)), np.int64(tag & U(7))
                    if field == 0:
                        bad = True
                        break
                    sp = first_field + field if field < fields else np.int64(0)
                    action = np.int64(spec[U(sp * F_WIDTH + F_ACTION)])
                    if action != SKIP and wire != spec[U(sp * F_WIDTH + F_WIRE)]:
                        action = np.int64(SKIP)
                    length = np.int64(0)
                    if wire == 0 or wire == 2:
                        if i >= stop:
                            bad = True
                            break
                        bits = U(buf[U(i)])
                        i += 1
                        if bits >= U(0x80):
                            bits &= U(0x7F)
                            shift, bad = U(7), True
                            last_byte = min(stop, i + 9)
                            while i < last_byte:
                                byte = buf[U(i)]
                                i += 1
                                bits |= U(byte & 0x7F) << shift
                                shift += U(7)
                                if byte < 0x80:
                                    bad = False
                                    break
                            if bad:
                                break
                        if wire == 2:
                            if bits > U(stop - i):
                                bad = True
                                break
                            length = np.int64(bits)
                    elif wire == 1 or wire == 5:
                        size = 8 if wire == 1 else 4
                        if stop - i < size:
                            bad = True
                            break
                        bits = U(0)
                        for q in range(size):
                            bits |= U(buf[U(i + q)]) << U(8 * q)
                        i += size
                    else:
                        bad, group = True, wire == 3 or wire == 4
                        break
                    if action == SKIP:
                        i += length
                        continue
                    cell = leaf + spec[U(sp * F_WIDTH + F_CELL)]
                    if action == UNION:
                        cells[U(leaf + spec[U(sp * F_WIDTH + F_CASE_CELL)])] = field
                        cells[U(cell + 1)] = length
                    if wire == 2:
                        cells[U(cell)] = i
                        if action == SPAN:
                            cells[U(cell + 1)] = length
                        i += length
                    elif spec[U(sp * F_WIDTH + F_KIND)] == AS_IS:
                        cells[U(cell)] = np.int64(bits)
                    else:
                        cells[U(cell)] = _number(bits, spec[U(sp * F_WIDTH + F_KIND)])
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
                ready, ready_row, ready_cells = child, rows[U(child)], leaf
                rows[U(child)] += 1
                continue
            passed += i - at
            at_cells += nodes[U(nodes[U(node * N_WIDTH + N_FRAME)] * N_WIDTH + N_CELLS)]
            for c in range(nodes[U(child * N_WIDTH + N_CELLS)]):
                cells[U(at_cells + c)] = 0
            cells[U(at_cells + nodes[U(child * N_WIDTH + N_CELL)])] = row
            if nodes[U(child * N_WIDTH + N_PARENT_NODE_CELL)] >= 0:
                cells[U(at_cells + nodes[U(child * N_WIDTH + N_PARENT_NODE_CELL)])] = node
            if nodes[U(child * N_WIDTH + N_SPAN_CELL)] >= 0:
                cells[U(at_cells + nodes[U(child * N_WIDTH + N_SPAN_CELL)])] = i
                cells[U(at_cells + nodes[U(child * N_WIDTH + N_SPAN_CELL)] + 1)] = length
            node, row, end = child, rows[U(child)], i + length
            rows[U(child)] += 1
            depth += 1
            stack[U(depth * K_WIDTH + K_END)], stack[U(depth * K_WIDTH + K_NODE)] = end, node
            stack[U(depth * K_WIDTH + K_ROW)], stack[U(depth * K_WIDTH + K_CELLS)] = row, at_cells
            for d in range(
                nodes[U(node * N_WIDTH + N_DESCENDANTS)],
                nodes[U(node * N_WIDTH + N_DESCENDANTS_END)],
            ):
                saved[depth, descendants[U(d)]] = rows[U(descendants[U(d)])]
            continue
        elif action == INLINE:
            passed += i - at
            child = np.int64(spec[U(sp * F_WIDTH + F_CHILD)])
            row_cell = at_cells + nodes[U(child * N_WIDTH + N_ROW_CELL)]
            if cells[U(row_cell)] == 0:
                rows[U(child)] += 1
                cells[U(row_cell)] = rows[U(child)]
                cells[U(at_cells + nodes[U(child * N_WIDTH + N_CELL)])] = row
                if nodes[U(child * N_WIDTH + N_PARENT_NODE_CELL)] >= 0:
                    cells[U(at_cells + nodes[U(child * N_WIDTH + N_PARENT_NODE_CELL)])] = node
            if nodes[U(child * N_WIDTH + N_SPAN_CELL)] >= 0:
                cells[U(at_cells + nodes[U(child * N_WIDTH + N_SPAN_CELL)])] = i
                cells[U(at_cells + nodes[U(child * N_WIDTH + N_SPAN_CELL)] + 1)] = length
            node, row, end = child, cells[U(row_cell)] - 1, i + length
            depth += 1
            stack[U(depth * K_WIDTH + K_END)], stack[U(depth * K_WIDTH + K_NODE)] = end, node
            stack[U(depth * K_WIDTH + K_ROW)], stack[U(depth * K_WIDTH + K_CELLS)] = row, at_cells
            continue
        elif action == VALUES or action == SPANS:
            # One row per element: parent, then the number, or start and length.
            child = np.int64(spec[U(sp * F_WIDTH + F_CHILD)])
            if packed:
                packed_stop, packed_node = i + length, child
                packed_wire, packed_kind = (
                    np.int64(spec[U(sp * F_WIDTH + F_WIRE)]),
                    np.int64(spec[U(sp * F_WIDTH + F_KIND)]),
                )
                passed += packed_stop - at
                continue
            cells[U(scratch)], cells[U(scratch + 1)], cells[U(scratch + 2)] = row, i, length
            if action == VALUES:
                cells[U(scratch + 1)] = _number(bits, spec[U(sp * F_WIDTH + F_KIND)])
            if nodes[U(child * N_WIDTH + N_PHASE)] == phase:
                ready, ready_row, ready_cells = child, rows[U(child)], scratch
            rows[U(child)] += 1
        i += length
        passed += i - at

    state[S_ROOT], state[S_POSITION], state[S_DEPTH] = root, i, depth
    return finished
