"""Sentences, thresholds and limits that are the same of every profile; nothing heavy is imported.

The page gets `PAGE` as the module ``core/wording.js``, which scripts/generate_docs.py writes, and
what depends on a profile with the answers of tools (``sentence``): its modules word controls alone.
"""

from __future__ import annotations

from peakline.document import limits

NOTHING_AT_ALL = "There is nothing about memory or time in this profile."
NOTHING_NOTABLE = "Nothing stands out."
HOW_FOUND = {
    "function": "inferred: nothing is marked, each run of a function counts as one",
    "annotation": "by annotations without a number, once a turn of the loop",
    "device": "by the device's own line of steps",
}
"""What is said of steps that no mark with a number says."""
HOW_TO_MARK = (
    "Put each step in jax.profiler.StepTraceAnnotation or "
    "tf.profiler.experimental.Trace(name, step_num=i, _r=1), or call step() of "
    "torch.profiler.profile(schedule=...), which marks nothing without a schedule"
)
NO_STEPS = "No steps are marked in this profile"
NOT_JUDGED = "No steps are marked in this profile, so what a step takes is not judged."
NO_MEMORY = "This profile has nothing about memory"
NO_TIME = "This file does not record what ran."
RECORDS_MEMORY = (
    "TensorFlow's profiler records memory of GPUs, and of CPUs with its BFC allocator; "
    "PyTorch's with profile_memory=True, or as a snapshot (torch.cuda.memory._dump_snapshot); "
    "JAX writes jax.profiler.save_device_memory_profile. RunMetadata, memory logs and "
    "out-of-memory reports can be dropped on the list of sessions too."
)
RECORDS_MEMORY_BRIEFLY = (
    "TensorFlow records it on every device, JAX on accelerators, PyTorch with "
    "profile_memory=True; of JAX's heap save jax.profiler.save_device_memory_profile."
)
RECORDS_TIME = (
    "Record a trace: peakline capture, tf.profiler, jax.profiler.trace or torch.profiler."
)
FAR = 100
"""From so many times on a percentage of a difference says no more."""


def _begun(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


PAGE = {
    "how_found": {name: _begun(text) for name, text in HOW_FOUND.items()},
    "how_to_mark": HOW_TO_MARK,
    "no_steps": NO_STEPS,
    "not_judged": NOT_JUDGED,
    "no_memory": NO_MEMORY,
    "no_memory_in_profile": f"{NO_MEMORY}.",
    "records_memory": RECORDS_MEMORY,
    "records_memory_briefly": RECORDS_MEMORY_BRIEFLY,
    "no_time": NO_TIME,
    "records_time": RECORDS_TIME,
    "untracked": "its records have no ids, so that no buffer can be followed",
    "needs_of_programs": "No memory events: this is what the programs need while they run. "
    "jax.profiler.save_device_memory_profile records what is allocated.",
    "judged": {
        "nothing": "The file has nothing about memory or time.",
        "memory": "Nothing about memory deserves attention; the file has nothing about time.",
        "both": "Neither memory nor time has anything that deserves attention.",
        "time": "Nothing about time deserves attention.",
        "time_alone": "Nothing about time deserves attention; the file has nothing about memory.",
        "without_steps": "What a step takes is not judged: no steps are marked.",
    },
    "no_findings": {
        "over_time": "No finding: no leak, no fragmentation, no failed allocation.",
        "moment": "No finding. Leaks show only in profiles over time.",
        "time": "Nothing about time.",
    },
    "slow": "twice the median or more",
    "warm_up": "a first step of twice the median or more: it warms up",
    "cut_off": "pale: cut off by the end of the record",
    "limits": {
        "summary": limits.SUMMARY,
        "graph_ops": limits.GRAPH_OPS,
        "session_findings": limits.SESSION_FINDINGS,
        "session_hosts": limits.SESSION_HOSTS,
        "timeline_findings": limits.TIMELINE_FINDINGS,
        "heat_rows": limits.HEAT_ROWS,
    },
    "thresholds": {
        "far": FAR,
        "little": limits.LITTLE,
        "explains": limits.EXPLAINS,
    },
}
"""What the page shows word by word, and from where on it shows something."""
