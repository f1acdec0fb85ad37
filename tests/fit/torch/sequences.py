"""Sequences of requests to a caching allocator, each of another habit.

A request is a tuple of a letter and numbers:

    ("a", id, bytes, stream)   allocate
    ("f", id)                  free
    ("r", id, stream)          the block is also used on the stream (``record_stream``)
    ("d", stream)              all work that the stream was given so far is done
    ("e",)                     ``torch.cuda.empty_cache``
    ("m", fraction)            ``torch.cuda.set_per_process_memory_fraction``
    ("b", pool, stream)        what the stream allocates from here on comes from a private pool
    ("x", pool)                the end of that
    ("p", pool)                the private pool is given up (its memory may be released)
    ("g", stream, capture)     a capture begins on the stream; capture 0: it ends

Stream 0 is the default stream. Ids are never used twice. Everything is a function of fixed seeds.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Sequence

Request = tuple[str | int | float, ...]

KIB, MIB, GIB = 2**10, 2**20, 2**30


class Requests:
    """Collects requests; hands out ids."""

    def __init__(self, seed: int) -> None:
        self.rows: list[Request] = []
        self.random = random.Random(seed)
        self._next = 0

    def alloc(self, size: int, stream: int = 0) -> int:
        """The id of a new block."""
        number = self._next
        self._next += 1
        self.rows.append(("a", number, int(size), stream))
        return number

    def free(self, *numbers: int) -> None:
        """Free blocks in this order."""
        self.rows += [("f", number) for number in numbers]

    def add(self, *request: str | float) -> None:
        """Any other request."""
        self.rows.append(request)

    def temporary(self, size: int, stream: int = 0) -> None:
        """A block that is freed at once."""
        self.free(self.alloc(size, stream))

    def log_size(self, low: float, high: float) -> int:
        """A size between both, each order of magnitude as likely as any other."""
        return int(low * (high / low) ** self.random.random())


def _layers(r: Requests, sizes: Sequence[int], grads: Sequence[int], workspace: int) -> list[int]:
    """Forward and backward through layers; the gradients of the parameters."""
    saved = []
    for size in sizes:
        saved.append(r.alloc(size))
        r.temporary(workspace)
    made = []
    flowing = r.alloc(sizes[-1])
    for layer in reversed(range(len(sizes))):
        r.temporary(workspace)
        made.append(r.alloc(grads[layer]))
        following = r.alloc(sizes[max(layer - 1, 0)])
        r.free(flowing, saved[layer])
        flowing = following
    r.free(flowing)
    return made


def train_convolutions() -> Requests:
    """A convolutional network with Adam; every step the same."""
    r = Requests(1)
    channels = [3, 32, 32, 64, 64, 128, 128, 256, 256]
    pairs = list(itertools.pairwise(channels))
    weights = [9 * a * b * 4 for a, b in pairs]
    images = 24
    sizes = [images * b * (112 >> (n // 2)) ** 2 * 4 for n, (_, b) in enumerate(pairs)]
    for weight, (_, b) in zip(weights, pairs, strict=True):
        r.alloc(weight)
        r.alloc(b * 4)
    for step in range(14):
        batch = r.alloc(images * 3 * 224 * 224 * 4)
        labels = r.alloc(images * 8)
        grads = _layers(r, sizes, weights, 18 * MIB + 512)
        if step == 0:
            for weight in weights:
                r.alloc(weight)
                r.alloc(weight)
        for weight in weights:
            r.temporary(weight)
        r.free(*grads, batch, labels)
    return r


def _attention(r: Requests, batch: int, length: int, width: int, heads: int) -> list[int]:
    """The tensors that one layer of a transformer saves."""
    hidden = batch * length * width * 2
    saved = [r.alloc(hidden), r.alloc(3 * hidden)]
    scores = r.alloc(batch * heads * length * length * 2)
    saved.append(r.alloc(batch * heads * length * length * 2))
    r.free(scores)
    saved += [r.alloc(hidden), r.alloc(hidden), r.alloc(batch * length * 4)]
    inner = r.alloc(4 * hidden)
    saved += [inner, r.alloc(4 * hidden), r.alloc(hidden)]
    return saved


def _transformer_step(
    r: Requests, depth: int, batch: int, length: int, width: int, heads: int
) -> None:
    tokens = r.alloc(batch * length * 8)
    saved = [_attention(r, batch, length, width, heads) for _ in range(depth)]
    logits = r.alloc(batch * length * 2000 * 4)
    loss = r.alloc(4)
    flowing = r.alloc(batch * length * width * 2)
    r.free(logits)
    grads = []
    for layer in reversed(saved):
        for weight in (4 * width * width * 2, 4 * width * width * 2, 3 * width * width * 2):
            grads.append(r.alloc(weight))
            r.temporary(batch * length * width * 2)
        following = r.alloc(batch * length * width * 2)
        r.free(*reversed(layer), flowing)
        flowing = following
    r.free(flowing, loss, tokens, *grads)


def train_transformer() -> Requests:
    """A transformer with a fixed sequence length and an optimizer of two states."""
    r = Requests(2)
    depth, width = 6, 512
    for _ in range(depth):
        for weight in (3, 1, 4, 4):
            r.alloc(weight * width * width * 2)
            r.alloc(width * 2)
    for step in range(8):
        _transformer_step(r, depth, 8, 384, width, 8)
        if step == 0:
            for _ in range(depth * 8):
                r.alloc(4 * width * width * 4 // 2)
    return r


def growing_lengths() -> Requests:
    """A transformer whose sequences become longer from step to step."""
    r = Requests(3)
    for _ in range(12):
        r.alloc(4 * 512 * 512 * 2)
    for step in range(14):
        _transformer_step(r, 4, 6, 128 + 29 * step + r.random.randrange(8), 512, 8)
    return r


def varying_batches() -> Requests:
    """Inference with batches of random size; every layer's input is freed after its output."""
    r = Requests(4)
    widths = [768, 3072, 768, 1536, 768, 1024, 256]
    for a, b in itertools.pairwise(widths):
        r.alloc(a * b * 4)
    for _ in range(110):
        batch = r.random.choice([1, 2, 3, 5, 8, 13, 21, 34, 55])
        flowing = r.alloc(batch * 128 * widths[0] * 4)
        for width in widths[1:]:
            workspace = r.alloc(batch * 96 * KIB + 8 * KIB)
            following = r.alloc(batch * 128 * width * 4)
            r.free(flowing, workspace)
            flowing = following
        r.free(flowing)
    return r


