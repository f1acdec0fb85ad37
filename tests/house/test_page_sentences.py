"""What is said of an answer stands in `peakline.document`: modules of the page word controls."""

import re
from pathlib import Path

import peakline

JS = Path(peakline.__file__).parent / "web" / "static" / "js"
SENTENCE = 4
"""So many words in a row say something."""
CONTROLS = re.compile(
    # What a control is called, or does, and what is announced when it was used.
    r"^(aria-label|title|placeholder|help|label)$|^(HELP|KEYS)\b"
    r'|(^|\.)(h"(button|a|label|option|summary|h[234])"|setAttribute"aria-label"|announce)\($'
    # What is being loaded, and what went wrong with a request.
    r"|^(COMING|WAITING)\b|(^|\.)(loading|warn|\w*Error)\($"
    # No words: selectors of elements.
    r"|\.(closest|querySelector)\($"
)
MODULES = {
    "core/copy.js": "a dialog",
    "core/expression.js": "mistakes in an expression, where it is typed",
    "core/finding.js": "links to other views",
    "core/states.js": "requests that failed, and what to do then",
    "core/wording.js": "what is in document/wording.py",
    "shell/help.js": "keys",
    "shell/palette.js": "a search that finds nothing",
    "shell/places.js": "links to other views",
    "shell/router.js": "addresses that lead nowhere",
    "views/compare/pickers.js": "a dialog",
    "views/memory/modes.js": "what switches do",
    "views/memory/places.js": "buttons",
    "views/memory/state.js": "choices of what is drawn",
    "views/sessions/capture.js": "the form of a capture",
    "views/sessions/details.js": "buttons of the list",
    "views/sessions/drop.js": "where a file is dropped",
    "views/sessions/index.js": "the bar above the list",
    "views/sessions/nothing.js": "how to begin, with an empty list",
    "views/sessions/recording.js": "how a capture goes on",
    "views/sessions/upload.js": "the form of an upload",
    "views/sql/editor.js": "the editor",
    "views/sql/examples.js": "queries to begin with",
    "views/sql/results.js": "what to do about a query's rows",
    "views/sql/tables.js": "the search of tables",
    "views/steps/heat.js": "names of groups of buttons",
    "views/timeline/bar.js": "what switches do",
    "views/timeline/counters.js": "requests that failed",
    "views/timeline/arrows.js": "requests that failed",
    "views/timeline/flags.js": "how flags are set",
    "views/timeline/labels.js": "a menu",
    "views/timeline/taking.js": "selectors, and a command",
}
"""Modules in which sentences stand elsewhere too, and what these are about."""

TOKEN = re.compile(
    r"(?P<skip>\s+|//[^\n]*|/\*.*?\*/)"
    r"""|(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
    r"|(?P<regex>/(?:[^/\\\n\[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*)"
    r"|(?P<word>[\w$#.?]+)|(?P<other>.)",
    re.DOTALL,
)


def literals(text):
    """The strings of a module, ``"{} of {}"`` for a template, those that ``+`` joins as one; each
    with what it stands in: the key, the name, and the calls around it, the nearest first.
    """
    place, last, before, key = 0, "", "", ""
    open_parts, result = [], []

    def around():
        calls = [part[1] + "(" for part in reversed(open_parts) if part[0] == "("]
        names = [part[2] for part in reversed(open_parts) if part[2]]
        return [key, *calls[:1], *names]

    while place < len(text):
        if open_parts and open_parts[-1][0] == "`":
            part = open_parts[-1]
            if text.startswith("${", place):
                part[3].append("{}")
                open_parts.append(["{", "", ""])
                place, last = place + 2, "{"
            elif text[place] == "`":
                open_parts.pop()
                place, last = place + 1, "`"
                result.append([part[1], place, "".join(part[3]), part[4]])
            else:
                part[3].append(text[place])
                place += 1 + (text[place] == "\\")
            continue
        match = TOKEN.match(text, place)
        kind, piece = match.lastgroup, match[0]
        if kind == "regex" and last and last not in "(,=:[!&|?{};" and last != "return":
            kind, piece = "other", "/"
        start, place = place, place + len(piece)
        if kind == "skip":
            continue
        if kind == "string":
            result.append([start, place, piece[1:-1], around()])
            if open_parts and last == "(":
                open_parts[-1][1] += piece
            before, last = piece[1:-1], '"'
            continue
        if piece == "`":
            open_parts.append(["`", start, "", [], around()])
            continue
        if piece in {"(", "[", "{"}:
            open_parts.append([piece, before if kind != "regex" and last == before else "", key])
            key = ""
        elif piece in {")", "]", "}"} and open_parts:
            key = open_parts.pop()[2]
        elif piece in {":", "="}:
            key = before
        elif piece in {",", ";"}:
            key = ""
        before = last = piece
    result.sort(key=lambda one: one[1])
    joined = []
    for one in result:
        if joined and re.fullmatch(r"\s*\+\s*", text[joined[-1][1] : one[0]]):
            joined[-1] = [joined[-1][0], one[1], joined[-1][2] + one[2], joined[-1][3]]
        else:
            joined.append(one)
    return [(one[2], one[3]) for one in joined]


def sentences(text):
    """The texts of a module that are neither a control's nor a query."""
    result = []
    for said, around in literals(text):
        words = [one for one in said.split() if re.fullmatch(r"\W?[A-Za-z][a-z']*[^\w\s]*", one)]
        is_query = re.match(r"\s*(select|with|where|using|name in)\b", said)
        if len(words) >= SENTENCE and not is_query and not any(map(CONTROLS.search, around)):
            result.append(said)
    return result


def test_sentences_of_a_module_are_found():
    assert sentences('h("p", {}, `all of ${a ? "it" : "them"} was `\n + "freed by B")') == [
        "all of {} was freed by B"
    ]
    assert sentences("x.test(/^all of it was \"/) && 'what is in it'") == ["what is in it"]
    assert sentences('const A = { one: "what it is of" }; // one two three four') == [
        "what it is of"
    ]
    assert sentences('h("p", { title: "what it is of" }, h("a", {}, "go to the end"))') == []
    assert sentences('const HELP = [["a", "go to the end"]]; loading("Adding up the ops")') == []


def test_what_is_said_of_answers_stands_in_documents():
    modules = {path.relative_to(JS).as_posix(): path for path in JS.rglob("*.js")}
    result = {name: sentences(path.read_text("utf-8")) for name, path in modules.items()}
    assert {name: said for name, said in result.items() if said and name not in MODULES} == {}
    assert [name for name in MODULES if not result[name]] == []
