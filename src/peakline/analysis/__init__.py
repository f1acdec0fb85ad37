"""Where the documentation sent readers before 0.2: each name warns, and says its new place."""

from peakline.lazy import moved

_MOVED = {
    "diff": {"compare": ("compare.memory", "compare")},
    "limits": {
        "Limits": ("check.verdict", "Limits"),
        "check_limits": ("check.limits", "check_limits"),
    },
    "timing": {},
    "timing.breakdown": {"step_times": ("timing.step_breakdown", "step_times")},
    "timing.compare": {
        "compare_time": ("compare.time", "compare_time"),
        "time_state": ("compare.time", "time_state"),
    },
    "timing.critical": {"critical_path_of": ("timing.critical_path.path", "critical_path_of")},
    "timing.launches": {"launch_summary": ("timing.launches.summary", "launch_summary")},
    "timing.step_facts": {"step_facts_of": ("timing.steps.facts", "step_facts_of")},
    "timing.variation": {
        "device_straggler": ("timing.steps.variation", "device_straggler"),
        "variation_of": ("timing.steps.variation", "variation_of"),
    },
}
for _old, _names in _MOVED.items():
    moved(
        f"{__name__}.{_old}",
        {name: (f"peakline.{room}", new) for name, (room, new) in _names.items()},
    )
