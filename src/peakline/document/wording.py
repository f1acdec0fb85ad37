"""Sentences, thresholds and limits that are the same of every profile.

The page gets `PAGE` as the module ``core/wording.js``, which scripts/generate_docs.py writes, and
what depends on a profile with the answers of tools (``sentence``): its modules word controls alone.
What depends on what is in view there, such as a range that is marked, has its values in braces.
"""

from __future__ import annotations

from peakline.document import limits
from peakline.timing.steps.facts import PARTS

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
PEAK = {
    "heap trace": "by the heap that XLA simulated",
    "no temporaries": "it has no temporaries",
    "schedule": "computed from the order of its instructions, for want of a buffer assignment",
    "allocations": "at most: nothing says when some temporaries are live",
}
"""How the peak of a program was found (`peakline.hlo.memory`)."""
NO_FUNCTION = "(no function of yours)"
"""What runs in no function of the program's own."""
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
ALL_IN_JSON = " (all with --json)"
"""Where rows are that a terminal has no room for."""
MEMORY_SECTIONS = {
    "savings": "What would need less memory",
    "fit": "In how much memory it runs",
    "over_time": "Memory over time",
    "moment": "What is in memory",
    "peak": "What the peak is made of",
    "program": "The program at the peak",
    "buffers": "The largest buffers",
    "growth": "Growth from step to step",
    "fragmentation": "Fragmentation",
    "churn": "What comes and goes",
}
MOST_SELF_TIME = "Ops with the most self time"
FAR = 100
"""From so many times on a percentage of a difference says no more."""


