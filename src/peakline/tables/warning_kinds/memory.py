"""Warnings about memory: records that cannot be followed, and what an allocator's log lacks."""

from __future__ import annotations

from peakline.tables.warning_kinds.kind import NOTHING_TO_DO, RECORD_AGAIN, WarningKind

_OOM = "Save the whole log, with TF_CPP_MIN_LOG_LEVEL=0, of one process."

MEMORY = (
    WarningKind(
        "no_memory_events",
        "The profile has no records of an allocator.",
        "There is no memory to explain.",
        "Record on a device with an allocator that writes them: docs/capture.md lists what each "
        "framework needs.",
        is_counted=False,
    ),
    WarningKind(
        "unmatched_deallocation",
        "Deallocations match no allocation, and no memory from before the profile either.",
        "They free nothing: the memory in use may be shown too high after them.",
        "Begin to record before the buffers are allocated.",
    ),
    WarningKind(
        "double_allocation",
        "Allocations lie where a buffer is live: a deallocation between them is not recorded.",
        "The earlier buffer counts as freed.",
        "Record for a shorter time, so that no events are dropped.",
    ),
    WarningKind(
        "untracked_allocation",
        "Records have neither id nor address.",
        "Their buffers cannot be followed, so they are in no peak.",
        "Record with a newer version of the framework.",
    ),
    WarningKind(
        "untracked",
        "Records of a memory log have no id.",
        "Their buffers cannot be followed, so they are in no peak.",
        "Log with LOG_MEMORY of a build that numbers its allocations.",
    ),
    WarningKind(
        "implausible_size",
        "Records have a size below 0 or above 2^48 bytes.",
        "The size counts as unknown.",
        RECORD_AGAIN,
    ),
    WarningKind(
        "many_allocators",
        "The profile has more allocators than are explained one by one.",
        "The smallest are together, or not replayed.",
        "Choose one with --allocator NAME.",
    ),
    WarningKind(
        "memories_left_out",
        "The profile has more memories than the tool memory_profile answers about.",
        "The others are left out.",
        "Choose one with -p memory_id=NAME.",
    ),
    WarningKind(
        "bad_memory",
        "Memory events of a PyTorch trace have no size.",
        "They are left out.",
        RECORD_AGAIN,
    ),
    WarningKind(
        "capacities_disagree",
        "More was reserved of a device than a PyTorch trace says it has.",
        "The capacity of that device counts as not known.",
        "Record each process in a file of its own; memory that a device shares with the host can "
        "exceed it.",
    ),
    WarningKind(
        "id_restarted",
        "Ids of a memory log began anew: another process, or another allocator of that name, wrote "
        "into the same log.",
        "Its buffers are shown as an allocator of their own.",
        "Log each process into a file of its own.",
        is_counted=False,
    ),
    WarningKind(
        "id_restarted_too_often",
        "Ids of a memory log began anew too often to keep the processes apart.",
        "A buffer whose id comes again counts as freed.",
        "Log each process into a file of its own.",
    ),
    WarningKind(
        "estimated_allocations",
        "The executions of a RunMetadata say how much they allocated, and not when.",
        "Buffers count from the start of their execution.",
        "Nothing with this format; a profile (XSpace) has the times.",
        is_printed=False,
    ),
    WarningKind(
        "freed_between_runs",
        "Buffers in use at the end of a run are not seen in a later one.",
        "They count as freed at its end.",
        "Nothing with this format; a profile (XSpace) has the times.",
        is_printed=False,
    ),
    WarningKind(
        "unknown_sizes",
        "The runtime did not know the size of some memory, such as an executable's code.",
        "It is left out.",
        NOTHING_TO_DO,
    ),
    WarningKind(
        "no_memory_values",
        "The pprof file measures something else than memory.",
        "There is no memory to explain.",
        "Save a heap profile: jax.profiler.save_device_memory_profile.",
        is_counted=False,
    ),
    WarningKind(
        "unknown_states",
        "Blocks of a PyTorch snapshot are in a state of an unknown name.",
        "They count as free.",
        "Update Peakline: a newer PyTorch may have the state.",
    ),
    WarningKind(
        "unknown_actions",
        "Entries of a snapshot's history have an action of an unknown name.",
        "They are left out.",
        "Update Peakline: a newer PyTorch may have the action.",
    ),
    WarningKind(
        "segment_mismatch",
        "Blocks of a segment do not add up to its size.",
        "The segment's free memory may be wrong by the difference.",
        "Save the snapshot again.",
    ),
    WarningKind(
        "history_mismatch",
        "The last entry of a block in the history contradicts the block's state.",
        "The state in the snapshot counts.",
        "Record with a larger max_entries, so that the history is whole.",
    ),
    WarningKind(
        "oom_report_without_chunks",
        "A report of a failed allocation has no list of chunks.",
        "What was in use then is not known buffer by buffer.",
        _OOM,
        is_counted=False,
    ),
    WarningKind(
        "truncated_oom_report",
        "The begin or the end of a report of a failed allocation is missing.",
        "The figures of the missing part are not known.",
        _OOM,
        is_counted=False,
    ),
    WarningKind(
        "oom_report_mismatch",
        "The parts of a report of a failed allocation do not add up, as when lines are lost.",
        "The chunks count, not the sums.",
        _OOM,
        is_counted=False,
    ),
    WarningKind(
        "joined_oom_lines",
        "A screen or a page had broken the lines of a report of a failed allocation.",
        "They are put together again: that more can be read from them so is why.",
        _OOM,
        is_counted=False,
    ),
    WarningKind(
        "cut_oom_lines",
        "Lines of a report of a failed allocation are not whole.",
        "They are left out.",
        _OOM,
        is_counted=False,
    ),
    WarningKind(
        "failures_left_out",
        "More allocations failed than are explained.",
        "For the later ones no program is named.",
        "Fix the first ones first.",
    ),
    WarningKind(
        "negative_rows",
        "More is live by name than the allocator counts.",
        "The export leaves out the row for what no record explains.",
        NOTHING_TO_DO,
        is_printed=False,
    ),
)
