"""Tools by name: what every face calls to get the bytes of an answer.

A tool is one module, or one folder, of `peakline.tools` or `peakline.xprof` that has its name and
holds a `Tool` named ``TOOL``: the folders are the list. Where both rooms have one of a name, the
one of ``xprof`` answers ``compatible=xprof``. Modules are imported when their tool is wanted, so
that knowing the names costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peakline.errors import NotFoundError
from peakline.toolbox.answer_rows import ToolAnswer
from peakline.toolbox.parameter_schema import schema_of
from peakline.toolbox.parameters import Parameters, check_choice

if TYPE_CHECKING:
    from peakline.tables import Profile

_ROOMS = ("tools", "xprof")
_NO_TOOLS = frozenset({"rules"})
"""What ``xprof`` holds beside tools."""
_AT = "_at"
"""How the module of a tool whose name ends in ``@`` ends."""


@dataclass(frozen=True, repr=False)
class ToolResult(ToolAnswer):
    """What a tool returned: ``content`` in ``format`` (one of the tool's formats)."""

    content: bytes
    format: str


@dataclass(frozen=True)
class Tool:
    """A named question: typed parameters, output formats (the first is the default), an answer.

    ``parameters`` is the class that declares them; those that are ``local_only`` are not for
    remote callers. ``shows`` names the tables that the tool shows: it has something to show where
    all tables of one of the entries have rows and ``looks``, where there is one, finds what the
    tool is about: it reads next to nothing. An XSpace that names none of ``marks``, where there are
    some, among its kinds of events and stats has nothing to show. ``run`` takes the profile, an
    instance of ``parameters`` and a format. A tool that makes one answer of several hosts has
    ``partial`` and ``combine``: what one host contributes, a value that can be pickled, whatever
    the format; and the answer made of ``[(host, contribution)]``, the parameters and the format.
    Without ``run`` the answer about one host is made by these. With ``parts_of`` its contributions
    are those of the tool of that name, without parameters. ``format_of`` says in which format a
    question is answered, of a tool whose parameters decide it. With ``runtime_steps`` the parameter
    ``compatible=xprof`` means also the steps into which the runtime's profiler groups events.
    """

    name: str
    doc: str
    parameters: type[Parameters]
    formats: tuple[str, ...]
    shows: tuple[tuple[str, ...], ...]
    run: Callable[[Profile, Any, str], bytes] | None = None
    looks: Callable[[Profile], bool] | None = None
    marks: tuple[str, ...] = ()
    partial: Callable[[Profile, Any], Any] | None = None
    parts_of: str = ""
    combine: Callable[[Sequence[tuple[str, Any]], Any, str], bytes] | None = None
    format_of: Callable[[Any, str], str] | None = None
    runtime_steps: bool = False

    def answering(self, question: Any) -> Tool:
        """The implementation that answers a question: XProf's for ``compatible=xprof``, if it has
        one of its own.
        """
        rooms = _modules().get(self.name, ())
        return _tool_in(rooms[-1]) if len(rooms) > 1 and _is_compatible(question) else self

    def answer(self, profile: Profile, question: Any, format: str) -> bytes:  # noqa: A002
        """The answer about one host; raises NotFoundError where the question names another."""
        profile.check_host(getattr(question, "host", None))
        if self.run is not None:
            return self.run(self._seen(profile, question), question, format)
        if self.combine is None:
            raise TypeError(f"{self.name} makes no answer")
        result = self.contribution(profile, question)
        return self.combine([(profile.host, result)], question, format)

    def contribution(self, profile: Profile, question: Any) -> Any:
        """What one host gives to ``combine``; raises TypeError where there is none."""
        if self.parts_of:
            source, own = self.contributing(question)
            return source.contribution(profile, own)
        if self.partial is None:
            raise TypeError(f"{self.name} has no contributions")
        return self.partial(self._seen(profile, question), question)

    def contributing(self, question: Any) -> tuple[Tool, Any]:
        """The tool whose contributions ``combine`` takes, and the question to it."""
        if not self.parts_of:
            return self, question
        source = find_tool(self.parts_of)
        return source, source.validated({})

    def _seen(self, profile: Profile, question: Any) -> Profile:
        """The profile as ``run`` and ``partial`` take it for a question."""
        if not self.runtime_steps or not _is_compatible(question):
            return profile
        return profile.with_runtime_steps()

    def supports(self, profile: Profile) -> bool:
        """Whether ``profile`` has something to show; reads as little as possible."""
        if not any(all(map(profile.has_rows, tables)) for tables in self.shows):
            return False
        return self.looks is None or self.looks(profile)

    def may_support(self, tables: AbstractSet[str]) -> bool:
        """Whether a profile with these tables can have something to show."""
        return any(tables >= set(needed) for needed in self.shows)

    @property
    def local_only(self) -> frozenset[str]:
        """The parameters that are not for remote callers."""
        return frozenset(
            name for name, result in self.parameters.declared().items() if result.local_only
        )

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the parameters."""
        return schema_of(self.parameters)

    def checked_format(self, format: str | None) -> str:  # noqa: A002 (as in `run_tool`)
        """``format``, or the first one for None; raises UsageError for one the tool lacks."""
        chosen = self.formats[0] if format is None else format
        check_choice(chosen, self.formats, f"{self.name}: no format")
        return chosen

    def decided_format(self, question: Any, chosen: str) -> str:
        """The format in which a question is answered that is put for ``chosen``."""
        return chosen if self.format_of is None else self.format_of(question, chosen)

    def validated(self, parameters: Mapping[str, object]) -> Parameters:
        """An instance of ``parameters``; raises UsageError that names what is wrong."""
        return self.parameters.read(parameters, f"{self.name}: ")


def tool_names() -> list[str]:
    """The names of all tools, sorted."""
    return sorted(_modules())


@cache
def _modules() -> dict[str, list[str]]:
    """The modules of every tool, by the tool's name: ours first, where ``xprof`` has one too."""
    here = Path(__file__).parents[1]
    result: dict[str, list[str]] = {}
    for room in _ROOMS:
        for entry in (here / room).iterdir():
            name = entry.name.removesuffix(".py")
            if name.isidentifier() and not name.startswith("_") and name not in _NO_TOOLS:
                tool = f"{name.removesuffix(_AT)}@" if name.endswith(_AT) else name
                result.setdefault(tool, []).append(f"peakline.{room}.{name}")
    return result


def find_tool(name: str) -> Tool:
    """The tool called ``name``; raises NotFoundError that names the known ones."""
    if not name:
        raise NotFoundError(f"no tool named; there is: {', '.join(tool_names())}")
    check_choice(name, tool_names(), "no tool", NotFoundError)
    return _tool_in(_modules()[name][0])


def _tool_in(module: str) -> Tool:
    tool: Tool = import_module(module).TOOL
    return tool


def _is_compatible(question: Any) -> bool:
    return getattr(question, "compatible", "") == "xprof"


def available_tools(profile: Profile) -> list[str]:
    """The names of the tools that have something to show for ``profile``, sorted."""
    return [name for name in tool_names() if find_tool(name).supports(profile)]


def run_tool(
    profile: Profile,
    name: str,
    parameters: Mapping[str, object] | None = None,
    format: str | None = None,  # noqa: A002 (the word of the command line and the RPC)
) -> ToolResult:
    """Run a tool; ``format`` None means the tool's first.

    Raises NotFoundError for an unknown tool, or for a host or allocator the profile does not
    have; UsageError for a bad parameter or format; InputError when the profile cannot be read.
    """
    tool = find_tool(name)
    chosen = tool.checked_format(format)
    question = tool.validated(parameters or {})
    chosen = tool.decided_format(question, chosen)
    return ToolResult(tool.answering(question).answer(profile, question, chosen), chosen)