def _begun(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


PAGE = {
    "how_found": {name: _begun(text) for name, text in HOW_FOUND.items()},
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
        "nothing": "The file has no events of memory or time.",
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
    "parts": {name.removesuffix("_ps"): text for name, text in PARTS.items()},
    "peak_found_by": PEAK,
    "special_rows": {
        "(before profile)": "was there when the profile began; no record says what it is made of",
        "(reserved)": "held by the runtime itself, such as the device's driver and its stack",
        "(unattributed)": "in use by the allocator's own count, but no record names a buffer for "
        "it",
    },
    "summary": {
        "time": "Where a step's time goes",
        "one_step": "One step of {mean}.",
        "steps": "Mean {mean} of {steps}, 95th percentile {p95}.",
        "busy": "busy {share} of {span}",
        "idle": "longest time without work {longest}",
        "programs": "Memory of compiled programs",
        "ops": MOST_SELF_TIME,
        "input": "prepares input, beside the steps",
        "shares": {
            "host": "Shares of the ops' self time on the host.",
            "device": "Shares of the ops' self time on the devices.",
        },
        "gain_memory": "Memory: up to {share} of the peak",
        "gain_time": "Time: up to {share} of the run",
        "no_broken_rule": "The graph check finds no broken rule.",
        "more_rules": "and {more} more: peakline check says all",
        "notable": "worth a look",
        "nothing": "nothing stands out",
    },
    "compare": {
        "choose_two": "The earlier one is Before, the later one After; what changed from one to "
        "the other is shown here. More can be laid beside them then.",
        "same_findings": "The same findings before and after, or none.",
        "chance": "no more than chance",
        "no_memory": "Neither profile has anything about memory.",
        "at_the_peak": "What changed at the peak",
        "growth": "Stays in memory, more or less with every step",
        "churn": "Allocated in a step",
        "fragmentation": "Fragmentation at the peak",
        "no_time": "Neither profile has steps or ops.",
        "parts": "What a mean step's time goes to",
        "parts_label": "Parts of a mean step",
        "same_ops": "No op's self time differs by what counts.",
        "ops": "Ops whose self time differs, {per}",
        "ops_label": "Ops whose self time differs",
        "per_step": "a step",
        "per_profile": "in the whole profile",
        "others": "All other ops {per}: {others}.",
        "other_of": "of the {side} {before} \N{RIGHTWARDS ARROW} {after}",
        "by_number": "Aligned by the number of the step, counted from the first of each profile.",
        "by_time": "No steps: aligned by the time from the first memory record.",
        "by_time_without": "Without steps: {sessions}; aligned by the time from the first memory "
        "record.",
        "measures": {
            "end": "at the end of each step",
            "low": "least in each step",
            "high": "most in each step",
        },
        "difference": "{title} less Before: {first} at {from}, {last} at {to}.",
    },
    "steps": {
        "examined": "An even choice of {examined} of the {steps} steps is examined.",
        "choose_another": "Choose another step to compare it with, or another step to explain.",
        "same_part": "nothing that ran in this part differs",
        "differ_most": "{works} of {total} that differ most",
        "unattributed": "{left} unattributed: in no event",
        "attributed": "nothing unattributed",
        "in_median": "In the median step",
        "not_run": "It did not run.",
        "cut_off": "cut off by the end of the record",
        "left_out": "Cut off, and left out",
        "gap": "; {gap} after the step before",
        "first": "first step, {says}. The first two of a name warm up and compile: no alarm.",
        "warms_up": "it warms up",
        "is_cut_off": "The record ends in the middle of it: it counts in no median and no mean.",
        "mean": "The mean step",
        "mean_of": "The mean step of {name}",
        "no_name": "those without a name",
        "choose": "Choose a step in the chart or in the table to see it alone.",
        "mark": f"{HOW_TO_MARK}, and record again. Meanwhile:",
        "many": "{steps} steps: where several share a pixel, the mean of their parts, and lines "
        "for the shortest and the longest",
        "bin": "mean {mean}, median {median}, from {min} to {max}",
        "longest_of": "the longest of {steps} steps",
        "in_red": "slow ones in red",
        "in_gray": "slow first ones in gray",
    },
    "heat": {
        "rows": "{rows}; each row is darkest where it takes longest",
        "no_function": "no Python function was recorded",
        "nothing": "nothing ran in the steps",
    },
    "histogram": {
        "label": "Runs by how long they took",
        "of_name": "Drawn: {events} of that name.",
        "runs": "{runs}; bars are a quarter of a doubling wide.",
    },
    "path": {
        "none": "No critical path in this profile",
        "needs": "It needs events that record what ran, or executions of a graph.",
        "no_step": "none marked: all that the device did",
        "waits": "Nothing ran on it",
        "nothing": "nothing on the path ran",
        "known": "What each piece waited for is known {how}.",
        "known_by": {
            "graph": "from the edges of the graph that ran",
            "hlo": "from the operands of the compiled program, and the order of its streams",
            "links": "from the links between threads and devices, and from their order",
            "nothing": "from nothing",
        },
        "is_cut": "The path is longer than is shown: its begin is cut off.",
    },
    "input": {
        "none": "No stages of an input pipeline in this profile",
        "records": "tf.data records its own stages, PyTorch its DataLoader; of JAX none are "
        "recorded.",
        "waits": "Training waits for input",
        "bottleneck": "holds the pipeline up",
    },
    "kernels": {
        "none": "No GPU kernels in this profile",
        "instead": "The ops show what ran:",
        "unused": "{share} of the kernels' time is in kernels without tensor cores whose ops could "
        "use them.",
        "nothing": "no kernel has that in its name or op",
    },
    "ops": {
        "none": "No ops in this profile",
        "instead": "It records nothing that ran as an op of a framework; all that ran:",
        "nothing": "no op has that in its name or type",
        "total": "{ops}, {self} of self time, summed over {over}",
        "over": {"both": "threads and devices", "device": "devices", "host": "threads"},
        "no_function": NO_FUNCTION,
        "records_functions": "Frames of Python are recorded with with_stack=True of "
        "torch.profiler.profile, and with python_tracer_level=1 of jax.profiler.ProfileOptions; "
        "programs of JAX name the functions that they were traced from.",
        "records_modules": "Of PyTorch only: with_stack=True of torch.profiler.profile records "
        "which module runs an op.",
        "records_shapes": "Of PyTorch only: record_shapes=True of torch.profiler.profile records "
        "the shapes of inputs.",
        "not_recorded": "Not recorded in this profile",
        "no_row": "no row has that",
    },
    "roofline": {
        "reason": "No roofline: {reason}.",
        "none": "No roofline: no op of known cost ran here.",
        "ops": "{ops} ops of known cost, as large as their self time.",
        "no_roof": "{ops} ops of known cost, as large as their self time; the peaks of the {chip} "
        "are not recorded, so that no roof is drawn.",
        "ridge": "{rate}, ridge at {at} FLOP per byte",
        "op": "{rate} at {at} FLOP per byte",
        "share": "{share} of the roof, bound by {by}",
    },
    "graph": {
        "none": "This profile holds no graph and no compiled program.",
        "kinds": {
            "node": "node",
            "scope": "scope",
            "body": "body of a computation",
            "series": "series",
            "op": "nodes of one op",
            "range": "nodes that follow each other",
        },
        "part": {
            "around": "The neighbourhood of",
            "inputs": "The path from an input to",
            "outputs": "The path to an output from",
        },
        "at_peak": "Live at the peak",
        "memory": "memory at the peak",
        "runs_time": "Self time of all runs",
        "functions": "Functions that it calls",
        "made": "Where it was made",
        "of_body": "what the body is given, or its result",
        "inside": ", {nodes} in functions that they call",
        "closed": "; {scopes} left closed: more than {most} items are never shown, close others "
        "first",
        "left_out": "; {what} left out",
        "reading": "A click selects; on a scope it also opens or closes it. Dashed boxes are "
        "groups of like things, where a scope holds very many. Lines are as wide as what goes "
        "along them is large.",
    },
    "schedule": {
        "given": "{instructions} in the program's order;",
        "of_file": "{instructions} in the order of the file: the program gives none;",
        "peak": "at most {peak} live at place {place}, {how}; {lasting} of it lasts from the "
        "beginning to the end.",
        "unknown": "what is live is not known: the program has no buffer assignment and no "
        "schedule.",
    },
    "memory": {
        "one_moment": "This file describes one moment; it has no axis of time.",
        "not_live": "The buffer that the address names is not live at this moment.",
        "from_before": "from before the profile",
        "not_freed": "not freed within it",
        "not_returned": "not returned within it",
        "never_freed": "not within the profile",
        "never_freed_whole": "not freed within the profile",
        "not_known_yet": "not known: the records begin later",
        "is_peak": "this is the peak",
        "how_to_write": "Write a time such as 12.5 ms, 1.2 s or 827750630000 ps.",
        "no_steps": "The steps are not shown: {reason}",
        "capacity_left": "Left of the capacity",
        "fragmentation": "share of the free memory that is not in its largest piece, by the "
        "allocator's own count",
        "last_record": "the record that says how much was in use",
        "sections": MEMORY_SECTIONS,
        "in_use_by_step": "Memory in use when each step ends",
        "bytes_by_step": "Bytes in use when each step ends",
        "at_its_end": "{used} in use when it ends",
        "forced": "Allocations that took new memory",
        "churn": "What is allocated most",
        "steps": "{steps} steps: zoom in to see each",
        "no_stacks": "No call stacks are recorded",
        "stacks_not_recorded": "Python stack (not recorded)",
        "not_a_whole": "The records name more bytes than the allocator says are in use, so that "
        "parts do not add up to a whole that can be drawn; the table has them all.",
        "no_sizes": "Nothing is live here whose size is known.",
        "reserved": "reserved outside the heap",
        "nothing_allocated": "Nothing is allocated in this stretch.",
        "no_two_steps": "There are no two steps to compare.",
        "grows": "{what}: {how}, {rate} a step, {held} at the end",
        "slope": "+{rate} a step, from step {first} to {last}",
        "by_program": "By the compiled program in whose run a buffer was requested, on its thread: "
        "{events}.",
        "by_step": "By the name of the step: no record of memory says which XLA program requested "
        "it.",
    },
    "chart": {
        "of": {
            "line": "Memory in use",
            "stack": "Memory in use stacked by {by}",
            "buffers": "Memory in use buffer by buffer",
        },
        "at": "At {at} {used} were in use.",
        "from": "The chart begins at {low}.",
        "pixel": "{low} to {high} within this pixel",
        "lowest": "at the lowest moment of this pixel",
        "highest": "at the highest moment of this pixel",
        "click": "Click: what is live at the highest moment of this pixel",
    },
    "polygons": {
        "largest": "{buffers} largest buffers, in order of allocation from the bottom",
        "smaller": "{buffers} smaller ones are one sum",
        "unseen": "{buffers} live shorter than a pixel and not at its highest moment: zoom in",
        "by_buffer": "colored by buffer, since {since}",
        "one_op": "all are of {op}",
        "no_op": "no op is recorded",
        "below": "before the profile, or reserved",
        "in_view": "smaller buffers ({buffers} in view)",
    },
    "live": {
        "buffers": "Buffers that are live at this moment",
        "by": "What is live at this moment, by {group}",
        "nothing": "nothing is live here that fits",
        "all": "{rows}, {size} together",
        "first": "{shown} of {rows}, {size} together, the first by this order",
    },
    "between": {
        "live": "what is still live at B",
        "allocated": "all that was allocated",
        "nothing": "nothing was allocated in this range",
        "all_freed": "All that was allocated between A and B was freed by B.",
        "nothing_allocated": "Nothing was allocated between A and B.",
    },
    "programs": {
        "alone": "This profile has no records of allocations; it has the programs that XLA "
        "compiled, which say what each holds while it runs. Of JAX "
        "jax.profiler.save_device_memory_profile records what is allocated.",
        "peak": "{peak}, {how}.",
        "peak_at": "{peak} at place {place} of {instructions}, {how}.",
        "no_layers": "No layers: {reason}.",
        "label": "Bytes that the program holds at each place of its schedule, by {by}: at most "
        "{peak}. The table has what is live then.",
    },
    "map": {
        "none": "There is no such map: {reason}.",
        "blocks": "{blocks} in {regions} of {size}",
        "marked": "{blocks} smaller ones are marked in grey",
        "not_drawn": "{blocks} smaller ones are not drawn",
        "holes": "{holes}, {size} in all, the largest {largest}",
        "request": "a request for {size} failed",
        "request_of": "a request for {size} of {op} failed",
        "failed": "failed: {size}; the largest hole has {hole}",
        "failed_for": "failed: {size} for {op}; the largest hole has {hole}",
        "limit": "under a limit of {limit}",
        "all_fit": "all requests fit",
        "segments_then": "regions are of the segments that the allocator had then",
        "segments_at_end": "regions are of the segments at the file's end: no record takes or "
        "returns one",
        "segments_throughout": "no record takes or returns a segment: those of the file's end are "
        "shown throughout",
        "segments": "{stretches} of segments in view, {taken} taken and {returned} returned within "
        "the profile",
    },
    "clocks": {
        "hosts": "{who} on one clock: {how}.",
        "some_hosts": "{who} on one clock: {how}. {left} more hosts are not shown.",
        "all": "All hosts",
        "choice": "Hosts in the timeline",
        "chosen": "{hosts} chosen, at most {most}",
        "listed": "{hosts} chosen, at most {most}; the first {listed} of {matching} are listed",
        "job": {
            "clock": "that of their machine",
            "collectives": "where the ends of collectives match, give or take {time}",
            "alone": "; {clocks} as they are, which nothing relates to the others",
        },
        "sources": {
            "clock": "by its own clock",
            "collectives": "where the ends of its collectives match",
            "steps": "where the begins of its steps match",
            "none": "with its first moment at the start: nothing relates its clock to the others'",
        },
    },
    "timeline": {
        "nothing": "This profile does not record what ran when.",
        "untimed": "This profile has {events} events, but none records when it ran.",
        "empty_lines": "{lines} without events left out",
        "not_drawn": "{events} without a time not drawn",
        "counter": "{name} over time: {range} in what is shown",
        "else_memory": "What it has about memory is under",
        "of_one_host": "Findings are of one host",
        "choose_host": "Choose a host above to see its findings.",
        "links": {
            "launch": "launches",
            "handed on": "hands on to",
            "allocation": "is freed at",
            "asynchronous": "is done at",
            "send": "is received by",
            "collective": "is waited for by",
            "message": "sends to",
            "fwdbwd": "has its backward in",
        },
        "arrows": "{arrows} in view: zoom in to see them",
        "too_many_arrows": "too many events in view for arrows: zoom in",
        "no_arrows": "arrows could not be read",
        "how_to_search": "Type a part of a name above; / goes there.",
        "more_counters": "{more} more counters: see the SQL table counters",
        "zoom": "Zoom in to see each.",
        "follow": "A click follows it.",
        "follow_one": "A click follows it; zoom in to see each.",
        "more_arguments": "and {more} more: a click shows all",
        "first_steps": "the first {listed} of {steps} steps; all are in",
        "most_names": "the {most} most frequent of {names} names",
        "no_match": "No event has {text} in its name.",
    },
    "event": {
        "none_chosen": "No event is chosen",
        "how_to_choose": "Click one, or search by name. ? lists all keys.",
        "neighbours": "Neighbours on this row",
        "in_none": "In no other event",
        "nothing": "Nothing runs in it",
        "children": "In it: {events}, {time}",
        "others": "and {events} of other names",
    },
    "pick": {
        "failed": "It was not found: {reason}",
        "longest": "the longest of {events} events of {search}",
        "only": "the only event of {search}",
        "begins": "begins at {when}",
        "holds": "runs at {when}",
        "none_begins": "No one event begins at {when}: what runs then is in the lanes.",
        "no_name": "No event of this profile is called {search}.",
        "none_then": "None of the {events} events called {search} runs at {when}.",
    },
    "range": {
        "nothing": "nothing runs in it",
        "none": "Nothing runs in it.",
        "events": "{events} of {names} on {lines}. Self times add up to {self}.",
        "events_most": "{events} of {names} on {lines}. Self times add up to {self}; {share} of "
        "that is {name}.",
        "listed": "{names} ({listed} with the most self time are listed)",
        "hidden": "{events} too short or too deep to be drawn",
        "outermost": "outermost events of the lines",
        "no_range": "No range is marked",
        "how_to_mark": "Drag with Shift over the lanes: along one row for all lines, over several "
        "for those. Or press Select above and drag, or choose an event and press m.",
    },
    "job": {
        "waiting": "waiting for the last rank",
        "parts": "A mean step of all ranks",
        "more": "and {more} more like this",
        "unpaired": "No collective is recorded on two ranks: who waits for whom is not known.",
        "clocks": "{clocks} put on one axis by what ends together, sure to {uncertainty}.",
        "no_findings": "No finding of any rank.",
        "nothing": "Neither memory nor time is in these profiles.",
        "no_peaks": "Peaks of memory are not recorded.",
        "first_collectives": "The first {shown} of {collectives} are shown.",
        "no_collectives": "No collective of this step is recorded.",
        "arrivals": "{collectives} of {step} on all ranks, at {rank}. Arrow keys go to another "
        "rank or collective, Enter shows that alone.",
        "last": "the last to come",
        "none_recorded": "No collectives are recorded.",
        "choose_group": "A row that is chosen stands out in the picture of a step.",
        "peaks": "Peak memory of {ranks}: at most {most}, on {rank}. Arrow keys go from rank to "
        "rank, Enter opens its memory.",
        "no_capacity": "the capacity is not recorded",
        "capacity": "capacity {capacity}, more than twice what any needs",
        "fullest_first": "the fullest first",
        "beside": "What {rank} holds beside {other}",
        "beside_peers": "What {rank} holds beside its peers",
        "timeline": "Timeline of {rank} at this step",
        "map": "{measure} of {ranks} in {steps}; most in the mean: {most}. Arrow keys move, Enter "
        "shows the collectives of the step.",
    },
    "limits": {
        "summary": limits.SUMMARY,
        "graph_ops": limits.GRAPH_OPS,
        "session_findings": limits.SESSION_FINDINGS,
        "session_hosts": limits.SESSION_HOSTS,
        "timeline_findings": limits.TIMELINE_FINDINGS,
        "heat_rows": limits.HEAT_ROWS,
    },
    "thresholds": {"far": FAR, "little": limits.LITTLE, "explains": limits.EXPLAINS},
}
"""What the page shows word by word, and from where on it shows something."""
