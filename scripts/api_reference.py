"""The page ``docs/api.md``: every public name of Python, from its docstring.

`PLACES` is the list of the modules that users may import: what else the package holds may change in
any release. ``tests/test_docs.py`` holds the examples of the pages to it.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

PLACES = (
    "peakline",
    "peakline.answers",
    "peakline.figures",
    "peakline.report",
    "peakline.capture",
    "peakline.record",
    "peakline.pytest",
    "peakline.schema",
)
MESSAGES = "peakline.schema"
"""Its names are messages of protocol buffers, far too many for a page."""
_INHERITED = frozenset(dir(object)) | {"mro"}
_LONG = 88


def names_of(place: str) -> list[str]:
    """The public names of a module, but for its messages, its version and names of types."""
    if place == MESSAGES:
        return []
    module: Any = import_module(place)
    names = (name for name in module.__all__ if not name.startswith("__"))
    return [name for name in names if _is_own(module, name)]


def _is_own(module: Any, name: str) -> bool:
    result = getattr(module, name)
    return inspect.isclass(result) or inspect.isroutine(result)


def members_of(result: type) -> list[str]:
    """The public members of a class: of a `Profile` those that ``dir`` lists of one."""
    from peakline.api import PUBLIC, Profile

    names = [name for name in dir(result) if not name.startswith("_") and name not in _INHERITED]
    if result is Profile:
        return [name for name in names if name in PUBLIC]
    if issubclass(result, BaseException):
        return []
    fields = {one.name for one in dataclasses.fields(result)} if _is_data(result) else set()
    own = set(dir(Sequence)) if issubclass(result, Sequence) else set()
    return [name for name in names if name not in fields | own]


def api_page(note: str) -> Iterator[str]:
    """The page."""
    yield "# Python"
    yield ""
    yield note
    yield ""
    yield "Every public name, with what it takes, gives and raises. Sizes are bytes and times"
    yield "picoseconds, both whole numbers, unless a name says otherwise. Every value prints as one"
    yield "short line and, but for plain parts of answers, shows as HTML in a"
    yield "[notebook](notebook.md). These modules are public:"
    yield ""
    for place in PLACES:
        yield f"- [`{place}`](#{place.replace('.', '')})"
    yield ""
    yield "All other modules of the package are private: they change without notice."
    for place in PLACES:
        yield from _place(place)


def _place(place: str) -> Iterator[str]:
    module: ModuleType = import_module(place)
    yield ""
    yield f"## {place}"
    yield ""
    yield from _text(module.__doc__)
    errors = []
    for name in sorted(names_of(place), key=str.lower):
        result = getattr(module, name)
        if inspect.isclass(result) and issubclass(result, BaseException):
            errors.append((name, result))
        else:
            yield from _entry(place, name, result)
    if errors:
        yield ""
        yield "### Errors"
        yield ""
        yield "| error | means | exit code of the verbs |"
        yield "|---|---|---:|"
        for name, result in errors:
            doc = " ".join((inspect.getdoc(result) or "").replace("``", "`").split())
            yield f"| `{name}` | {doc.replace('|', chr(92) + '|')} | {_exit_code(result)} |"


def _exit_code(result: Any) -> str:
    return str(getattr(result, "exit_code", ""))


def _entry(place: str, name: str, result: Any) -> Iterator[str]:
    yield ""
    yield f"### {place}.{name}"
    yield ""
    if not inspect.isclass(result):
        yield from _signature(name, result)
        yield from _text(inspect.getdoc(result))
        return
    if _is_made_by_users(result):
        yield from _signature(name, result)
    yield from _text(inspect.getdoc(result))
    if _is_data(result):
        fields = [
            one for one in dataclasses.fields(result) if one.repr and not one.name.startswith("_")
        ]
        yield ""
        yield "| field | type |"
        yield "|---|---|"
        for one in fields:
            kind = one.type if isinstance(one.type, str) else getattr(one.type, "__name__", "")
            yield f"| `{one.name}` | `{kind}` |".replace(" | None`", r" \| None`")
    for member in members_of(result):
        value = inspect.getattr_static(result, member)
        yield ""
        yield f"#### {name}.{member}"
        yield ""
        if callable(getattr(value, "__func__", value)) and not isinstance(value, property):
            yield from _signature(member, getattr(result, member), is_method=True)
        yield from _text(inspect.getdoc(getattr(result, member, value)) or inspect.getdoc(value))


def _is_made_by_users(result: type) -> bool:
    """Whether it is a class that users call."""
    return result.__name__ in {
        "CaptureRequest", "MemoryLog", "Repository", "Target", "Tensor", "WorkerLocks",
    }  # fmt: skip


def _is_data(result: type) -> bool:
    return dataclasses.is_dataclass(result)


def _signature(name: str, results: Any, *, is_method: bool = False) -> Iterator[str]:
    """The call, on one line where it has room."""
    try:
        signature = inspect.signature(results)
    except (TypeError, ValueError):
        return
    parameters = [*signature.parameters.values()]
    if is_method and parameters and parameters[0].name in {"self", "cls"}:
        parameters = parameters[1:]
    texts, last = [], None
    for one in parameters:
        if one.kind is one.KEYWORD_ONLY and last not in {one.KEYWORD_ONLY, one.VAR_POSITIONAL}:
            texts.append("*")
        if last is one.POSITIONAL_ONLY and one.kind is not one.POSITIONAL_ONLY:
            texts.insert(len(texts) - (texts[-1:] == ["*"]), "/")
        texts.append(_parameter(one))
        last = one.kind
    result = _annotation(signature.return_annotation)
    result = f" -> {result}" if result and not inspect.isclass(results) else ""
    call = f"{name}({', '.join(texts)}){result}"
    if len(call) > _LONG:
        call = f"{name}(\n" + "".join(f"    {text},\n" for text in texts) + f"){result}"
    yield "```text"
    yield call
    yield "```"
    yield ""


def _parameter(one: inspect.Parameter) -> str:
    stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
    kind = _annotation(one.annotation)
    text = f"{stars}{one.name}{f': {kind}' if kind else ''}"
    if one.default is inspect.Parameter.empty:
        return text
    default = re.sub(r"<factory>|<.*>", "...", repr(one.default)).replace("mappingproxy({})", "{}")
    return f"{text} = {default}" if kind else f"{text}={default}"


def _annotation(kind: Any) -> str:
    if kind is inspect.Signature.empty:
        return ""
    return kind if isinstance(kind, str) else getattr(kind, "__name__", str(kind))


def _text(doc: str | None) -> Iterator[str]:
    """A docstring as Markdown."""
    yield inspect.cleandoc(doc or "").replace("``", "`")
