"""The settings of PyTorch's caching allocator that decide where a block goes.

The text is that of ``PYTORCH_ALLOC_CONF``
(https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf),
the rules are those of ``c10/core/AllocatorConfig.cpp`` and ``c10/cuda/CUDAAllocatorConfig.h`` in
pytorch/pytorch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from peakline.errors import UsageError
from peakline.suggest import there_is

MIB = 1 << 20
INTERVALS = 16
"""Powers of two from 1 MiB on that have divisions of their own."""
_MOST_MIB = (2**63 - 1) // MIB
_MOST_DIVISIONS = 1 << 30
_IGNORED = frozenset(
    """release_lock_on_cudamalloc release_lock_on_hipmalloc graph_capture_record_stream_reuse
    pinned_use_cuda_host_register pinned_use_hip_host_register pinned_num_register_threads
    pinned_use_background_threads pinned_reserve_segment_size_mb pinned_max_round_threshold_mb
    pinned_max_cached_size_mb pinned_free_catch_all""".split()
)
"""Settings that decide nothing about the memory of a device."""
_KNOWN = (
    "max_split_size_mb",
    "max_non_split_rounding_mb",
    "roundup_power2_divisions",
    "garbage_collection_threshold",
    "expandable_segments",
    "large_segment_size_mb",
    "per_process_memory_fraction",
    "throw_on_cudamalloc_oom",
    "backend",
)


@dataclass(frozen=True)
class CachingSettings:
    """``max_split_bytes`` None: every block may be split. ``max_non_split_rounding_bytes`` None:
    as large as ``large_segment_bytes``. ``roundup_power2_divisions`` are 16, for sizes from 1 MiB
    (and less), 2 MiB, ... 32 GiB (and more), 0 and 1 for none. ``memory_fraction`` is the part of
    the device that may be taken (``torch.cuda.set_per_process_memory_fraction``); where it is None
    or 1 garbage is not collected, whatever its threshold is. ``throws_early``: a request
    fails as soon as the device has no room, without that anything is released.
    """

    max_split_bytes: int | None = None
    max_non_split_rounding_bytes: int | None = None
    roundup_power2_divisions: tuple[int, ...] = (0,) * INTERVALS
    garbage_collection_threshold: float = 0.0
    memory_fraction: float | None = None
    expandable_segments: bool = False
    large_segment_bytes: int = 20 * MIB
    throws_early: bool = False

    @classmethod
    def parse(cls, text: str) -> CachingSettings:
        """From what ``PYTORCH_ALLOC_CONF`` has, such as ``expandable_segments:True``.

        Raises UsageError for a setting or a value that PyTorch does not know, and for another
        allocator.
        """
        pairs = _pairs(text)
        made = cls()
        # It is a bound of the others: PyTorch reads it first, wherever it stands.
        for name, value in sorted(pairs, key=lambda pair: pair[0] != "large_segment_size_mb"):
            made = _READ[name](made, name, value) if name in _READ else made
        return made

    @classmethod
    def of_snapshot(cls, settings: Mapping[str, object]) -> CachingSettings:
        """From ``allocator_settings`` of a snapshot; what it lacks is as PyTorch begins with it.

        Raises UsageError as `parse`.
        """
        text = ""
        for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"):
            result = settings.get(name)
            text = result if isinstance(result, str) else text
        made = cls.parse(text)
        split = settings.get("max_split_size")
        if isinstance(split, int):
            made = replace(made, max_split_bytes=split if 0 < split < 1 << 62 else None)
        threshold = settings.get("garbage_collection_threshold")
        if isinstance(threshold, (int, float)) and 0 <= threshold < 1:
            made = replace(made, garbage_collection_threshold=float(threshold))
        if isinstance(is_on := settings.get("expandable_segments"), bool):
            made = replace(made, expandable_segments=is_on)
        divisions = settings.get("roundup_power2_divisions")
        if isinstance(divisions, Mapping):
            of = [divisions.get(str(1 << interval), 0) for interval in range(INTERVALS)]
            made = replace(
                made,
                roundup_power2_divisions=tuple(
                    one if isinstance(one, int) and 1 < one <= _MOST_DIVISIONS else 0 for one in of
                ),
            )
        return made

    def changed(self, name: str, value: str) -> CachingSettings:
        """These settings with one of another value, as `parse` reads it."""
        ((name, value),) = _pairs(f"{name}:{value}") or [("", "")]
        return _READ[name](self, name, value) if name in _READ else self

    def as_json(self) -> dict[str, object]:
        """The settings under PyTorch's names; None is no limit."""
        split, divisions = self.max_split_bytes, self.roundup_power2_divisions
        return {
            "max_split_size_mb": None if split is None else split // MIB,
            "roundup_power2_divisions": divisions[0]
            if len(set(divisions)) == 1
            else list(divisions),
            "garbage_collection_threshold": self.garbage_collection_threshold,
            "per_process_memory_fraction": self.memory_fraction,
            "expandable_segments": self.expandable_segments,
            "large_segment_size_mb": self.large_segment_bytes // MIB,
        }

    @property
    def rounding_bytes(self) -> int:
        """So much larger than a request a block that is not split must not be."""
        if self.max_non_split_rounding_bytes is None:
            return self.large_segment_bytes
        return self.max_non_split_rounding_bytes

    def allowed(self, device_bytes: int) -> int | None:
        """The bytes that may be taken of a device of this size, None where no fraction is set."""
        if self.memory_fraction is None or self.memory_fraction >= 1:
            return None
        return round(self.memory_fraction * float(device_bytes))

    def threshold(self, device_bytes: int) -> int | None:
        """Above so many bytes taken garbage is collected, None where it is not."""
        allowed = self.allowed(device_bytes)
        if allowed is None or self.garbage_collection_threshold <= 0:
            return None
        return int(self.garbage_collection_threshold * float(allowed))


