"""What is said of how a program fits into memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from peakline.document.model import Column, Fact, Row, Table
from peakline.document.profile import answer_document
from peakline.memory.fit.model import Fit, Limits, NoFit, Range, Request, UnderLimit
from peakline.safe_text import cut_middle
from peakline.tables import Profile
from peakline.text import allocator_text, chosen_size_text, counted, size_text, time_text

NOTHING_TO_REPLAY = "no memory events: nothing to replay"
_NAME = 60
DECIDED = "decided at"
_NEVER_SAFE = "from which limit on all fit is not known"
_RANGES = 4
CAUSES = {
    "memory": "more is live than that",
    "growth": "the pool grew in regions that are too small for it; one region of the same size "
    "(allow_growth=false) serves it",
    "fragmentation": "what is free lies in pieces that are too small",
    "unsplit": "blocks that were not split take more than was requested",
    "segments": "what is free lies in segments that blocks in use hold",
}
MODELS = {
    "bfc": "best fit with coalescing (TensorFlow, XLA)",
    "pytorch": "PyTorch's caching allocator",
    "xla": "XLA's heap of a compiled program",
}


def mib_text(size: int) -> str:
    """Whole MiB as such, other sizes as everywhere."""
    return f"{size >> 20:,} MiB" if size % (1 << 20) == 0 else size_text(size)


def verdict_text(limits: Limits) -> str:
    """``runs at 25 MiB, safe from 34 MiB``; ``needs at least 9 MiB`` where a request failed."""
    if limits.needs:
        return f"needs at least {mib_text(limits.smallest or limits.needs)}"
    if not limits.fits:
        least = f" below {mib_text(limits.searched_from)}" if not limits.is_whole else ""
        return f"no limit was found that fits{least}"
    safe = limits.safe_from
    holes = limits.fits[:-1] if safe is not None else limits.fits
    some = [_range_text(one) for one in holes[:_RANGES]]
    if len(holes) > _RANGES:
        some.append(f"{len(holes) - _RANGES} more ranges")
    parts = [f"runs at {', '.join(some)}"] if some else []
    if safe is not None:
        parts.append(f"safe from {mib_text(safe)}" if some else f"runs from {mib_text(safe)} on")
    if not limits.is_whole:
        parts.append(f"limits below {mib_text(limits.searched_from)} were not looked at")
    return ", ".join(parts)


def fit_headline(fits: Sequence[Fit]) -> str:
    """In how much memory it runs."""
    if not fits:
        return ""
    several = f"{allocator_text(fits[0].allocator)} " if len(fits) > 1 else ""
    return f"{several}{verdict_text(fits[0].limits)}"


def verb_of(fit: Fit) -> str:
    """What a program does in so much memory, as the label of `short_text`."""
    return "needs" if fit.limits.needs else "runs"


def short_text(fit: Fit) -> str:
    """The verdict in one line, for faces that say more than that."""
    verdict = verdict_text(fit.limits).removeprefix("runs ").removeprefix("needs ")
    if fit.failed is not None:
        size = size_text(fit.failed.request.bytes)
        return f"{verdict}: a request of {size} failed (peakline fit says more)"
    how = "" if fit.exact else ", a bound" if fit.proof.proved else ", an estimate"
    return f"{verdict}{how} (peakline fit says more)"


def _range_text(one: Range) -> str:
    low, high = one
    if high is None or high == low:
        return mib_text(low)
    return f"{low >> 20:,} to {mib_text(high)}"


def fit_facts(fit: Fit) -> list[Fact]:
    """The answer for one allocator, the first fact first."""
    proof, limits = fit.proof, fit.limits
    if fit.model == "xla":
        return _program_facts(fit)
    waiting = " without waiting" if fit.threads > 1 else ""
    facts = [
        Fact(f"fits{waiting}", verdict_text(limits)),
        Fact("exact", _exact_text(fit)),
        Fact("recorded peak", fit.recorded_peak_bytes, "bytes"),
        Fact("settings", _settings_text(fit.settings, {})),
        Fact("live at most", fit.live_peak_bytes, "bytes", _lowest_text(fit)),
        Fact(
            "replay",
            f"{proof.equal_addresses:,} of {proof.allocations:,} recorded addresses are those of "
            f"the model, {MODELS.get(fit.model, fit.model)}",
        ),
    ]
    if limits.may_fit != limits.fits and not limits.needs:
        may = Limits(limits.may_fit, (), limits.searched_from, is_whole=True)
        facts.append(Fact("may fit", f"{verdict_text(may)}, by {' and '.join(limits.differs_by)}"))
    if fit.deciding is not None:
        facts += under_facts(fit.deciding, DECIDED)
    for one in fit.under:
        facts += under_facts(one, "under")
    return facts


def _program_facts(fit: Fit) -> list[Fact]:
    """A compiled program needs what it needs."""
    proof = fit.proof
    exact = "yes" if fit.exact else f"no: {fit.reason}"
    facts = [
        Fact("needs", fit.recorded_peak_bytes, "bytes", f" ({fit.recorded_peak_bytes:,} bytes)"),
        Fact("exact", exact, "", "; what else lives on the device is not counted"),
        Fact("live at most", fit.live_peak_bytes, "bytes"),
    ]
    if proof.allocations:
        same = f"{proof.equal_addresses:,} of {proof.allocations:,}"
        facts.append(Fact("replay", f"{same} temporaries lie where {MODELS['xla']} puts them"))
    for one in fit.under:
        fits = "fits" if one.fits else f"fails: {size_text(one.peak_bytes - one.limit_bytes)} short"
        facts.append(Fact(f"under {chosen_size_text(one.limit_bytes)}", fits))
    return facts


def _lowest_text(fit: Fit) -> str:
    """Below what no setting helps."""
    if fit.failed is None:
        return ": below that nothing helps"
    return f", and a request of {size_text(fit.failed.request.bytes)} failed beside it"


def _exact_text(fit: Fit) -> str:
    if fit.exact:
        return "yes, for the recorded order of requests"
    return f"no, a bound: {fit.reason}"


def under_facts(one: UnderLimit, label: str) -> list[Fact]:
    """One limit: whether it fits, and the request that fails."""
    # The largest limit that fails is 1 MiB below one that does not.
    size = mib_text if label == DECIDED else chosen_size_text
    name = f"{label} {size(one.limit_bytes)}"
    if one.fails_at is None:
        fits = "may fit" if one.fits is None else "fits"
        return [
            Fact(
                name,
                f"{fits}: {size_text(one.peak_bytes)} in use at most, "
                f"{size_text(one.reserved_bytes)} reserved",
            )
        ]
    fits = "may fail" if one.fits is None else "fails"
    text = f"{fits} at allocation {one.fails_at.index + 1:,}: {request_text(one.fails_at)}"
    facts = [Fact(name, text)]
    if one.cause is not None:
        facts.append(Fact("because", _because(one)))
    return facts


def _because(one: UnderLimit) -> str:
    text = CAUSES[one.cause or "memory"]
    if one.cause == "memory":
        wanted = 0 if one.fails_at is None else one.fails_at.rounded_bytes
        return f"{text}: {size_text(one.live_bytes or 0)} and {size_text(wanted)}"
    free = f"{size_text(one.free_bytes or 0)} are free"
    largest = f"{size_text(one.largest_free_bytes or 0)} in the largest piece"
    live, used = size_text(one.live_bytes or 0), size_text(one.in_use_bytes or 0)
    return f"{text}; {free}, {largest}; {live} live in blocks of {used}"


def request_text(one: Request) -> str:
    """``8.6 MiB float [1500,1500] of MatMul, step 3, at 1.2 ms (train.py:12)``."""
    form = " ".join(part for part in (one.data_type, one.shape) if part)
    parts = [size_text(one.bytes) + (f" {form}" if form else "")]
    if one.op:
        parts[0] += f" of {cut_middle(one.op, _NAME)}"
    if one.step:
        parts.append(f"step {one.step}")
    if one.time_ps is not None:
        parts.append(f"at {time_text(one.time_ps)}")
    if one.source:
        parts.append(one.source)
    return ", ".join(parts)


def alternatives_table(fit: Fit) -> Table:
    """Settings, what fits under them, the best first."""
    rows: list[Row] = []
    now = fit.limits
    chosen = bool(fit.under)
    current = fit.under[0].fits if chosen else None
    whole = "" if now.is_whole else "searched in part"
    # Where a request failed nothing is safe: a column of that would be empty.
    safe_known = not now.needs
    here = [("as it is", now.smallest, now.safe_from, current, whole)]
    others = [
        (
            _settings_text(one.settings, fit.settings),
            one.smallest_limit_bytes,
            one.safe_from_bytes,
            one.fits,
            "" if one.is_whole else "searched in part",
        )
        for one in fit.alternatives
    ]
    for settings, smallest, safe, fits, remark in [*here, *others]:
        row = [settings, _limit_text(smallest), *([_limit_text(safe)] if safe_known else [])]
        rows.append([*row, *([_FITS[fits]] if chosen else []), remark])
    labels = ["settings", *(["fits at", "safe from"] if safe_known else ["needs at least"])]
    if chosen:
        labels.append(f"at {chosen_size_text(fit.under[0].limit_bytes)}")
    columns = [Column(label) for label in labels]
    return Table("Settings, the best first", [*columns, Column("", "remark")], rows)


_FITS = {True: "fits", False: "fails", None: "may fit"}


def _limit_text(size: int | None) -> str:
    return "not found" if size is None else mib_text(size)


def _settings_text(settings: Mapping[str, object], base: Mapping[str, object]) -> str:
    changed = {name: value for name, value in settings.items() if base.get(name) != value}
    return ", ".join(f"{name}={_value(value)}" for name, value in changed.items()) or "the same"


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value}"


def pins_table(fit: Fit) -> Table:
    """Segments with free memory that blocks in use hold."""
    rows: list[Row] = [
        [
            one.free_bytes,
            one.bytes,
            one.live_bytes,
            one.blocks,
            " ".join(part for part in (one.op or "(no op)", one.source) if part),
        ]
        for one in fit.pins
    ]
    return Table(
        "Free memory in segments that blocks in use hold",
        [
            Column("free", "bytes"),
            Column("segment", "bytes"),
            Column("in use", "bytes"),
            Column("blocks", "count"),
            Column("largest block", "name"),
        ],
        rows,
    )


def batch_facts(fit: Fit) -> list[Fact]:
    """Another batch size, which is an estimate."""
    result = []
    for one in fit.batches:
        if not one.wanted:
            result.append(Fact(f"batch of {one.recorded}", "no batch size fits"))
            continue
        safe = one.smallest_limit_bytes if fit.limits.needs else one.safe_from_bytes
        runs = "needs at least" if fit.limits.needs else "runs from"
        text = f"{runs} {'no limit found' if safe is None else mib_text(safe)}"
        if one.fits is not None and fit.under:
            limit = chosen_size_text(fit.under[0].limit_bytes)
            text += f", {_FITS[one.fits]} in {limit}"
        note = (
            f" (an estimate: {size_text(one.scaled_bytes)} of the peak scale with the recorded "
            f"batch of {one.recorded})"
        )
        result.append(Fact(f"batch of {one.wanted}", text, "", note))
    return result


def no_fit_facts(failed: Sequence[NoFit]) -> list[Fact]:
    """Allocators that cannot be replayed."""
    return [
        Fact(one.allocator or "(no name)", f"cannot be replayed: {one.reason}") for one in failed
    ]


def together_fact(together: dict[str, object]) -> Fact:
    """Several recordings of one program."""
    safe, smallest = together["safe_from_bytes"], together["smallest_limit_bytes"]
    if not isinstance(smallest, list):
        return Fact("together", "no limit was found that fits")
    recordings = counted(int(str(together["recordings"])), "recording")
    low = f"{smallest[0] >> 20:,}"
    span = (
        mib_text(smallest[0]) if smallest[0] == smallest[1] else f"{low} to {mib_text(smallest[1])}"
    )
    safe_from = f"all fit from {mib_text(safe[1])} on" if isinstance(safe, list) else _NEVER_SAFE
    return Fact("together", f"{recordings}: the smallest limit is {span}; {safe_from}")


def fit_document(
    profile: Profile, fits: Sequence[Fit], failed: Sequence[NoFit]
) -> dict[str, object]:
    """What ``peakline fit --json`` prints of one recording."""
    return answer_document(
        profile,
        {
            "allocators": [one.as_json() for one in fits],
            "not_replayed": [vars(one) for one in failed],
        },
    )
