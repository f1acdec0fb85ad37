"""Random sequences of requests for models of PyTorch's caching allocator."""

from peakline.kernels import caching_layout as layout
from peakline.replay.torch_events import CachingEvents
from peakline.replay.torch_settings import MIB, CachingSettings
from reference.caching_allocator import Allocator

SIZES = {
    "small": [1, 500, 512, 513, 4096, 100_000, MIB],
    "mixed": [100, 3000, MIB, MIB + 1, 2 * MIB, 5 * MIB + 7, 9 * MIB, 10 * MIB, 40 * MIB],
    "large": [11 * MIB, 20 * MIB, 21 * MIB, 30 * MIB + 5, 33 * MIB, 63 * MIB, 64 * MIB, 100 * MIB],
    "absurd": [0, 1, MIB, 30 * MIB, 2**40, 2**60, 2**60 + 1, 2**62, 2**63 - 1],
}  # fmt: skip
DIVISIONS = [(0,) * 16, (4,) * 16, (8, 2) + (1,) * 12 + (16, 2)]


def random_settings(rng):
    large = rng.choice([20, 20, 20, 11, 32]) * MIB
    return CachingSettings(
        max_split_bytes=rng.choice([None, None, 32 * MIB, 64 * MIB]),
        max_non_split_rounding_bytes=rng.choice([None, 40 * MIB]),
        roundup_power2_divisions=rng.choice(DIVISIONS),
        garbage_collection_threshold=rng.choice([0.0, 0.3, 0.6, 0.8]),
        memory_fraction=rng.choice([None, 1.0, 0.9, 0.5]),
        expandable_segments=rng.random() < 0.4,
        large_segment_bytes=large,
        throws_early=rng.random() < 0.1,
    )


def random_events(rng, count, sizes, most_live, *, lanes=1, bad=0.0):
    """Events as (kind, buffer), and of each buffer its requested bytes, stream and pool."""
    events, live, waiting = [], [], []
    requested, stream, pool = [], [], []
    for _ in range(count):
        if rng.random() < bad:
            kind = rng.choice([layout.ALLOCATE, layout.FREE, layout.FREE_REQUESTED,
                               layout.FREE_COMPLETED])  # fmt: skip
            events.append((kind, rng.randrange(len(requested) + 1) if requested else 0))
            continue
        roll = rng.random()
        if roll < 0.01:
            events.append((layout.EMPTY_CACHE, 0))
        elif roll < 0.05 and waiting:
            events.append((layout.FREE_COMPLETED, waiting.pop(0)))
        elif live and rng.random() * most_live < len(live):
            buffer = live.pop(rng.randrange(len(live)))
            if rng.random() < 0.1:
                events.append((layout.FREE_REQUESTED, buffer))
                waiting.append(buffer)
            else:
                events.append((layout.FREE, buffer))
        else:
            buffer = len(requested)
            live.append(buffer)
            requested.append(rng.choice(sizes))
            lane = rng.randrange(lanes)
            stream.append(lane % 2 * 7)
            pool.append(lane // 2)
            events.append((layout.ALLOCATE, buffer))
    requested.append(5)
    stream.append(0)
    pool.append(0)
    return events, requested, stream, pool


def caching_events(sequence):
    events, requested, stream, pool = sequence
    kind, buffer = zip(*events, strict=True) if events else ((), ())
    return CachingEvents.of(kind, buffer, requested, stream, pool)


def replayed(sequence, settings, limit, device, **options):
    """What the plain model does: itself, the addresses by buffer, and the event that failed."""
    plain = Allocator(settings, limit, device, **options)
    events, requested, stream, pool = sequence
    addresses = {}
    steps = {
        layout.FREE: "free",
        layout.FREE_REQUESTED: "requested",
        layout.FREE_COMPLETED: "completed",
    }
    for n, (kind, buffer) in enumerate(events):
        if kind == layout.EMPTY_CACHE:
            plain.release_cached()
        elif not 0 <= buffer < len(requested) or requested[buffer] <= 0:
            plain.strange += 1
        elif kind == layout.ALLOCATE:
            at = plain.allocate(buffer, requested[buffer], pool[buffer], stream[buffer])
            if at is None:
                return plain, addresses, n
            if at >= 0:
                addresses[buffer] = at
        else:
            plain.free(buffer, steps[kind])
    return plain, addresses, -1