def key_value_cache() -> Requests:
    """Text generation: caches that are copied into longer ones, several requests at a time."""
    r = Requests(5)
    for _ in range(24):
        r.alloc(6 * MIB)
    running: list[tuple[list[int], int, int]] = []
    for _ in range(240):
        if len(running) < 5 and r.random.random() < 0.3:
            length = r.random.randrange(40, 600)
            caches = [r.alloc(length * 4096) for _ in range(4)]
            running.append((caches, length, length + r.random.randrange(20, 90)))
        following = []
        for caches, length, last in running:
            hidden = r.alloc(64 * KIB)
            longer = []
            for cache in caches:
                longer.append(r.alloc((length + 8) * 4096))
                r.free(cache)
            r.free(hidden)
            if length + 8 >= last:
                r.free(*longer)
            else:
                following.append((longer, length + 8, last))
        running = following
    return r


def small_tensors() -> Requests:
    """Many small tensors that live for random times."""
    r = Requests(6)
    live: list[int] = []
    for _ in range(2200):
        if live and r.random.random() < 0.46:
            r.free(live.pop(r.random.randrange(len(live))))
        else:
            live.append(r.alloc(r.log_size(1, 700 * KIB)))
    r.free(*live[::2])
    return r


def prefetching() -> Requests:
    """Batches are copied on stream 1 and used on stream 0, which is behind by up to two steps."""
    r = Requests(7)
    for _ in range(10):
        r.alloc(r.log_size(100 * KIB, 9 * MIB))
    batches: list[int] = []
    for step in range(90):
        batches.append(r.alloc(12 * MIB + 700 * KIB * (step % 5), 1))
        batches.append(r.alloc(64 * KIB + step * 512, 1))
        if len(batches) < 4:
            continue
        images, labels = batches.pop(0), batches.pop(0)
        r.add("r", images, 0)
        r.add("r", labels, 0)
        saved = [r.alloc(r.log_size(200 * KIB, 14 * MIB)) for _ in range(5)]
        r.free(images, labels)
        r.free(*reversed(saved))
        if step % 3:
            r.add("d", 0)
    return r


def three_streams() -> Requests:
    """Random blocks of three streams, many used on the others, whose work ends now and then."""
    r = Requests(8)
    live: list[tuple[int, int]] = []
    for step in range(1900):
        chance = r.random.random()
        if live and chance < 0.43:
            number, _ = live.pop(r.random.randrange(len(live)))
            r.free(number)
        elif live and chance < 0.55:
            number, stream = r.random.choice(live)
            r.add("r", number, (stream + r.random.randrange(1, 3)) % 3)
        elif chance < 0.62:
            r.add("d", r.random.randrange(3))
        else:
            stream = r.random.choice([0, 0, 0, 1, 1, 2])
            live.append((r.alloc(r.log_size(300, 24 * MIB), stream), stream))
        if step in {900, 1500}:
            r.add("e")
    return r


