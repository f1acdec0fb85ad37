"""What is said first of a file that holds graphs and nothing that ran."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.findings.headline.sentence import Phrase, Sentence
from peakline.text import counted, cut_middle

if TYPE_CHECKING:
    from peakline.tables import Profile

_NAME = 60
_KINDS = {"graph_def": "GraphDef", "meta_graph": "MetaGraph", "hlo": "compiled program"}
_RAN = ("events", "op_runs")


def graph_headline(profile: Profile) -> tuple[Sentence, ...]:
    """How large its largest graph is. Empty where events or executions are recorded, or no graph.

    Raises InputError when the profile cannot be read.
    """
    if "graphs" not in profile.tables or any(profile.has_rows(name) for name in _RAN):
        return ()
    graphs = profile.columns("graphs")
    if not graphs.rows:
        return ()
    every = list(graphs.each("graph", "kind", "nodes", "functions"))
    name, kind, nodes, functions = max(every, key=lambda one: int(one[2]))
    params: dict[str, str | int] = {"graph": name} if name and len(every) > 1 else {}
    title = " ".join(part for part in (_KINDS.get(kind, kind), cut_middle(name, _NAME)) if part)
    inside = "computation" if kind == "hlo" else "function"
    size = counted(nodes, "instruction" if kind == "hlo" else "node")
    more = f" and {counted(functions, inside)}" if functions else ""
    phrases = [Phrase(f"{title} of "), Phrase(f"{size}{more}", "graph", params)]
    if len(every) > 1:
        phrases.append(Phrase(f", the largest of {counted(len(every), 'graph')}"))
    return (Sentence("graph", tuple(phrases)),)