def _pairs(text: str) -> list[tuple[str, str]]:
    """The settings of a text; a comma in brackets is part of a value."""
    plain = re.sub(r"\s", "", text)
    pairs = []
    for part in re.split(r",(?![^\[]*\])", plain):
        name, colon, value = part.partition(":")
        if not part:
            continue
        if name not in _KNOWN and name not in _IGNORED:
            raise UsageError(f"PyTorch's allocator has no setting {name!r}{there_is(name, _KNOWN)}")
        if not colon or not value:
            raise UsageError(f"{name} has no value; settings are written {name}:VALUE")
        pairs.append((name, value))
    return pairs


def _number(name: str, value: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", value):
        raise UsageError(f"{name}:{value} is no whole number")
    return int(value)


def _megabytes(name: str, value: str, least: int) -> int:
    number = _number(name, value)
    if number < least:
        raise UsageError(f"{name}:{number} is too small, PyTorch takes {least} or more")
    return min(number, _MOST_MIB) * MIB


def _switch(name: str, value: str) -> bool:
    if value not in {"True", "False"}:
        raise UsageError(f"{name}:{value} is neither True nor False")
    return value == "True"


def _part(name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 < number <= 1:
        raise UsageError(f"{name}:{value} is no part of the device, between 0 and 1")
    return number


def _large_segment(made: CachingSettings, name: str, value: str) -> CachingSettings:
    return replace(made, large_segment_bytes=_megabytes(name, value, 11))


def _max_split(made: CachingSettings, name: str, value: str) -> CachingSettings:
    least = made.large_segment_bytes // MIB
    return replace(made, max_split_bytes=_megabytes(name, value, least))


def _rounding(made: CachingSettings, name: str, value: str) -> CachingSettings:
    least = made.large_segment_bytes // MIB
    return replace(made, max_non_split_rounding_bytes=_megabytes(name, value, least))


def _threshold(made: CachingSettings, name: str, value: str) -> CachingSettings:
    number = _part(name, value)
    if number == 1:
        raise UsageError(f"{name}:{value} is not below 1")
    return replace(made, garbage_collection_threshold=number)


def _expandable(made: CachingSettings, name: str, value: str) -> CachingSettings:
    return replace(made, expandable_segments=_switch(name, value))


def _fraction(made: CachingSettings, name: str, value: str) -> CachingSettings:
    number = _part(name, value)
    return replace(made, memory_fraction=number)


def _throws(made: CachingSettings, name: str, value: str) -> CachingSettings:
    return replace(made, throws_early=_switch(name, value))


def _backend(made: CachingSettings, name: str, value: str) -> CachingSettings:
    if value != "native":
        raise UsageError(f"{name}:{value} is another allocator, only native is modelled")
    return made


def _division(name: str, value: str) -> int:
    number = _number(name, value)
    if number & (number - 1) or number > _MOST_DIVISIONS:
        raise UsageError(f"{name} divides by {value}, which is no power of 2")
    return number


def _divisions(made: CachingSettings, name: str, value: str) -> CachingSettings:
    """``4``, or ``[256:1,512:2,>:8]`` by size in MiB: what is named first holds for smaller ones
    too, ``>`` for those above the last.
    """
    if not value.startswith("["):
        return replace(made, roundup_power2_divisions=(_division(name, value),) * INTERVALS)
    if not value.endswith("]"):
        raise UsageError(f"{name}:{value} has no closing bracket")
    of, last = [0] * INTERVALS, -1
    for part in filter(None, value[1:-1].split(",")):
        size, colon, divisions = part.partition(":")
        if not colon:
            raise UsageError(f"{name}: {part} is not written SIZE:DIVISIONS")
        if size == ">":
            of[last + 1 :] = [_division(name, divisions)] * (INTERVALS - last - 1)
            continue
        at = _number(name, size)
        if at == 0 or at & (at - 1):
            raise UsageError(f"{name}: {size} MiB is no power of 2")
        at = min(at.bit_length() - 1, INTERVALS - 1)
        of[0 if last < 0 else at : at + 1] = [_division(name, divisions)] * (
            at + 1 if last < 0 else 1
        )
        last = at
    return replace(made, roundup_power2_divisions=tuple(of))


_READ = {
    "large_segment_size_mb": _large_segment,
    "max_split_size_mb": _max_split,
    "max_non_split_rounding_mb": _rounding,
    "roundup_power2_divisions": _divisions,
    "garbage_collection_threshold": _threshold,
    "expandable_segments": _expandable,
    "per_process_memory_fraction": _fraction,
    "throw_on_cudamalloc_oom": _throws,
    "backend": _backend,
}