def graph_pool() -> Requests:
    """Two graphs captured into one private pool, ordinary work before, between and after."""
    r = Requests(9)

    def ordinary(rounds: int) -> None:
        for _ in range(rounds):
            saved = [r.alloc(r.log_size(2 * KIB, 22 * MIB)) for _ in range(8)]
            r.random.shuffle(saved)
            r.free(*saved)

    def capture(number: int) -> list[int]:
        r.add("e")
        r.add("b", 1, 3)
        r.add("g", 3, number)
        held = []
        for _ in range(10):
            hidden = [r.alloc(r.log_size(4 * KIB, 18 * MIB), 3) for _ in range(6)]
            held.append(hidden.pop(r.random.randrange(6)))
            r.free(*hidden)
        r.add("g", 3, 0)
        r.add("x", 1)
        return held

    weights = [r.alloc(r.log_size(40 * KIB, 8 * MIB)) for _ in range(20)]
    ordinary(12)
    first = capture(7)
    ordinary(10)
    second = capture(8)
    ordinary(10)
    r.free(*first)
    r.add("p", 1)
    r.add("e")
    ordinary(8)
    r.free(*second)
    r.add("p", 1)
    r.add("e")
    ordinary(10)
    r.free(*weights[::3])
    return r


def two_pools() -> Requests:
    """Memory pools of a user on streams 0 and 2, one of which lives until the end."""
    r = Requests(10)
    live: list[int] = []
    pooled: dict[int, list[int]] = {1: [], 2: []}
    streams = {1: 0, 2: 2}
    for turn in range(24):
        for _ in range(18):
            live.append(r.alloc(r.log_size(KIB, 20 * MIB), r.random.choice([0, 0, 2])))
            if len(live) > 14:
                r.free(live.pop(r.random.randrange(len(live))))
        pool = 1 + turn % 2
        if turn < 20:
            r.add("b", pool, streams[pool])
            for _ in range(8):
                pooled[pool].append(r.alloc(r.log_size(20 * KIB, 16 * MIB), streams[pool]))
            r.add("x", pool)
            while len(pooled[pool]) > 9:
                r.free(pooled[pool].pop(r.random.randrange(len(pooled[pool]))))
        if turn == 20:
            r.free(*pooled[1])
            for _ in range(10):
                r.add("p", 1)
            r.add("e")
    return r


def epochs() -> Requests:
    """Training and evaluation by turns, with the cache emptied between them."""
    r = Requests(11)
    weights = [r.log_size(30 * KIB, 5 * MIB) for _ in range(10)]
    for weight in weights:
        r.alloc(weight)
    sizes = [r.log_size(2 * MIB, 28 * MIB) for _ in range(10)]
    history = []
    for epoch in range(5):
        for _ in range(4):
            r.free(*_layers(r, sizes, weights, 5 * MIB))
            history.append(r.alloc(4))
        r.add("e")
        for _ in range(6):
            flowing = r.alloc(sizes[0] * 2 + epoch * MIB)
            for size in sizes[1:]:
                following = r.alloc(size * 2)
                r.free(flowing)
                flowing = following
            r.free(flowing)
            history.append(r.alloc(40 * KIB))
        r.add("e")
    return r


def big_blocks() -> Requests:
    """Few blocks of tens to hundreds of MiB beside some small ones."""
    r = Requests(12)
    live: list[int] = []
    for _ in range(420):
        while len(live) > 7 or (live and r.random.random() < 0.45):
            r.free(live.pop(r.random.randrange(len(live))))
        live.append(r.alloc(r.log_size(9 * MIB, 330 * MIB)))
        if r.random.random() < 0.3:
            r.temporary(r.log_size(600, 3 * MIB))
    return r


def long_lived() -> Requests:
    """Long-lived blocks of 1 to 4 MiB between large ones that grow: fragmentation."""
    r = Requests(13)
    rare: list[int] = []
    for step in range(260):
        large = [r.alloc(r.log_size(6 * MIB, 12 * MIB) + step * 96 * KIB) for _ in range(2)]
        if step % 4 == 0:
            rare.append(r.alloc(r.log_size(1.1 * MIB, 4 * MIB)))
        if step % 8 == 0:
            rare.append(r.alloc(r.log_size(100 * KIB, 900 * KIB)))
        r.free(*large)
        if len(rare) > 40:
            r.free(rare.pop(r.random.randrange(len(rare))))
    return r


