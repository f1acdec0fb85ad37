"""A sentence of which parts lead to what they name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Phrase:
    """A part of a sentence. With a ``view`` of the page it leads there, to what ``params`` choose:
    parameters of the page's address.
    """

    text: str
    view: str = ""
    params: Mapping[str, str | int] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """``view`` and ``params`` only where it leads somewhere."""
        if not self.view:
            return {"text": self.text}
        return {"text": self.text, "view": self.view, "params": dict(self.params)}


@dataclass(frozen=True)
class Sentence:
    """``kind`` is ``failure``, ``peak``, ``need``, ``rounding``, ``saving``, ``steps``,
    ``slow_step``, ``first_step``, ``busy``, ``op``, ``printed`` or ``graph``. ``is_notable``:
    as long as there is one such, it is wrong to say that nothing stands out.
    """

    kind: str
    phrases: tuple[Phrase, ...]
    is_notable: bool = False

    @property
    def text(self) -> str:
        """The sentence as plain text, without a full stop."""
        return "".join(phrase.text for phrase in self.phrases)

    def as_json(self) -> dict[str, object]:
        """Its kind, its text, and its parts with where they lead."""
        return {
            "kind": self.kind,
            "text": self.text,
            "is_notable": self.is_notable,
            "phrases": [phrase.as_json() for phrase in self.phrases],
        }
