"""What a pair of programs declares: the planted fault, and what a right diagnosis says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Pair:
    """A program with one planted fault, and its twin without it.

    ``fault`` says in one phrase what is planted. A finding is right when ``kind``, a pattern, is
    found in its kind, and ``culprit`` in what it says (title, evidence, first rows). ``line`` is
    the pattern of the function, or the file and line, where the profile records Python frames;
    empty where it does not. ``savings`` is the pattern of the kinds of ranked savings that help
    against the fault. ``magnitude`` is a number that the finding must state (bytes, steps) within
    ``tolerance``, a share of it. ``faulty_allowed`` and ``twin_allowed`` are patterns of further
    findings (``kind: title``) that are true of the faulty program and of its twin. ``environment``
    is set for the process that is recorded, before it imports anything. ``is_held_out`` pairs are
    scored only at the end of building rules. ``round`` is above 1 for pairs that were written after
    the rules, by what is above alone, to measure the rules once more.
    """

    fault: str
    about: Literal["memory", "time"]
    kind: str
    culprit: str
    line: str = ""
    savings: str = ""
    magnitude: float | None = None
    tolerance: float = 0.1
    faulty_allowed: tuple[str, ...] = ()
    twin_allowed: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    is_held_out: bool = True
    round: int = 1
