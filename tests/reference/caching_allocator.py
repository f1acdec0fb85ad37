"""PyTorch's caching allocator in plain lists, slow on purpose: what the kernels must do.

Written from ``c10/cuda/CUDACachingAllocator.cpp`` and ``c10/core/AllocatorConfig.cpp`` in
pytorch/pytorch by themselves: it shares nothing with `peakline.replay`.
"""

from fractions import Fraction

MIB = 1 << 20
UNLIMITED = 1 << 60
TOP = 1 << 62


class Block:
    def __init__(self, address, size, state, born=0):
        self.address, self.size, self.state, self.born = address, size, state, born
        self.buffer = None


class Segment:
    def __init__(self, base, size, pool, stream, large, expandable, number):
        self.base, self.size, self.pool, self.stream = base, size, pool, stream
        self.large, self.expandable, self.number = large, expandable, number
        self.blocks = []

    def mapped(self):
        return sum(b.size for b in self.blocks if b.state != "unmapped")


class Allocator:
    """``settings`` has the fields of CachingSettings."""

    def __init__(self, settings, limit, device, placement="ascending", captured=True, by_age=True):
        self.s, self.limit, self.placement = settings, limit, placement
        self.captured, self.by_age = captured, by_age
        self.device = min(device, 1 << 40)
        self.segments, self.live, self.early = [], {}, set()
        self.searches = {}
        self.captures, self.left, self.numbers = 0, set(), 0
        self.cursor = {"ascending": 1 << 32, "descending": TOP, "lowest": 0}[placement]
        self.log = []
        """What was taken and returned: action, address, bytes and segment; and which waits were
        ended: with the buffer for the bytes.
        """
        self.strange = self.peak_reserved = self.peak_in_use = self.taken = self.returned = 0
        fraction = settings.memory_fraction
        self.allowed = None if fraction is None or fraction >= 1 else round(fraction * limit)
        has_gc = self.allowed is not None and settings.garbage_collection_threshold > 0
        self.threshold = (
            int(settings.garbage_collection_threshold * self.allowed) if has_gc else None
        )
        self.split_limit = settings.max_split_bytes

    # what can be seen

    def reserved(self):
        return sum(s.mapped() for s in self.segments)

    def in_use(self):
        return sum(b.size for s in self.segments for b in s.blocks if b.state == "live")

    def layout(self):
        """Segments in order of their addresses, with their blocks."""
        return [
            (s.base, s.size, s.large, s.expandable,
             [(b.address, b.size, b.state, b.buffer) for b in s.blocks])
            for s in sorted(self.segments, key=lambda s: s.base)
        ]  # fmt: skip

    # sizes

    def rounded(self, size):
        if size < 512:
            return 512
        if size > UNLIMITED:
            return 2 * UNLIMITED
        power = size.bit_length() - 1
        divisions = self.s.roundup_power2_divisions[min(max(power - 20, 0), 15)]
        if divisions > 1 and size > 512 * divisions:
            step = Fraction(1 << power, divisions)
            parts = -(-(size - (1 << power)) // step)
            return int((1 << power) + parts * step)
        return -(-size // 512) * 512

    def segment_bytes(self, size):
        if size <= MIB:
            return 2 * MIB
        if size < 10 * MIB:
            return self.s.large_segment_bytes
        return -(-size // (2 * MIB)) * 2 * MIB

    # free blocks

    def free_blocks(self, pool, stream, large):
        result = [
            (b.size, s.number if self.by_age else 0, b.address, s, b)
            for s in self.segments
            if (s.pool, s.stream, s.large) == (pool, stream, large)
            for b in s.blocks
            if b.state == "free"
        ]
        return [(s, b) for *_, s, b in sorted(result, key=lambda row: row[:3])]

    @staticmethod
    def extent(segment, block):
        place = segment.blocks.index(block)
        following = segment.blocks[place + 1 : place + 2]
        return block.size + sum(b.size for b in following if b.state == "unmapped")

    def find(self, pool, stream, large, size):
        fitting = [(s, b) for s, b in self.free_blocks(pool, stream, large) if b.size >= size]
        if not fitting:
            return None
        if fitting[0][0].expandable and self.s.expandable_segments:
            while (
                len(fitting) > 1
                and fitting[0][0].expandable
                and self.extent(*fitting[1]) < self.extent(*fitting[0])
            ):
                fitting.pop(0)
        elif fitting[0][0].expandable:
            fitting = [(s, b) for s, b in fitting if not s.expandable]
            if not fitting:
                return None
        segment, block = fitting[0]
        limit = self.split_limit
        if limit is not None:
            if size < limit <= block.size:
                return None
            if size >= limit and block.size >= size + self.s.rounding_bytes:
                return None
        return segment, block

    def enter(self, segment, block):
        """A block becomes free (or unmapped): its age begins, and it joins its neighbours."""
        block.born = self.searches.get((segment.pool, segment.large), 0)
        blocks = segment.blocks
        place = blocks.index(block)
        for near in (place + 1, place - 1):
            if 0 <= near < len(blocks) and blocks[near].state == block.state:
                other = blocks[near]
                block.address = min(block.address, other.address)
                block.size += other.size
                blocks.remove(other)
                place = blocks.index(block)

    def cut(self, segment, block, size, state):
        """What lies behind the first ``size`` bytes of a block becomes one of its own."""
        rest = Block(block.address + size, block.size - size, state)
        block.size = size
        segment.blocks.insert(segment.blocks.index(block) + 1, rest)
        rest.born = self.searches.get((segment.pool, segment.large), 0)
        return rest

    # segments

    def place(self, size):
        room = -(-size // (2 * MIB)) * 2 * MIB
        if self.placement == "ascending":
            at = self.cursor
            if at + room > TOP:
                return None
            self.cursor += room
            return at
        if self.placement == "descending":
            self.cursor -= room
            return self.cursor
        at = 0
        for s in sorted(self.segments, key=lambda s: s.base):
            if s.base - at >= size:
                break
            at = -(-(s.base + s.size) // (2 * MIB)) * 2 * MIB
        return at if at + size <= TOP else None

    def new_segment(self, pool, stream, large, size, expandable):
        base = self.place(size)
        if base is None:
            return None
        self.numbers += 1
        segment = Segment(base, size, pool, stream, large, expandable, self.numbers)
        segment.blocks = [Block(base, size, "unmapped" if expandable else "free")]
        self.enter(segment, segment.blocks[0])
        self.segments.append(segment)
        if not expandable:
            self.log.append(("segment_alloc", base, size, segment))
            self.count_taken()
        return segment

    def count_taken(self):
        self.taken += 1
        self.peak_reserved = max(self.peak_reserved, self.reserved())

    def take(self, pool, stream, large, size):
        """A free block of new memory; None, or "thrown" where nothing may be released."""
        taken = self.segment_bytes(size)
        if self.allowed is not None and self.reserved() + taken > self.allowed:
            return None
        if self.s.expandable_segments:
            return self.expand(pool, stream, large, size)
        if self.reserved() + taken > self.limit:
            return "thrown" if self.s.throws_early else None
        segment = self.new_segment(pool, stream, large, taken, expandable=False)
        return segment and (segment, segment.blocks[0])

    def page(self, large):
        return self.s.large_segment_bytes if large else 2 * MIB

    def expand(self, pool, stream, large, size):
        page = self.page(large)
        mine = [s for s in self.segments if s.expandable]
        mine = [s for s in mine if (s.pool, s.stream, s.large) == (pool, stream, large)]
        result = None
        for s in sorted(mine, key=lambda s: s.base):
            for place, block in enumerate(s.blocks):
                if result or block.state != "unmapped":
                    continue
                first = place - (place > 0 and s.blocks[place - 1].state == "free")
                room = 0
                for b in s.blocks[first:]:
                    if b.state not in {"free", "unmapped"} or room >= size:
                        break
                    room += b.size
                if room >= size:
                    result = s, s.blocks[first]
        if not result:
            length = max(-(-(self.device + self.device // 8) // page), 1) * page
            s = self.new_segment(pool, stream, large, length, expandable=True)
            if s is None:
                return None
            result = s, s.blocks[0]
        s, block = result
        while block.state == "unmapped" or block.size < size:
            if block.state == "unmapped":
                hole, wanted = block, min(block.size, size)
            else:
                following = s.blocks[s.blocks.index(block) + 1 :][:1]
                if not following or following[0].state != "unmapped":
                    return None
                hole = following[0]
                wanted = min(hole.size, size - block.size)
            wanted = min(-(-wanted // page) * page, hole.size)
            if self.reserved() + wanted > self.limit:
                return None
            if wanted < hole.size:
                self.cut(s, hole, wanted, "unmapped")
            self.log.append(("segment_map", hole.address, wanted, s))
            hole.state = "free"
            self.enter(s, hole)
            self.count_taken()
            block = hole
        return s, block

    def drop(self, segment):
        self.segments.remove(segment)
        if not segment.expandable:
            self.log.append(("segment_free", segment.base, segment.size, segment))
        self.returned += not segment.expandable

    def unmap(self, segment, block):
        page = self.page(segment.large)
        start = block.address - segment.base
        first = -(-start // page) * page
        last = (start + block.size) // page * page
        if first >= last:
            return
        if first > start:
            block = self.cut(segment, block, first - start, "unmapped")
        if last - first < block.size:
            self.cut(segment, block, last - first, "free")
        self.log.append(("segment_unmap", segment.base + first, last - first, segment))
        block.state = "unmapped"
        self.enter(segment, block)
        self.returned += 1
        if len(segment.blocks) == 1:
            self.drop(segment)

    def whole_free(self, segment):
        return (
            not segment.expandable
            and len(segment.blocks) == 1
            and segment.blocks[0].state == "free"
        )

    def collect(self):
        target = self.reserved() - self.threshold
        if target <= 0:
            return
        left = [s for s in self.segments if s.pool == 0 and s.large and self.whole_free(s)]
        now = self.searches.get((0, True), 0)
        reclaimed = 0
        while left and reclaimed < target:
            mean = Fraction(sum(now - s.blocks[0].born for s in left), len(left))
            old = [s for s in left if now - s.blocks[0].born >= mean]
            for s in old:
                reclaimed += s.size
                self.drop(s)
            left = [s for s in left if s not in old]
            if not old:
                break

    def release_available(self, pool, stream, large, size):
        least = max(size, self.split_limit)
        free = self.free_blocks(pool, stream, large)
        above = [(s, b) for s, b in free if b.size >= least]
        if above and self.whole_free(above[0][0]):
            self.drop(above[0][0])
            return True
        released = 0
        for s, b in reversed([(s, b) for s, b in free if b.size < least]):
            if released >= least or b.size < self.split_limit:
                break
            if self.whole_free(s):
                released += b.size
                self.drop(s)
        return released >= least

    def release_cached(self):
        for s in list(self.segments):
            for b in list(s.blocks):
                if b.state == "awaiting" and b in s.blocks:
                    self.early.add(b.buffer)
                    self.log.append(("free_completed", b.address, b.buffer, s))
                    del self.live[b.buffer]
                    b.state, b.buffer = "free", None
                    self.enter(s, b)
        for s in list(self.segments):
            if s.pool != 0 and s.pool not in self.left:
                continue
            if self.whole_free(s):
                self.drop(s)
            elif s.expandable:
                for b in [b for b in s.blocks if b.state == "free"]:
                    self.unmap(s, b)

    # events

    def allocate(self, buffer, requested, pool, stream):
        """The address, None where it fails, -1 where it is strange."""
        if buffer in self.live or requested <= 0:
            self.strange += 1
            return -1
        self.early.discard(buffer)
        size = self.rounded(requested)
        large = size > MIB
        if self.threshold is not None:
            self.searches[pool, large] = self.searches.get((pool, large), 0) + 1
        where = pool, stream, large, size
        result = self.find(*where)
        if result is None:
            if self.threshold is not None:
                self.collect()
            result = self.take(*where)
            if result is None and self.split_limit is not None and self.release_available(*where):
                result = self.take(*where)
            if result is None and not self.captures and (pool == 0 or not self.captured):
                self.release_cached()
                result = self.take(*where)
        if result is None or result == "thrown":
            return None
        segment, block = result
        rest = block.size - size
        if not large or self.s.expandable_segments:
            splits = rest >= 512
        else:
            splits = rest > MIB and (self.split_limit is None or size < self.split_limit)
        if splits:
            self.cut(segment, block, size, "free")
        block.state, block.buffer = "live", buffer
        self.live[buffer] = segment, block
        self.peak_in_use = max(self.peak_in_use, self.in_use())
        return block.address

    def free(self, buffer, step):
        """``step`` is free, requested or completed."""
        segment, block = self.live.get(buffer, (None, None))
        if block is None:
            if step == "completed" and buffer in self.early:
                self.early.remove(buffer)
            else:
                self.strange += 1
        elif block.state != ("awaiting" if step == "completed" else "live"):
            self.strange += 1
        elif step == "requested":
            block.state = "awaiting"
        else:
            del self.live[buffer]
            block.state, block.buffer = "free", None
            self.enter(segment, block)
