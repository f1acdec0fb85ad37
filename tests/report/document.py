"""A report read back with the standard library's parser, and checked for being well formed."""

import base64
import hashlib
import io
import re
from html.parser import HTMLParser

from peakline.report import write_job_report, write_report

_VOID = {"br", "wbr", "meta", "col", "hr", "link"}


class Document(HTMLParser):
    """The elements of a page with their attributes and text, in order.

    Anything that is opened and not closed, closed and not opened, or nested wrongly is an
    AssertionError.
    """

    def __init__(self, content: bytes) -> None:
        super().__init__(convert_charrefs=True)
        self.source = content.decode("utf-8")
        self.elements: list[tuple[str, dict[str, str | None], list[str]]] = []
        self._open: list[int] = []
        self.feed(self.source)
        self.close()
        assert self._open == [], [self.elements[n][0] for n in self._open]

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), attrs
        self.elements.append((tag, dict(attrs), []))
        if tag not in _VOID:
            self._open.append(len(self.elements) - 1)

    def handle_endtag(self, tag):
        assert self.elements[self._open.pop()][0] == tag, self.getpos()

    def handle_data(self, data):
        for number in self._open:
            self.elements[number][2].append(data)

    def all(self, name, **attributes):
        """Attributes and text of the elements ``name`` that have these attributes."""
        return [
            (attrs, " ".join("".join(text).split()))
            for tag, attrs, text in self.elements
            if tag == name and all(attrs.get(key) == value for key, value in attributes.items())
        ]

    def texts(self, name, **attributes):
        return [text for _, text in self.all(name, **attributes)]

    @property
    def text(self):
        """The text that a person reads, without scripts and styles."""
        (body,) = self.texts("main")
        return body

    @property
    def headings(self):
        return [
            (int(tag[1]), " ".join("".join(text).split()))
            for tag, _, text in self.elements
            if re.fullmatch("h[1-6]", tag)
        ]

    @property
    def drawings(self):
        """The labels of the figures, each drawn for a page and for a phone."""
        wide, narrow = (
            [attrs["aria-label"] for attrs, _ in self.all("svg", role="img", **{"class": name})]
            for name in ("wide", "narrow")
        )
        assert wide == narrow
        return wide

    @property
    def policy(self):
        (content,) = [
            attrs["content"]
            for tag, attrs, _ in self.elements
            if tag == "meta" and attrs.get("http-equiv") == "Content-Security-Policy"
        ]
        return dict(part.strip().split(" ", 1) for part in content.split(";"))

    def table(self, caption):
        """The rows of the table whose caption begins so, cells as text."""
        rows: list[list[str]] = []
        reading = False
        for tag, _, text in self.elements:
            result = " ".join("".join(text).split())
            if tag == "table":
                reading = False
            if tag == "caption":
                reading = result.startswith(caption)
            elif reading and tag == "tr":
                rows.append([])
            elif reading and tag in {"td", "th"}:
                rows[-1].append(result)
        return rows


def report_of(profile, **options):
    """The report of a profile as a `Document`."""
    file = io.BytesIO()
    write_report(profile, file, **options)
    return Document(file.getvalue())


def job_report_of(answer, path, **options):
    """The report of a job as a `Document`."""
    file = io.BytesIO()
    write_job_report(answer, file, path, **options)
    return Document(file.getvalue())


def hash_of(text):
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
