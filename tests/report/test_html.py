from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from peakline.render.html.html import Markup, clip, code, join, tag, text


class _Texts(HTMLParser):
    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.tags, self.attrs, self.told = [], [], ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attrs.append(dict(attrs))

    def handle_data(self, data):
        self.told += data


@given(st.text())
def test_no_text_becomes_markup_and_none_is_lost(value):
    result = _Texts(tag("p", value, title=value))
    assert result.tags == ["p"]
    shown = "".join(
        one if one.isprintable() or one == "\n" else one.encode("unicode_escape").decode()
        for one in value
    )
    assert result.told == shown
    assert result.attrs == [{"title": shown}]


def test_what_cannot_be_printed_is_spelled_out():
    assert text("a\x00\x1b[2J\u202eb\udc80") == "a\\x00\\x1b[2J\\u202eb\\udc80"
    text("\udc80").encode()


def test_attributes_and_void_elements():
    assert tag("p", class_="a", aria_label="b", hidden=True, id=None, open=False) == (
        '<p class="a" aria-label="b" hidden></p>'
    )
    assert tag("meta", name="x", content="y") == '<meta name="x" content="y">'


def test_markup_passes_and_other_children_are_escaped():
    assert join([Markup("<b>"), "<b>", 3, None], ", ") == "<b>, &lt;b&gt;, 3, "


def test_a_long_name_keeps_its_ends():
    result = clip("a" * 300 + "b" * 300)
    assert len(result) == 400
    assert (result[0], result[-1]) == ("a", "b")
    assert "…" in result
    assert clip("short") == "short"


def test_code_may_be_broken_after_slashes():
    assert code("a/<b>") == "<code>a/<wbr>&lt;b&gt;</code>"
