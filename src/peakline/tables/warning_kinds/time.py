"""Warnings about time: no steps, work that belongs nowhere, limits of a trace."""

from __future__ import annotations

from peakline.tables.warning_kinds.kind import NOTHING_TO_DO, RECORD_AGAIN, WarningKind

TIME = (
    WarningKind(
        "no_steps",
        "Nothing in the profile says what a step is.",
        "What a step takes is not known; devices, ops and the timeline are.",
        "Mark the steps: docs/steps.md says how in each framework.",
        is_counted=False,
    ),
    WarningKind(
        "no_events",
        "The profile has no events.",
        "There is no time to explain; compiled programs beside it are read.",
        "Record while the job runs steps.",
        is_counted=False,
    ),
    WarningKind(
        "no_start_time",
        "Executions of a RunMetadata have no start.",
        "They stand at 0.",
        "Record with RunOptions.FULL_TRACE.",
    ),
    WarningKind(
        "collector_limit",
        "A run has exactly as many executions as the runtime collects at most.",
        "Later executions of the run are missing.",
        "Record a smaller part of the graph.",
        is_counted=False,
    ),
    WarningKind(
        "devices_left_out",
        "The profile has more devices than are explained.",
        "The work of the others is missing.",
        "Record fewer devices in one file.",
    ),
    WarningKind(
        "early_device_work",
        "Work on a device begins before its launch on the host: their clocks differ.",
        "Delays between launch and work may be wrong by that difference.",
        NOTHING_TO_DO,
        is_printed=False,
    ),
    WarningKind(
        "links_left_out",
        "Too many requests and batches meet each other.",
        "Some of their links are left out.",
        "Record for a shorter time.",
    ),
    WarningKind(
        "transfers_unknown",
        "Sends and receives are of programs that the profile does not hold.",
        "They are left out.",
        "Record with the programs (the profiler's default on TPU).",
    ),
    WarningKind(
        "critical_path_guess",
        "Pieces of a critical path follow each other without a link in the profile.",
        "They are the likeliest by their times.",
        NOTHING_TO_DO,
        is_printed=False,
    ),
    WarningKind(
        "critical_path_cut",
        "A critical path has more pieces than are shown.",
        "Its begin is missing.",
        "Choose a step, or a shorter one.",
    ),
    WarningKind(
        "critical_path_empty",
        "A step took no time.",
        "It has no critical path.",
        "Choose another step.",
        is_counted=False,
    ),
    WarningKind(
        "no_accelerator_time",
        "Ops ran on an accelerator whose own times are not recorded.",
        "The time of these ops on the accelerator is not known.",
        "Record with a device tracer (RunOptions.FULL_TRACE on a GPU build).",
        is_counted=False,
    ),
    WarningKind(
        "threads_cut",
        "A trace with more threads than max_threads.",
        "The threads with the fewest events are not shown.",
        "Raise the parameter max_threads.",
        is_counted=False,
    ),
    WarningKind(
        "events_cut",
        "XProf's JSON has a limit of events.",
        "Later events are not in it.",
        "Choose a stretch of time, or the tool timeline.",
        is_counted=False,
    ),
    WarningKind(
        "ops_cut",
        "XProf's table has a limit of ops.",
        "The ops with least time are not in it.",
        "Use peakline ops, which has all.",
    ),
    WarningKind(
        "kernels_cut",
        "XProf's table has a limit of kernels.",
        "The kernels with least time are not in it.",
        "Use peakline ops --kernels, which has all.",
    ),
    WarningKind(
        "no_op_stats",
        "The profile has neither a traced run nor a graph.",
        "The tool op_stats has nothing to show.",
        "Record with RunOptions.FULL_TRACE.",
        is_counted=False,
    ),
    WarningKind(
        "no_code_traces",
        "The graph does not say which Python lines made its nodes.",
        "The view by code is empty.",
        "Save the graph with its debug information.",
        is_counted=False,
    ),
    WarningKind(
        "deep_scopes",
        "Names have more scopes than the view has rows for.",
        "What is further inside counts for its scope.",
        NOTHING_TO_DO,
        is_printed=False,
    ),
    WarningKind(
        "no_graph",
        "The profile has no graph.",
        "There is nothing to count or check.",
        RECORD_AGAIN,
        is_counted=False,
    ),
)
