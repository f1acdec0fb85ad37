"""Warnings about files: cut, damaged, of another version, and what their writers said."""

from __future__ import annotations

from peakline.tables.warning_kinds.kind import NOTHING_TO_DO, RECORD_AGAIN, WarningKind

_COPY = "Copy the file again, or record it again and let the profiler end before it is read."
_UPDATE = "Update Peakline, whose schema may be older than the program that wrote the file."

FILES = (
    WarningKind(
        "truncated",
        "The file ends before its content does: the job was killed, the disk was full, or a copy "
        "was interrupted.",
        "Everything before the cut is answered from; what came after it is missing.",
        _COPY,
        is_counted=False,
    ),
    WarningKind(
        "damaged",
        "Bytes in the middle of the file do not follow its format.",
        "The damaged places are skipped; all else is answered from.",
        _COPY,
        is_counted=False,
    ),
    WarningKind(
        "bad_checksum",
        "Records of an event file have a checksum that does not fit their bytes.",
        "These records are left out.",
        _COPY,
    ),
    WarningKind(
        "trailing_bytes",
        "Bytes follow the end of a PyTorch snapshot.",
        "They are not read.",
        "Check that the file was not appended to; load it with pickle to compare.",
    ),
    WarningKind(
        "unknown_fields",
        "The file has fields that the published schema of its format does not have.",
        "They are left out; all other fields are read.",
        _UPDATE,
    ),
    WarningKind(
        "unknown_messages",
        "A memory log has records of a kind that log_memory.proto does not have.",
        "They are left out.",
        _UPDATE,
    ),
    WarningKind(
        "redacted",
        "The program that wrote the log printed some values as [REDACTED].",
        "These values count as absent.",
        "Log with a build that does not black out values, or read the profile instead of the log.",
    ),
    WarningKind(
        "profiler_error",
        "The profiler itself reported an error while it recorded.",
        "What it could not record is missing.",
        "Read the message: it names what to change on the host, such as permissions for counters.",
        is_counted=False,
    ),
    WarningKind(
        "profiler_warning",
        "The profiler itself reported a warning while it recorded, often that events were dropped.",
        "What it dropped is missing.",
        "Record for a shorter time, or with a lower tracer level.",
        is_counted=False,
    ),
    WarningKind(
        "planes_left_out",
        "The profile has more planes than are read.",
        "The work of the others is missing.",
        "Record fewer devices or hosts in one file.",
    ),
    WarningKind(
        "lines_left_out",
        "The profile has more lines (threads, streams) than are read.",
        "The work of the others is missing.",
        "Record for a shorter time, with fewer threads.",
    ),
    WarningKind(
        "names_lost",
        "The file is cut before the names of the events of a plane.",
        "These events have times and no names.",
        _COPY,
        is_counted=False,
    ),
    WarningKind(
        "repeated_ids",
        "Several steps or processes use the same ids, as in a file merged from several profiles.",
        "Work belongs to the nearest event with its id, and to no step where that is open.",
        "Read the profiles before they are merged, one by one.",
    ),
    WarningKind(
        "times_too_far",
        "Times in the file are further apart than any profile is long.",
        "They are taken as the nearest that a profile can have, or as not known.",
        RECORD_AGAIN,
    ),
    WarningKind(
        "times_out_of_order",
        "Records stand after later ones, as when several threads write one log.",
        "They are read in the order in which they were written.",
        NOTHING_TO_DO,
        is_printed=False,
    ),
    WarningKind(
        "no_times",
        "Records have no time.",
        "They have the time of the record before them, or are counted one after another.",
        "Log with times (TF_CPP_MIN_LOG_LEVEL=0, no filter that strips the begin of lines).",
        is_counted=False,
    ),
    WarningKind(
        "cut_lines",
        "Lines of a log with memory records are cut, or mixed with another line.",
        "These records are left out.",
        "Log each process into a file of its own.",
    ),
    WarningKind(
        "malformed_lines",
        "Lines of a log begin a memory record that cannot be parsed.",
        "These records are left out.",
        "Log each process into a file of its own.",
    ),
    WarningKind(
        "too_long_lines",
        "Lines are longer than any line of a log.",
        "They are left out.",
        "Check that the file is a text log.",
    ),
    WarningKind(
        "skipped_records",
        "A Chrome trace has records that say nothing of time or memory.",
        "They are not read.",
        NOTHING_TO_DO,
        is_printed=False,
    ),
    WarningKind(
        "unknown_phase",
        "Records of a Chrome trace have no phase (ph), or an unknown one.",
        "They are left out.",
        "Check the program that wrote or changed the trace.",
    ),
    WarningKind(
        "too_big",
        "Objects of a JSON trace are too large for an event.",
        "They are left out.",
        "Check the program that wrote or changed the trace.",
    ),
    WarningKind(
        "bad_times",
        "Records of a Chrome trace have no usable time (ts).",
        "Events keep their place without a start.",
        RECORD_AGAIN,
    ),
    WarningKind(
        "bad_durations",
        "Complete events of a Chrome trace have no usable duration (dur).",
        "They take no time.",
        RECORD_AGAIN,
    ),
    WarningKind(
        "unmatched_begins",
        "Events of a Chrome trace begin and never end.",
        "They last until the end of their line.",
        "Record until the profiler has stopped.",
    ),
    WarningKind(
        "unmatched_ends",
        "Ends in a Chrome trace belong to no event that began.",
        "They are left out.",
        "Begin to record before the work that matters.",
    ),
    WarningKind(
        "bad_counters", "Values of counters are no numbers.", "They are left out.", RECORD_AGAIN
    ),
    WarningKind(
        "missing_locations",
        "Stacks of a pprof file name locations or functions that the file lacks.",
        "These frames have no name.",
        "Record again with the program that wrote the file; a filter may have removed them.",
    ),
    WarningKind(
        "frames_left_out",
        "A place of a stack has more inlined frames than are read.",
        "The innermost ones are shown.",
        NOTHING_TO_DO,
        is_printed=False,
    ),
    WarningKind(
        "sample_values",
        "Samples of a pprof file have more or fewer values than its header names.",
        "What lacks counts as 0.",
        RECORD_AGAIN,
    ),
    WarningKind(
        "graph_unreadable",
        "A graph file beside the profile cannot be read.",
        "Answers about ops lack shapes and Python lines.",
        "Name the graph with the tool's parameter, or remove the file.",
        is_counted=False,
    ),
    WarningKind(
        "no_content",
        "A graph file holds no node and no function.",
        "There is nothing to answer from.",
        "Check that the file is the one that was meant.",
        is_counted=False,
    ),
    WarningKind(
        "untimed_events", "Events have no time.", "An export leaves them out.", RECORD_AGAIN
    ),
)
