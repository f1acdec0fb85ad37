"""Which model replays an allocator, by what the file says of it."""

from __future__ import annotations

from peakline.errors import UsageError
from peakline.memory.fit.bfc import BfcFit
from peakline.memory.fit.model import NoFit
from peakline.memory.fit.replayed import Replayed, recording_of
from peakline.memory.signatures import History
from peakline.tables import Profile
from peakline.tables.event_rules import CACHING, MALLOC
from peakline.tables.profile_facts import is_moment

_PINNED = "host"
"""The allocator of pinned memory in a snapshot of PyTorch."""
_BFC_NAMES = "_bfc", "bfc_cpu_allocator_for_gpu"
"""How best-fit allocators are called: ``GPU_0_bfc``, ``xla_gpu_host_bfc``, and that of TensorFlow's
host.
"""


def replayed_of(
    profile: Profile,
    history: History,
    number: int,
    settings: tuple[tuple[str, str], ...] = (),
    most_events: int | None = None,
) -> Replayed | NoFit:
    """The model of an allocator, by what the file says of it, and its recording."""
    name = history.lifetimes.allocators[number]
    # Only snapshots of PyTorch have segments.
    is_snapshot = "segments" in profile.tables and not profile.is_derived("segments")
    if is_moment(profile):
        how = "; call torch.cuda.memory._record_memory_history() first" if is_snapshot else ""
        return NoFit(
            name, f"the file is of one moment: in what order memory was requested is not in it{how}"
        )
    if is_snapshot and name == _PINNED:
        return NoFit(name, "pinned memory of the host has an allocator that is not modelled")
    allocator_of = profile.event_rules.allocator_of
    allocator = "" if allocator_of is None else allocator_of(name)
    if allocator == MALLOC:
        return NoFit(name, "PyTorch allocates on the host with malloc, which has no pool to model")
    if allocator == CACHING:
        return _caching(profile, history, number, settings, most_events)
    recording = recording_of(history, number)
    if not (recording.address >= 0).any():
        return NoFit(name, "no allocation has an address, which a replay is checked with")
    found = BfcFit(
        recording, history.capacities[number], name.startswith("GPU_"), settings, most_events
    )
    if not name.endswith(_BFC_NAMES) and not found.is_proved:
        proof = found.stated
        return NoFit(
            name,
            f"{proof.equal_addresses:,} of {proof.allocations:,} addresses are those of the "
            "best-fit allocator with coalescing: it is another one",
        )
    return found


def _caching(
    profile: Profile,
    history: History,
    number: int,
    given: tuple[tuple[str, str], ...],
    most_events: int | None,
) -> Replayed | NoFit:
    """The model of PyTorch's allocator."""
    # Its kernels take long to load, and most files have nothing of it.
    from peakline.memory.fit.caching import CachingFit
    from peakline.replay.torch_recording import read_recording
    from peakline.replay.torch_settings import CachingSettings

    events, name = profile.columns("allocator_events"), history.lifetimes.allocators[number]
    if events.rows != history.rows:
        return NoFit(name, "the file has too many allocators to replay one")
    if not events.is_valid("address").any():
        return NoFit(name, "no allocation has an address, which a replay is checked with")
    recorded = profile.allocator_settings
    try:
        settings = CachingSettings.of_snapshot(recorded) if recorded else None
    except UsageError as error:
        return NoFit(name, f"its settings are not those of the allocator that is modelled: {error}")
    recording = read_recording(profile, name, settings)
    if not len(recording.events):
        return NoFit(name, "it has no history")
    # A snapshot lists what was there before.
    unknown = recording_of(history, number).unknown_bytes if recording.final is None else 0
    return CachingFit(recording, unknown, given, most_events)
