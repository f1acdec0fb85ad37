"""What kinds of findings say of one allocator of which only some analyses are known."""

from types import ModuleType, SimpleNamespace
from typing import Any

from peakline.findings.context import MemoryContext
from peakline.findings.finding import Finding
from peakline.findings.kinds import cache, leak, one_pass, sawtooth, step_up
from peakline.memory.growth.grown import find_grown
from peakline.memory.growth.series import AllocatorGrowth
from peakline.memory.signatures import History


def found_by(*kinds: ModuleType, **parts: Any) -> list[Finding]:
    """The findings of ``kinds``; ``parts`` are fields of `MemoryDetails`."""
    context = MemoryContext((SimpleNamespace(**parts),))  # type: ignore[arg-type]
    return [finding for kind in kinds for finding in kind.find(context)]


def growth_findings(history: History, growth: AllocatorGrowth) -> list[Finding]:
    """The findings of growth."""
    grown = find_grown(history, growth)
    return found_by(leak, one_pass, cache, step_up, sawtooth, growth=growth, grown=grown)
