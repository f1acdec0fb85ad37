"""The best-fit allocator with coalescing, plainly: lists of chunks, every request looks at all."""

GRANULE = 256
SPLIT = 128 << 20
FIRST = 2 << 20


def rounded(size):
    return (size + GRANULE - 1) // GRANULE * GRANULE


class Chunk:
    def __init__(self, address, size):
        self.address, self.size, self.used = address, size, False


class Bfc:
    def __init__(self, limit, *, growth=True, fraction=0.0, collect=False, descending=True):
        self.limit, self.collect, self.growing = limit, collect, growth
        self.growth = rounded(min(limit, FIRST) if growth else limit)
        self.split = int(fraction * limit) if fraction > 0 else SPLIT
        self.descending = descending
        self.last = 1 << 58
        self.regions = []

    @property
    def pool(self):
        return sum(chunk.size for region in self.regions for chunk in region)

    @property
    def in_use(self):
        return sum(chunk.size for region in self.regions for chunk in region if chunk.used)

    def allocate(self, size):
        """The chunk, or None where the request fails."""
        wanted = rounded(size)
        result = self.find(wanted)
        if result is None and self.extend(wanted):
            result = self.find(wanted)
        if result is None and self.collect:
            free = [r for r in self.regions if len(r) == 1 and not r[0].used]
            total = sum(region[0].size for region in free)
            if free and wanted <= self.limit - self.pool + total:
                self.regions = [region for region in self.regions if region not in free]
                if self.extend(wanted):
                    result = self.find(wanted)
        return result

    def find(self, wanted):
        free = [
            (chunk.size, chunk.address, region, place)
            for region in self.regions
            for place, chunk in enumerate(region)
            if not chunk.used and chunk.size >= wanted
        ]
        if not free:
            return None
        size, address, region, place = min(free, key=lambda one: one[:2])
        chunk = region[place]
        if size >= 2 * wanted or size - wanted >= self.split:
            region.insert(place + 1, Chunk(address + wanted, size - wanted))
            chunk.size = wanted
        chunk.used = True
        return chunk

    def extend(self, wanted):
        available = (self.limit - self.pool) // GRANULE * GRANULE
        if wanted > available:
            return False
        doubled = False
        while wanted > self.growth:
            self.growth *= 2
            doubled = True
        size = min(self.growth, available)
        if not doubled:
            self.growth *= 2
        self.last += -(1 << 44) if self.descending else 1 << 44
        self.regions.append([Chunk(self.last, size)])
        return True

    def free(self, chunk):
        chunk.used = False
        region = next(r for r in self.regions if chunk in r)
        merged = []
        for one in region:
            if merged and not one.used and not merged[-1].used:
                merged[-1].size += one.size
            else:
                merged.append(one)
        region[:] = merged
