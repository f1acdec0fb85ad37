"""What runners of continuous integration, Markdown, HTML and spreadsheets obey in a text.

Plain readers of each grammar, from what each publishes, which share no code with Peakline. They
are stricter than the programs: what may be a command to any version of one is a command.
"""

import csv
import io
import re
import unicodedata
from html.parser import HTMLParser

from markdown_it import MarkdownIt

ENVIRONMENTS = {
    "any": {"CI": "true"},
    "github": {"GITHUB_ACTIONS": "true"},
    "azure": {"TF_BUILD": "True"},
    "teamcity": {"TEAMCITY_VERSION": "2025.07"},
    "gitlab": {"GITLAB_CI": "true"},
    "buildkite": {"BUILDKITE": "true"},
    "travis": {"TRAVIS": "true"},
    "jenkins": {"JENKINS_URL": "https://ci.example/"},
}
"""The variables by which a job knows where it runs."""


def _lines(text: str) -> list[str]:
    """Every line that some reader may see: they differ in what ends one."""
    return re.split("\r\n|[\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]", text)


def _visible(line: str) -> str:
    """The line as a comparison of .NET sees it, for which some characters are not there."""
    line = re.sub(r"\x1b\[[0-9;]*m", "", line)
    return "".join(
        one
        for one in line
        if unicodedata.category(one) not in {"Cf", "Mn", "Me"}
        and not (unicodedata.category(one) == "Cc" and one not in "\t\x1f")
        and one not in "\u115f\u1160\u3164\uffa0"
    )


def commands(text: str) -> list[str]:
    """Every command to a runner that stands in what a job printed."""
    result = []
    for line in map(_visible, _lines(text)):
        begin = line.lstrip()
        # GitHub's ::name::, its first form, Azure's and TeamCity's, Buildkite's groups, Travis.
        anywhere = re.search(r"##\w*\[|travis_(fold|time):", line)
        if anywhere or re.match(r"::|(---|\+\+\+|~~~|\^\^\^)\s", begin):
            result.append(line)
    # GitLab: a marker ends where the terminal's line is erased. Buildkite: links, images, times.
    result += re.findall(r"section_(?:start|end):\d+:[^\n]*?\r?\x1b\[0?K", text)
    result += re.findall(r"\x1b[\]_P^X][^\n]*", text)
    return result


def commands_in_bytes(content: bytes) -> list[str]:
    """Every whole command in what is no text, of which a part may look like one by chance."""
    result = []
    for line in map(_visible, re.split("[\r\n]+", content.decode("utf-8", "replace"))):
        is_github = re.match(r"::[A-Za-z-]+[^:]*::", line.lstrip())
        if is_github or re.search(r"##(\[|vso\[|teamcity\[)[A-Za-z.-]{3,}[^\]]*\]", line):
            result.append(line)
    text = content.decode("latin-1")
    return result + re.findall(r"section_(?:start|end):\d+:|\x1b_bk;|\x1b\]133\d;", text)


def controls(text: str) -> list[str]:
    """Every character in what is printed that moves a cursor, turns or hides text."""
    return [
        one
        for one in text
        if one != "\n" and unicodedata.category(one) in {"Cc", "Cf", "Cs", "Zl", "Zp"}
    ]


_ALLOWED_IN_MARKDOWN = re.compile(r"</?(details|summary|code)>|&#\d+;")


def obeyed_in_markdown(text: str) -> list[str]:
    """Links, images, HTML and mentions that a reader of GitHub's Markdown would make of it."""
    result = []
    for block in MarkdownIt("gfm-like", {"linkify": False}).parse(text):
        codes = 0
        for token in [block, *(block.children or ())]:
            if token.type in {"link_open", "image"}:
                result.append(str(token.attrs))
            elif token.type in {"html_inline", "html_block"}:
                # Within code nobody is mentioned.
                codes += token.content.count("<code>") - token.content.count("</code>")
                rest = _ALLOWED_IN_MARKDOWN.sub("", token.content)
                result += re.findall("<[^>]*>?", rest)
            elif token.type in {"text", "text_special"} and codes <= 0:
                result += re.findall(r"(?<!\w)@\w+|(?<!\w)#\d+|https?://\S+", token.content)
    return result


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.obeyed: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in {"script", "iframe", "object", "embed", "base", "form", "link", "img", "meta"}:
            what = dict(attrs)
            if not (tag == "meta" and {"charset", "name", "http-equiv"} & set(what)):
                self.obeyed.append(f"<{tag} {attrs}>")
        for name, value in attrs:
            if name.startswith("on") or re.match(
                r"\s*(javascript|data):", value or "", re.IGNORECASE
            ):
                self.obeyed.append(f"{tag} {name}={value}")

    handle_startendtag = handle_starttag


def obeyed_in_html(text: str) -> list[str]:
    """Whatever runs, loads or leaves the page in HTML that should only show."""
    page = _Page()
    page.feed(text)
    return page.obeyed


def formulas(text: str) -> list[str]:
    """The cells of CSV that a spreadsheet computes; numbers are none."""
    cells = [cell for row in csv.reader(io.StringIO(text, newline=""), strict=True) for cell in row]
    number = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|nan)")
    return [
        one
        for one in cells
        if one.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) and not number.fullmatch(one)
    ]


def links_in_sarif(text: str) -> list[str]:
    """The links in a message of SARIF (3.11.6): brackets without a backslash, then a place."""
    return re.findall(r"(?<!\\)(?:\\\\)*\[(?:[^\]\\]|\\.)*\]\([^)]*\)", text)