def random_sizes() -> Requests:
    """Random sizes and lives on one stream."""
    r = Requests(14)
    live: list[int] = []
    for step in range(2600):
        share = 0.42 if (step // 400) % 2 == 0 else 0.56
        if live and r.random.random() < share:
            r.free(live.pop(r.random.randrange(len(live))))
        else:
            live.append(r.alloc(r.log_size(1, 30 * MIB)))
        if len(live) > 90:
            r.free(live.pop(0))
    return r


def edge_sizes() -> Requests:
    """Sizes at and beside every border that the allocator knows."""
    r = Requests(15)
    borders = [512, 1024, MIB, 2 * MIB, 10 * MIB, 20 * MIB, 21 * MIB, 32 * MIB, 64 * MIB]
    sizes = [b + d for b in borders for d in (-512, -1, 0, 1, 512) if b + d > 0]
    sizes += [MIB * n + d for n in (3, 19, 22, 40) for d in (0, 511, 513)]
    live: list[int] = []
    for _ in range(900):
        if live and r.random.random() < 0.47:
            r.free(live.pop(r.random.randrange(len(live))))
        else:
            live.append(r.alloc(r.random.choice(sizes)))
        if len(live) > 36:
            r.free(live.pop(r.random.randrange(len(live))))
    return r


def checkpointing() -> Requests:
    """Activations are thrown away and computed again, layer by layer, in the backward pass."""
    r = Requests(16)
    hidden, inner = 7 * MIB + 4096, 29 * MIB + 512
    weights = [r.alloc(3 * MIB + 37 * KIB) for _ in range(12)]
    for step in range(10):
        more = step % 3 * 640 * KIB
        saved = []
        for _ in range(12):
            a, b = r.alloc(inner + more), r.alloc(inner + more)
            saved.append(r.alloc(hidden + more))
            r.free(a, b)
        flowing = r.alloc(hidden + more)
        grads = []
        for checkpoint in reversed(saved):
            a, b = r.alloc(inner + more), r.alloc(inner + more)
            c = r.alloc(hidden + more)
            grads.append(r.alloc(3 * MIB + 37 * KIB))
            following = r.alloc(hidden + more)
            r.free(b, a, c, flowing, checkpoint)
            flowing = following
        r.free(flowing, *grads)
    r.free(*weights[:6])
    return r


def limited() -> Requests:
    """The memory fraction is set, lowered and raised while large blocks come and go."""
    r = Requests(17)
    live: list[int] = []
    for step in range(700):
        if step in {60, 260, 480}:
            r.add("m", {60: 0.9, 260: 0.7, 480: 0.95}[step])
        while len(live) > 12 or (live and r.random.random() < 0.44):
            r.free(live.pop(r.random.randrange(len(live))))
        live.append(r.alloc(r.log_size(600 * KIB, 40 * MIB)))
    return r


def shifting() -> Requests:
    """Phases of other sizes, each leaving a cache that the following one cannot use well."""
    r = Requests(18)
    live: list[int] = []
    for phase in range(9):
        low = (1.2 + 3.1 * phase) * MIB
        for _ in range(70):
            live.append(r.alloc(r.log_size(low, low * 1.8)))
            while len(live) > 16 - phase:
                r.free(live.pop(r.random.randrange(len(live))))
        r.free(*live[2:])
        del live[2:]
    return r


MAKERS: tuple[Callable[[], Requests], ...] = (
    train_convolutions, train_transformer, growing_lengths, varying_batches, key_value_cache,
    small_tensors, prefetching, three_streams, graph_pool, two_pools, epochs, big_blocks,
    long_lived, random_sizes, edge_sizes, checkpointing, limited, shifting,
)  # fmt: skip


def sequences() -> dict[str, list[Request]]:
    """All sequences by name."""
    return {make.__name__: make().rows for make in MAKERS}


def to_text(rows: Iterable[Request]) -> str:
    """A request a line, its parts separated by blanks."""
    return "".join(" ".join(map(str, row)) + "\n" for row in rows)


def most_live(rows: Iterable[Request]) -> int:
    """The largest sum of the requested bytes that live at a time."""
    sizes: dict[int, int] = {}
    now = most = 0
    for row in rows:
        if row[0] == "a":
            sizes[int(row[1])] = int(row[2])
            now += int(row[2])
            most = max(most, now)
        elif row[0] == "f":
            now -= sizes.pop(int(row[1]))
    return most
