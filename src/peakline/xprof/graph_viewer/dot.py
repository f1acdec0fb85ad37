"""A program drawn as XLA draws it for Graphviz (``HloDotDumper`` of ``hlo_graph_dumper.cc``).

XLA calls nodes by their addresses; here they are numbered. The rules of the style sheet, which XLA
has in the order of a hash table, are in the order of the edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peakline.errors import InputError
from peakline.hlo.messages import ModuleParts
from peakline.hlo.modules import category_of
from peakline.hlo.printing import PrintOptions
from peakline.hlo.printing.module import printer_of
from peakline.hlo.program import kind_of
from peakline.xprof.graph_viewer import labels
from peakline.xprof.graph_viewer.labels import (
    applied,
    element,
    fed_constant,
    is_constant,
    is_small,
    producer,
    sane,
    title,
    trivial,
)
from peakline.xprof.graph_viewer.linked import (
    HIGHLIGHTED,
    NO_OPERANDS,
    SOME_OPERANDS,
    SOME_USERS,
    Shown,
)

if TYPE_CHECKING:
    from peakline.schema import HloModuleProto
    from peakline.xprof.graph_viewer.linked import Computation, Instruction


@dataclass(frozen=True)
class Colors:
    """What a node is drawn with."""

    fill: str
    stroke: str
    font: str = "black"
    style: str = "filled"

    def text(self) -> str:
        """As attributes of a node."""
        return (
            f'style="{self.style}", fontcolor="{self.font}", color="{self.stroke}", '
            f'fillcolor="{self.fill}"'
        )


BROWN = Colors("#bcaaa4", "#8c7b75")
DARK_RED = Colors("#b71c1c", "#7f0000", "white")
DASHED = Colors("white", "#757575", "#757575", "filled,dashed")
_WHITE = Colors("white", "#9e9e9e")
_YELLOW = Colors("#fff9c4", "#cbc693")
_GREEN = Colors("#c8e6c9", "#97b498")
_DARK_BLUE = Colors("#1565c0", "#003c8f", "white")
_PURPLE = Colors("#e1bee7", "#af8eb5")
_GRAY = Colors("#cfd8dc", "#9ea7aa")
_DARK_GREEN = Colors("#2e7d32", "#005005", "white")
_ORANGE = Colors("#ffe0b2", "#cbae82")
_DARK_ORANGE = Colors("#ffb74d", "#c88719")

_OPCODES = {
    _YELLOW: "broadcast dynamic-update-slice",
    _GREEN: "concatenate dynamic-slice reshape dynamic-reshape reverse transpose copy copy-start "
    "copy-done",
    _DARK_BLUE: "convolution dot ragged-dot scaled-dot fft triangular-solve cholesky",
    _PURPLE: "batch-norm-grad batch-norm-inference batch-norm-training reduce reduce-window scan "
    "scatter select-and-scatter gather",
    _GRAY: "domain fusion map get-dimension-size set-dimension-size",
    BROWN: "all-gather all-gather-start all-gather-done all-reduce reduce-scatter all-reduce-start "
    "all-reduce-done all-to-all collective-broadcast collective-permute collective-permute-start "
    "collective-permute-done infeed outfeed partition-id ragged-all-to-all recv recv-done send "
    "send-done replica-id",
    _DARK_GREEN: "call conditional custom-call while",
}
_BY_OPCODE = {opcode: color for color, names in _OPCODES.items() for opcode in names.split()}
_ASYNC = ("async-start", "async-update", "async-done")


def parameter_color(made: Instruction) -> Colors:
    """That of parameters: darker where they are large."""
    return _ORANGE if is_small(made) else _DARK_ORANGE


def color_of(made: Instruction) -> Colors:
    """That of an instruction."""
    for _ in range(len(made.parent.made)):
        if made.opcode not in _ASYNC:
            break
        made = made.calls[0].root if made.opcode == "async-start" else made.operands[0]
    if made.opcode == "parameter":
        return parameter_color(made)
    if made.opcode == "bitcast":
        return _GREEN if made.fused_by is not None else _WHITE
    return _BY_OPCODE.get(made.opcode, _WHITE)


_BLUE, _RED = "%231976d2", "%23d32f2f"
_MOST_EDGES, _MOST_OPERANDS, _MOST_USERS_SHOWN, _LONGEST = 64, 32, 3, 128
_DEEPEST = 100
_CUT = ("replica_groups=", "source_target_pairs=", "control-predecessors=")


class Drawing:
    """One graph: a computation, or what is around an instruction."""

    def __init__(
        self,
        module: HloModuleProto,
        computation: Computation,
        shown: Shown,
        label: str,
        *,
        with_config: bool,
        with_fusions: bool,
    ) -> None:
        self._module, self._computation, self._shown = module, computation, shown
        self._label = label
        self._with_config, self._with_fusions = with_config, with_fusions
        self._printer = printer_of(ModuleParts.of(module), PrintOptions(metadata=True))
        self._nodes: dict[Instruction, int] = {}
        self._root = 0
        self._next = 1
        self._edges: list[tuple[Instruction, Instruction | None]] = []
        self._count: dict[tuple[Instruction, Instruction], int] = {}
        self._lines: list[str] = []
        self._clusters: dict[Computation, int] = {}
        self._open: list[Computation] = []
        self._ids: dict[object, int] = {}

    def text(self) -> str:
        """The whole of it."""
        body = self._inside(self._computation) + self._root_tag()
        return f"{self._header()}{body}{chr(10).join(self._lines)}\n}}"

    def _id(self, one: object) -> int:
        return self._ids.setdefault(one, len(self._ids) + 1)

    def _cluster(self, one: Computation) -> str:
        return f"cluster_{self._id(one)}"

    def _header(self) -> str:
        one = self._computation
        label = f"{self._label}<br/>Computation {one.name}"
        if one.fusion is not None:
            label += f" (in fusion instruction {one.fusion.name})"
        elif one.proto.id == self._module.entry_computation_id:
            label += "<br/>ENTRY computation"
        elif one.callers:
            callers = ", ".join(caller.name for caller in one.callers)
            label += f"<br/>Caller instructions: {callers}"
        rules = "\n".join(
            rule for number in range(len(self._edges)) for rule in self._rules(number)
        )
        return _HEAD.replace("$LABEL", label).replace("$RULES", rules)

    def _rules(self, number: int) -> list[str]:
        """What is coloured while the pointer is on one of the ends of an edge."""
        first, second = self._edges[number]
        ends = [("node", self._nodes[first], _BLUE)]
        ends.append(("node", self._nodes[second] if second is not None else self._root, _RED))
        if second is not None:
            if first.fused_by is not None and first.parent.root is first:
                ends.append(("clust", self._clusters[first.parent], _BLUE))
            if second.fused_by is not None and second.opcode == "parameter":
                ends.append(("clust", self._clusters[second.parent], _RED))
        rules = []
        for kind, place, color in ends:
            at = f"  %23{kind}{place}:hover ~ %23edge{number + 1}"
            width = "stroke-width: .2em; }"
            rules.append(
                f"{at} text {{ fill: {color}; }}\n{at} path {{ stroke: {color}; {width}\n"
                f"{at} polygon {{ fill: {color}; stroke: {color}; {width}\n"
            )
        return rules

    def _shows_inside(self, one: Computation) -> bool:
        if one.fusion is not None:
            state = self._shown.state(one.fusion)
            if not self._shown.shows(one.fusion) or state in (SOME_OPERANDS, NO_OPERANDS):
                return False
            if not self._with_fusions:
                return False
        elif trivial(one) is not None:
            return False
        return any(map(self._shown.shows, one.made))

    def _is_opened(self, made: Instruction) -> bool:
        return made.opcode == "fusion" and self._shows_inside(made.calls[0])

    def _inside(self, one: Computation) -> str:
        """The nodes of a computation, with those of what it calls; one level for each call."""
        parts = []
        for made in one.made:
            if self._shown.shows(made):
                parts += [
                    self._subgraph(callee, made)
                    for callee in made.calls
                    if self._shows_inside(callee)
                ]
                parts.append(self._node(made))
        return "".join(parts)

    def _subgraph(self, one: Computation, caller: Instruction) -> str:
        if caller.opcode != "fusion":
            first = self._end(one.root)
            self._edges.append((first, caller))
            self._lines.append(
                f'{self._id(first)} -> {self._id(caller)} [ltail="{self._cluster(one)}", '
                f'style="dashed" tooltip="{one.name} -> {caller.name}"];'
            )
        if one in self._clusters:
            return ""
        if len(self._open) >= _DEEPEST:
            raise InputError(f"calls of the program are more than {_DEEPEST} deep")
        self._clusters[one] = len(self._clusters) + 1
        label, style = self._cluster_label(one, caller)
        self._open.append(one)
        name, body = self._cluster(one), self._inside(one)
        self._open.pop()
        return (
            f"subgraph {name} {{\n{style}\nlabel = <{label}>;\nlabelloc = t;\n"
            f'tooltip = " ";\n{body}\n}}  // {name}\n\n'
        )

    def _cluster_label(self, one: Computation, caller: Instruction) -> tuple[str, str]:
        if caller.opcode != "fusion":
            label = f"Subcomputation for <b>{sane(caller.name)}</b><br/>{sane(one.name)}"
            return label, "style=rounded; color=black;"
        category = sane(category_of(caller.proto, {}))
        label = f"Fused expression for <b>{sane(caller.name)}</b><br/>{category}"
        more = self._more(caller), labels.config_text(caller, is_shown=self._with_config)
        label += "".join(f"<br/>{text}" for text in more if text)
        is_chosen = self._shown.state(caller) == HIGHLIGHTED
        fill, stroke = ("#ffcdd2", "#b71c1c") if is_chosen else ("#f5f5f5", "#c2c2c2")
        return label, f'style="rounded,filled,bold"; fillcolor="{fill}"; color="{stroke};"'

    def _root_tag(self) -> str:
        first = self._end(self._computation.root)
        if not self._shown.shows(first) or is_constant(first):
            return ""
        self._root = self._next
        self._next += 1
        self._edges.append((first, None))
        name = self._cluster(self._computation)
        self._lines.append(f'{self._id(first)} -> {name} [tooltip=" "];')
        return f'{name} [label=<ROOT>, shape=circle, tooltip=" ", {BROWN.text()}];\n'

    def _end(self, made: Instruction) -> Instruction:
        """The node at which an edge to or from an instruction ends."""
        if made.opcode == "get-tuple-element":
            made = made.operands[0]
        while self._is_opened(made):
            made = made.calls[0].root
        return made

    def _is_merged(self, made: Instruction) -> bool:
        """Whether an instruction is only written into those that use it."""
        if made.opcode == "get-tuple-element" and made is not made.parent.root:
            return True
        if made.opcode != "parameter":
            return False
        if fed_constant(made) is not None:
            return True
        users = [user for user in made.users if self._shown.shows(user)]
        return (
            kind_of(made.proto.shape) == "tuple"
            and made.fused_by is None
            and len(users) > _MOST_USERS_SHOWN
            and all(user.opcode == "get-tuple-element" for user in users)
        )

    def _node(self, made: Instruction) -> str:
        is_root = made is made.parent.root
        if (is_constant(made) and not is_root) or self._is_merged(made) or self._is_opened(made):
            return ""
        self._nodes[made] = self._next
        self._next += 1
        shape = "ellipse" if made.opcode == "while" else "rect"
        parts = [
            title(made),
            applied(made),
            self._more(made),
            self._inlined(made),
            labels.config_text(made, is_shown=self._with_config),
        ]
        self._incoming(made)
        state, colors = self._shown.state(made), self._colors(made)
        if state in (SOME_OPERANDS, NO_OPERANDS, SOME_USERS):
            colors = DASHED
        if state == HIGHLIGHTED:
            shape, colors = "diamond", DARK_RED
        label = "<br/>".join(filter(None, parts))
        hint = labels.tooltip(made, self._module)
        look = f'shape={shape}, tooltip="{hint}", {colors.text()}'
        return f"{self._id(made)} [label=<{label}>, {look}];\n"

    def _colors(self, made: Instruction) -> Colors:
        is_fed = any(
            operand.opcode == "parameter"
            and self._is_merged(operand)
            and fed_constant(operand) is None
            for operand in made.operands
        )
        return parameter_color(made) if is_fed else color_of(made)

    def _more(self, made: Instruction) -> str:
        lines = []
        callers = made.parent.callers
        if made.opcode == "parameter" and len(callers) == 1 and callers[0].opcode == "call":
            source = producer(callers[0].operands[made.proto.parameter_number])
            is_entry = source.parent.proto.id == self._module.entry_computation_id
            where = "the ENTRY computation" if is_entry else sane(source.parent.name)
            lines.append(f"<i>from {sane(source.name)} in {where}</i>")
        self._printer.enter(made.parent.proto)
        for line in self._printer.extras(made.proto, with_calls=False):
            if line.startswith(_CUT) and len(line.encode()) > _LONGEST:
                lines.append(sane(f"{line[: _LONGEST - 3]}..."))
            elif line.startswith("feature_group_count="):
                lines.append(f"<b>{sane(line)}</b>")
            else:
                lines.append(sane(line))
        if not self._is_opened(made):
            lines.append(labels.shape_line(made))
        return "<br/>".join(lines)

    def _inlined(self, made: Instruction) -> str:
        lines: list[str] = []
        for place, operand in enumerate(made.operands):
            text = self._operand(operand)
            if text is not None:
                which = f"operand {place}" if len(made.operands) > 1 else "operand"
                lines.append(f"<b>{which}</b> = {text}")
            if len(lines) == _MOST_OPERANDS and place < len(made.operands) - 1:
                lines.append("...")
                break
        fusion = made.fused_by
        if made.opcode == "parameter" and fusion is not None:
            source = fusion.operands[made.proto.parameter_number]
            if source.opcode == "get-tuple-element":
                lines.append(element(source))
        return "<br/>".join(lines)

    def _operand(self, operand: Instruction) -> str | None:
        if operand.opcode == "constant":
            return labels.constant_text(operand, operand.proto.shape)
        if is_constant(operand):
            return labels.constant_text(operand.operands[0], operand.proto.shape)
        if not self._is_merged(operand):
            return None
        if operand.opcode == "get-tuple-element":
            return element(operand)
        constant = fed_constant(operand)
        if constant is not None:
            return labels.constant_text(constant, constant.proto.shape)
        return f"Parameter {operand.proto.parameter_number}"

    def _incoming(self, made: Instruction) -> None:
        fusion = made.fused_by
        if made.opcode == "parameter" and fusion is not None:
            if made.parent is not self._computation:
                self._edge(fusion.operands[made.proto.parameter_number], made, "")
            return
        several = len(made.operands) > 1
        for place, operand in enumerate(made.operands):
            more = f' headlabel="{place}", labeldistance=2' if several else ""
            self._edge(operand, made, more)
        for first in made.controls:
            self._edge(first, made, 'style="dotted" color="gray" label="ctrl"')

    def _edge(self, given: Instruction, made: Instruction, more: str) -> None:
        if self._count.get((given, made), 0) > _MOST_EDGES:
            return
        first = self._end(given)
        if not self._shown.shows(first) or is_constant(first) or self._is_merged(first):
            return
        self._edges.append((first, made))
        self._count[first, made] = self._count.get((first, made), 0) + 1
        head = "empty" if is_small(first) else "normal"
        self._lines.append(
            f"{self._id(first)} -> {self._id(made)} [arrowhead={head} "
            f'tooltip="{first.name} -> {made.name}" {more}];'
        )


_HEAD = """\
digraph G {
rankdir = TB;
compound = true;
label = <<b>$LABEL</b>>;
labelloc = t;
// Disable the tooltip.  Interestingly, "" doesn't work!
tooltip = " ";
// DOT graphs accept a stylesheet as a URI.  So naturally, an inline
// stylesheet is a data URI!
stylesheet=<
  data:text/css,
  @import url(https://fonts.googleapis.com/css?family=Roboto:400,700);
  svg text {
    font-family: 'Roboto';
    font-size: 12px;
  }

  $RULES
>

"""
