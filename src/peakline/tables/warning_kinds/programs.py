"""Warnings about compiled programs (HLO): dumps that are cut, and what they do not say."""

from __future__ import annotations

from peakline.tables.warning_kinds.kind import NOTHING_TO_DO, WarningKind

_DUMP = "Dump again with XLA_FLAGS='--xla_dump_to=DIR --xla_dump_hlo_as_proto'."

PROGRAMS = (
    WarningKind(
        "hlo_damaged",
        "A compiled program in the profile is damaged.",
        "It is answered from what is whole.",
        _DUMP,
    ),
    WarningKind("hlo_unreadable", "A dumped program cannot be read.", "It is left out.", _DUMP),
    WarningKind(
        "hlo_programs",
        "There are more compiled programs than are read.",
        "The others are left out.",
        "Name one file, or a directory with fewer dumps.",
    ),
    WarningKind(
        "hlo_reference",
        "Operands, calls or buffers of a program name what it does not have.",
        "These references are left out.",
        _DUMP,
    ),
    WarningKind(
        "hlo_repeated", "Names stand twice in the text of a program.", "The first counts.", _DUMP
    ),
    WarningKind(
        "hlo_entry",
        "No computation of the text is marked ENTRY: the text may be cut.",
        "The last computation counts as the entry.",
        _DUMP,
        is_counted=False,
    ),
    WarningKind(
        "hlo_attributes",
        "The text of a program has attributes of unknown names.",
        "They are left out.",
        "Update Peakline: a newer XLA may have them.",
    ),
    WarningKind(
        "hlo_values",
        "Values in the text of a program are not understood.",
        "They are left out.",
        "Update Peakline: a newer XLA may write them so.",
    ),
    WarningKind(
        "hlo_shapes",
        "Very many operands have very long shapes.",
        "These shapes are left out.",
        _DUMP,
    ),
    WarningKind(
        "hlo_lines",
        "Lines of a buffer assignment or memory report are not understood.",
        "They are left out.",
        _DUMP,
    ),
    WarningKind(
        "hlo_allocations",
        "The file has values without their allocations, which another file of the dump has.",
        "What the program needs of memory is not known.",
        "Name the directory of the dump, not one file of it.",
        is_counted=False,
    ),
    WarningKind(
        "hlo_left_out",
        "The memory report leaves values out.",
        "They are in the sums, and not named.",
        _DUMP,
    ),
    WarningKind(
        "hlo_rounded",
        "The memory report has sizes rounded.",
        "Sizes are exact to what it prints.",
        NOTHING_TO_DO,
        is_printed=False,
    ),
    WarningKind(
        "hlo_unsaid",
        "The memory report does not say what some allocations hold.",
        "They count without a name.",
        _DUMP,
    ),
    WarningKind(
        "hlo_total",
        "The allocations of the memory report do not add up to its own sum.",
        "The allocations count.",
        _DUMP,
        is_counted=False,
    ),
    WarningKind(
        "hlo_frames",
        "Call stacks of instructions are deeper than is read.",
        "Their outermost frames are left out.",
        NOTHING_TO_DO,
        is_printed=False,
    ),
    WarningKind(
        "hlo_heap",
        "Events of a program's simulated heap do not fit those before.",
        "The size at the peak may be wrong by these.",
        _DUMP,
    ),
    WarningKind(
        "no_instructions",
        "No event names an instruction of a compiled program.",
        "Tools about instructions have nothing to show.",
        "Record a program that XLA compiled, with jax.profiler.trace on a CPU.",
        is_counted=False,
    ),
    WarningKind(
        "op_parts",
        "Parts of ops hold themselves, or are too many or too deep.",
        "They are left out.",
        _DUMP,
    ),
    WarningKind(
        "no_buffer_assignment",
        "A program does not say where its values lie.",
        "What it needs of memory is not known, or an estimate.",
        _DUMP,
        is_counted=False,
    ),
    WarningKind(
        "no_memory_space",
        "Nothing of the program lies in the chosen memory space.",
        "The answer is empty.",
        "Choose one of the memory spaces that the warning lists.",
        is_counted=False,
    ),
    WarningKind(
        "no_heap_trace",
        "The content of temporaries over time is not known.",
        "They count in full, so the peak is an upper bound.",
        _DUMP,
    ),
    WarningKind(
        "several_heaps",
        "A memory space has several heaps.",
        "They are shown one after the other; each counts at its peak meanwhile.",
        NOTHING_TO_DO,
        is_printed=False,
    ),
    WarningKind(
        "no_values",
        "Allocations hold no value.",
        "They are not counted.",
        NOTHING_TO_DO,
        is_printed=False,
    ),
)
