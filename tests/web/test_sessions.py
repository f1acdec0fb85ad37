"""The list of sessions, its pages and files, and where links lead."""

import os
import re
from importlib.resources import files
from pathlib import Path, PurePosixPath
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from tests.each_row import each_row
from tests.web.looking import (
    api,
    eventually,
    expect_accessible,
    expect_accessible_in_both_schemes,
    open_view,
    params,
    quote_part,
    screenshot,
    settle,
    tells,
    wait_for_params,
)
from tests.web.samples import DATA, HOSTILE, MADE, SAMPLES, make_logdir
from tests.web.timelines import tool

from peakline.text import size_text
from peakline.web import PageFile, content_policy, page_files, session_address

# In the page: what the browser tells of a question's end comes at any time after it.
COUNT_SUMMARIES = """() => {
  const {fetch} = window, found = window.summaries = {asked: [], running: 0, most: 0};
  window.fetch = async (path, ...options) => {
    if (!String(path).includes("/tools/summary")) return fetch(path, ...options);
    found.asked.push(path);
    found.most = Math.max(found.most, ++found.running);
    const answer = await fetch(path, ...options), json = answer.json.bind(answer);
    answer.json = () => json().finally(() => { found.running--; });
    return answer;
  };
}"""
# In the page: the names of the rows that are whole between the head and the end of the table.
ROWS_IN_VIEW = """() => {
  const table = document.querySelector(".table");
  const begin = table.querySelector(".headgroup").getBoundingClientRect().bottom;
  const end = table.getBoundingClientRect().bottom;
  return [...table.querySelectorAll(".rows .row")].filter((row) => {
    const {top, bottom} = row.getBoundingClientRect();
    return begin <= top && bottom <= end;
  }).map((row) => row.querySelector("[role=gridcell]:nth-child(2)").innerText);
}"""
UNITS = {"s": 1e12, "ms": 1e9, "µs": 1e6, "ns": 1e3, "ps": 1.0}


def summary(server, name):
    return api(server, f"sessions/{quote_part(name)}/tools/summary")


def row(page, name):
    return page.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True))


def cells(page, name):
    """The texts of a session's row: pick, session, when, duration, steps, peak, findings, ..."""
    return row(page, name).get_by_role("gridcell").all_inner_texts()


def names(page):
    return page.locator(".table .row [role=gridcell]:nth-child(2)").all_inner_texts()


def picoseconds(text):
    number, unit = text.replace(",", "").split()
    return float(number) * UNITS[unit]


def test_all_sessions_are_listed_newest_first_with_hosts_and_size(page, server):
    expected = api(server, "sessions")
    open_view(page, server)
    assert page.get_by_role("status").filter(has_text=f"{len(expected)} sessions").count() == 1
    assert page.get_by_role("grid").get_attribute("aria-rowcount") == str(len(expected) + 1)
    shown = names(page)
    assert shown == [one["session_id"] for one in expected][: len(shown)]
    page.get_by_role("button", name="When").click()
    page.get_by_role("button", name="When").click()
    wait_for_params(page, sort="-modified")
    times = {one["session_id"]: one["modified"] for one in expected}
    newest = sorted(times.values(), reverse=True)
    eventually(lambda: [times[name] for name in names(page)] == newest[: len(shown)], expected=True)
    by_id = {one["session_id"]: one for one in expected}
    for name in ("tf2_cnn", "tf2_multihost"):
        open_view(page, server, q=name)
        result, one = cells(page, name), by_id[name]
        assert result[2] == one["modified"][:16].replace("T", " ")
        assert result[7:9] == [str(len(one["hosts"])), size_text(one["bytes"])]
    expect_accessible(page)


def test_the_list_can_be_read_by_everybody(page, server):
    # By name: when the samples were written, by which they are sorted else, is as the clone is.
    open_view(page, server, chosen="leak_list", sort="name")
    page.get_by_role("heading", name="To fix first").wait_for()
    expect_accessible_in_both_schemes(page, "sessions")


def test_what_a_session_says_at_a_glance_is_its_summary(page, server):
    result = summary(server, "leak_list")
    open_view(page, server, q="leak_list")
    _, _, _, duration, steps, peak, findings, *_ = cells(page, "leak_list")
    assert picoseconds(duration) == pytest.approx(result["profile"]["duration_ps"], rel=0.01)
    assert steps == str(result["time"]["steps"]) == "20"
    assert peak == size_text(result["memory"]["allocators"][0]["peak_bytes"])
    assert result["findings"] == {"error": 0, "warning": 1, "info": 0}
    assert findings == "1 warning"


def test_of_several_hosts_the_findings_are_added_up(page, server):
    hosts = summary(server, "tf2_multihost")["hosts"]
    open_view(page, server, q="tf2_multihost")
    infos = sum(host["findings"]["info"] for host in hosts)
    assert infos == 2
    result = cells(page, "tf2_multihost")
    assert result[6] == f"{infos} info"
    peaks = [one["peak_bytes"] for host in hosts for one in host["memory"]["allocators"]]
    assert result[5] == size_text(max(peaks))


def test_a_row_that_is_chosen_tells_what_to_fix_first_and_links_to_the_evidence(page, server):
    (first,) = summary(server, "leak_list")["first"]
    open_view(page, server, q="leak_list")
    row(page, "leak_list").locator("[role=gridcell]").nth(2).click()
    details = page.get_by_role("region", name="Session leak_list")
    tells(details.get_by_role("article"), first["title"], first["suggestion"])
    links = details.get_by_role("article").get_by_role("link").all()
    assert all("/session/leak_list/memory" in link.get_attribute("href") for link in links)
    allocator = first["evidence"]["allocator"]
    assert any(f"allocator={allocator}" in link.get_attribute("href") for link in links)
    wait_for_params(page, chosen="leak_list")
    details.get_by_role("button", name="Close").click()
    details.wait_for(state="hidden")


def test_the_row_that_is_chosen_stays_in_view(page, server):
    open_view(page, server, sort="name")
    chosen = names(page)[20]  # out of view as soon as the details have taken their room
    row(page, chosen).locator("[role=gridcell]").nth(2).click()
    eventually(lambda: page.evaluate(ROWS_IN_VIEW).count(chosen), 1)
    open_view(page, server, sort="name", chosen=chosen)
    assert page.evaluate(ROWS_IN_VIEW)[-1] == chosen
    # The first is not half below the head, where it would be hard to hit.
    assert page.evaluate("document.querySelector('.table').scrollTop % 28") == 0


def test_search_finds_names_and_hosts_and_is_in_the_address(page, server):
    expected = api(server, "sessions")
    open_view(page, server)
    search = page.get_by_role("searchbox")
    page.keyboard.press("/")
    eventually(lambda: page.evaluate("document.activeElement.id"), "search")
    page.keyboard.type("localhost_47507")
    eventually(lambda: names(page), ["tf2_multihost"])
    wait_for_params(page, q="localhost_47507")
    search.fill("LOG bfc")
    eventually(lambda: names(page), ["memory_log_bfc"])
    tells(page.get_by_role("status").first, f"1 of {len(expected)} sessions")
    search.fill("nothing has this")
    page.get_by_text("No session matches.").wait_for()
    search.fill("")
    open_view(page, server, q="localhost_47507")
    assert search.input_value() == "localhost_47507"
    assert names(page) == ["tf2_multihost"]


def test_sorting_by_the_peak_looks_into_all_sessions(page, server):
    open_view(page, server)
    page.get_by_role("button", name="Memory peak").click()
    wait_for_params(page, sort="-peak")
    peaks = {}
    for one in api(server, "sessions"):
        if "summary" in one["tools"]:
            answer = summary(server, one["session_id"])
            for host in answer.get("hosts", [answer]):
                result = [
                    each["peak_bytes"]
                    for each in (host["memory"] or {"allocators": []})["allocators"]
                ]
                peaks[one["session_id"]] = max([peaks.get(one["session_id"], 0), *result])
    highest = sorted(peaks, key=lambda name: -peaks[name])[:3]
    eventually(lambda: names(page)[:3], highest)


def test_no_more_than_two_sessions_are_asked_at_a_time_and_none_after_the_list_is_left(
    page, server
):
    open_view(page, server, "/nosuch")
    page.evaluate(COUNT_SUMMARIES)
    open_view(page, server)
    assert page.evaluate("summaries.most") == 2
    request = page.evaluate("summaries.asked")
    assert len(request) == len(set(request)) > 2
    open_view(page, server, q="leak")
    page.goto(f"{server.url}/#/session/tf2_cnn/sql")
    page.get_by_label("Query", exact=True).wait_for()
    settle(page)
    before = page.evaluate("summaries.asked")
    page.watch.hear()  # an answer would be followed by the next question
    assert page.evaluate("summaries.asked") == before
    page.is_stale = True


def test_a_large_session_is_read_only_when_the_reader_asks(page, server):
    def enlarge(route):
        answer = route.fetch()
        sessions = answer.json()
        for one in sessions:
            if one["session_id"] == "leak_list":
                one["bytes"] = 300_000_000
        counts = {name: answer.headers[name] for name in ("peakline-rows", "peakline-sessions")}
        route.fulfill(json=sessions, headers=counts)

    page.route("**/api/sessions?*", enlarge)
    open_view(page, server, q="leak_list")
    button = row(page, "leak_list").get_by_role("button", name="Look inside")
    assert button.is_visible()
    assert not any("leak_list/tools/summary" in url for url in page.watch.requests)
    screenshot(page, "sessions_large")
    button.click()
    row(page, "leak_list").get_by_text("1 warning").wait_for()


def test_a_damaged_session_says_why(page, server):
    page.allowed_failures.append("/sessions/damaged")
    open_view(page, server, q="damaged")
    cell = row(page, "damaged").get_by_text("cannot be read")
    assert "damaged/host.xplane.pb" in cell.get_attribute("title")
    cell.click()
    tells(page.get_by_role("region", name="Session damaged"), "host.xplane.pb")
    screenshot(page, "sessions_damaged")


def test_a_hostile_name_is_text_and_its_links_lead_to_it(page, server):
    open_view(page, server, q="onerror")
    assert cells(page, HOSTILE)[1] == HOSTILE
    row(page, HOSTILE).get_by_role("link", name="Memory").click()
    page.wait_for_url(lambda url: unquote(url).endswith(f"#/session/{HOSTILE}/memory"))
    page.locator("#main.memory").wait_for()
    settle(page)
    assert page.locator("img[src=x]").count() == 0


def test_sessions_are_picked_and_compared(page, server):
    open_view(page, server, q="leak_list")
    page.get_by_label("Compare leak_list").check()
    page.get_by_text("Pick one more to compare").wait_for()
    page.get_by_role("searchbox").fill("doubled")
    page.get_by_label("Compare doubled_batch", exact=True).check()
    page.get_by_role("link", name="Compare the two").wait_for()
    page.get_by_label("Compare doubled_batch_healthy").check()
    page.get_by_role("link", name="Compare the 3").click()
    page.wait_for_url(
        re.compile("#/compare.*first=leak_list&second=doubled_batch&with=doubled_batch_healthy")
    )


@pytest.mark.nightly
def test_the_keyboard_chooses_picks_and_opens(page, server):
    open_view(page, server, sort="name", q="tf2")
    assert names(page) == ["tf2_cnn", "tf2_multihost", "tf2_two_devices"]
    page.get_by_role("grid").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    eventually(page.get_by_label("Compare tf2_multihost").is_checked, expected=True)
    page.keyboard.press("Enter")
    page.get_by_role("region", name="Session tf2_multihost").wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("#/session/tf2_multihost/summary"))


def test_an_empty_log_directory_says_how_to_record(serve, page, tmp_path):
    empty_server = serve(tmp_path, read_only=True)
    open_view(page, empty_server)
    result = page.locator(".nothing-yet").inner_text()
    for part in ("No sessions yet", "jax.profiler.trace", "tf.profiler", empty_server.logdir.name):
        assert part in result
    assert "read-only" in result
    assert page.get_by_role("button", name="Capture …").is_disabled()
    assert page.get_by_role("button", name="Upload …").is_disabled()
    screenshot(page, "sessions_nothing")
    expect_accessible(page)


def test_no_answer_is_told_and_can_be_asked_again(page, server):
    page.allowed_failures.append("/api/sessions")
    page.route("**/api/sessions?*", lambda route: route.abort())
    open_view(page, server)
    tells(page.get_by_role("alert"), "No answer")
    screenshot(page, "sessions_no_answer")
    page.unroute("**/api/sessions?*")
    page.get_by_role("button", name="Try again").click()
    page.get_by_role("grid").wait_for()


def test_of_several_log_directories_one_is_chosen(serve, page, tmp_path):
    one, two = make_logdir(tmp_path / "one", "tf2_cnn"), make_logdir(tmp_path / "two", "leak_list")
    open_view(page, serve(one, two))
    assert names(page) == ["tf2_cnn"]
    page.get_by_label("Log directory").select_option("two")
    row(page, "leak_list").get_by_text("1 warning").wait_for()
    assert names(page) == ["leak_list"]
    wait_for_params(page, root="two")
    row(page, "leak_list").get_by_role("link", name="leak_list").click()
    page.wait_for_url(re.compile(r"#/session/leak_list/summary\?root=two"))
    page.get_by_role("heading", name="Fix first").wait_for()
    settle(page)
    assert page.get_by_role("alert").count() == 0


def test_every_sample_is_in_the_list(server):
    assert {one["session_id"] for one in api(server, "sessions")} == {*SAMPLES, *MADE}


MANY = 450
PAGE = 100


@pytest.fixture(scope="module")
def many(run_server, tmp_path_factory):
    """A server of sessions that are links to one file."""
    logdir = tmp_path_factory.mktemp("many")
    for number in range(MANY):
        session = logdir / "plugins/profile" / f"run_{number}"
        session.mkdir(parents=True)
        (session / f"worker-{number % 9}.profile").symlink_to(DATA / "graph_def/frozen.pb")
        os.utime(session, (1_700_000_000 + number, 1_700_000_000 + number))
    with run_server(logdir, linked=(str(DATA),)) as server:
        yield server


def names_of_session_pages(page):
    return page.locator(".table .row:not(.coming) [role=gridcell]:nth-child(2)").all_inner_texts()


def asked(page):
    """The questions for pages so far: offset and limit of each."""
    result = []
    for url in page.watch.requests:
        parts = urlsplit(url)
        if parts.path.endswith("/api/sessions"):
            query = parse_qs(parts.query)
            assert query["tools"] == ["false"]
            result.append((int(query.get("offset", ["0"])[0]), int(query["limit"][0])))
    return result


def scroll_to(page, place):
    page.evaluate("(top) => { document.querySelector('.table').scrollTop = top; }", 28 * place)


def test_the_first_page_comes_alone_and_others_when_they_are_scrolled_to(page, many):
    page.watch.requests.clear()
    open_view(page, many)
    tells(page.get_by_role("status").first, f"{MANY} sessions")
    assert asked(page) == [(0, PAGE)]
    assert page.get_by_role("grid").get_attribute("aria-rowcount") == str(MANY + 1)
    assert names_of_session_pages(page)[:2] == ["run_449", "run_448"]
    scroll_to(page, 300)
    eventually(lambda: "run_149" in names_of_session_pages(page), expected=True)
    assert (100, PAGE) not in asked(page)
    page.get_by_role("grid").press("End")
    eventually(lambda: names_of_session_pages(page)[-1:], ["run_0"])


def test_only_rows_in_view_are_looked_into(page, many):
    page.watch.requests.clear()
    open_view(page, many)
    page.get_by_role("row").filter(has_text="run_449").get_by_role("link", name="SQL").wait_for()
    settle(page)
    assert 5 < len([url for url in page.watch.requests if "/api/sessions/run_" in url]) < 60


def test_the_service_searches_and_sorts(page, many):
    open_view(page, many)
    page.get_by_role("searchbox").fill("worker-4 run_2")
    matching = [k for k in range(MANY) if k % 9 == 4 and str(k).startswith("2")]
    tells(page.get_by_role("status").first, f"{len(matching)} of {MANY} sessions")
    eventually(lambda: names_of_session_pages(page), [f"run_{k}" for k in reversed(matching)])
    page.get_by_role("button", name="Session", exact=True).click()
    eventually(lambda: names_of_session_pages(page), [f"run_{k}" for k in matching])
    wait_for_params(page, q="worker-4 run_2", sort="name")
    open_view(page, many, **params(page))
    eventually(lambda: names_of_session_pages(page), [f"run_{k}" for k in matching])
    page.get_by_role("searchbox").fill("nobody")
    page.get_by_text("No session matches.").wait_for()


def test_one_that_is_chosen_is_told_though_its_row_is_far_away(page, many):
    open_view(page, many, chosen="run_3")
    tells(page.get_by_role("region", name="Session run_3"), "worker-3")


@pytest.mark.parametrize("width", [1440, 800, 390])
def test_everybody_can_read_it_at_any_width(page, many, width):
    page.set_viewport_size({"width": width, "height": 900})
    try:
        open_view(page, many, q="run_12")
        expect_accessible_in_both_schemes(page, f"session_pages_{width}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    finally:
        page.set_viewport_size({"width": 1400, "height": 900})


STARTS = ("/assets/js/first.js", "/assets/js/main.js")
WORKER = "/assets/js/views/graph/layout_worker.js"
_IMPORT = re.compile(r"""(?:\bfrom\s+|\bimport\s*\(\s*|^import\s+)["']([^"']+)["']""", re.MULTILINE)
_COMMENT = re.compile(r"/\*.*?\*/|^\s*//.*$", re.DOTALL | re.MULTILINE)


def modules() -> dict[str, str]:
    """The text of every module of ours, without comments (types in them import as well)."""
    return {
        path: _COMMENT.sub("", file.place.read_text(encoding="utf-8"))
        for path, file in page_files().items()
        if path.endswith(".js")
    }


def imported(path: str, text: str) -> set[str]:
    return {os.path.normpath(PurePosixPath(path).parent / name) for name in _IMPORT.findall(text)}


def test_every_file_of_the_checkout_is_installed_and_served(root):
    static = root / "src" / "peakline" / "web" / "static"
    wanted = {path.relative_to(static).as_posix() for path in static.rglob("*") if path.is_file()}
    served = {
        "index.html" if path == "/" else path.removeprefix("/assets/") for path in page_files()
    }
    assert served == wanted
    installed = Path(str(files("peakline"))) / "web" / "static"
    for name in wanted:
        assert (installed / name).read_bytes() == (static / name).read_bytes(), name


def test_modules_import_what_is_there():
    served = set(page_files())
    missing = {
        f"{path} imports {name}"
        for path, text in modules().items()
        for name in imported(path, text)
        if name not in served
    }
    assert missing == set()


def test_every_module_is_reached_from_the_first():
    texts = modules()
    assert WORKER.removeprefix("/") in texts["/assets/js/core/trusted.js"]
    reached, waiting = set(), [*STARTS, WORKER]
    while waiting:
        path = waiting.pop()
        if path not in reached and path in texts:
            reached.add(path)
            waiting += imported(path, texts[path])
    assert set(texts) - reached == set()


def test_the_document_names_files_of_the_page_alone():
    text = page_files()["/"].place.read_text(encoding="utf-8")
    named = set(re.findall(r"""(?:src|href)="([^"#][^"]*)\"""", text))
    assert named
    assert {f"/{name}" for name in named} - set(page_files()) == set()
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", text)


def test_no_module_and_no_style_names_another_host():
    texts = modules() | {
        path: file.place.read_text(encoding="utf-8")
        for path, file in page_files().items()
        if path.endswith((".css", ".svg"))
    }
    spaces = ("http://www.w3.org/",)  # names of XML, which nobody asks for
    result = {
        f"{path}: {url}"
        for path, text in texts.items()
        for url in re.findall(r"https?://[^\s\"'`)]+", text)
        if not url.startswith(spaces)
    }
    assert result == set()


def test_no_module_makes_markup_of_a_text():
    sinks = re.compile(r"\b(innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval)\b")
    result = {
        f"{path}: {match[0]}" for path, text in modules().items() if (match := sinks.search(text))
    }
    assert result == set()


def test_a_file_that_changed_is_read_again(tmp_path):
    place = tmp_path / "a.js"
    place.write_text("1")
    file = PageFile("text/javascript", place)
    first = file.content()
    assert file.content() is first
    place.write_text("22")
    assert (file.content().plain, file.content().tag == first.tag) == (b"22", False)


def test_scripts_and_workers_are_files_of_this_server_alone():
    rules = content_policy().split("; ")
    assert [
        rule for rule in rules if rule.startswith(("script", "worker", "style", "default"))
    ] == ["default-src 'none'", "script-src 'self'", "worker-src 'self'", "style-src 'self'"]


@each_row(
    ("name", "state", "address"),
    [
        ("a", {}, "#/session/a/memory"),
        ("train/a b", {"host": "h:1", "root": ""}, "#/session/train%2Fa%20b/memory?host=h%3A1"),
        ("<?#&%>", {}, "#/session/%3C%3F%23%26%25%3E/memory"),
    ],
)
def test_an_address_is_written_as_the_page_reads_it(name, state, address):
    assert session_address(name, "memory", **state) == address


def asked_of_start(page):
    return [
        parts.path for parts in map(urlsplit, page.watch.requests) if parts.path.startswith("/api/")
    ]


def test_the_list_is_requested_before_the_page_s_modules_are_there(page, server):
    held = []
    page.goto("about:blank")
    page.route("**/js/main.js", lambda route: held.append(route))  # noqa: PLW0108, a function alone
    page.watch.requests.clear()
    page.goto(f"{server.url}/", wait_until="commit")
    eventually(
        lambda: (page.wait_for_timeout(10), asked_of_start(page))[1],
        ["/api/server", "/api/sessions"],
    )
    eventually(lambda: (page.wait_for_timeout(10), len(held))[1], 1)
    held[0].continue_()
    page.unroute("**/js/main.js")
    page.locator(".table .row").first.wait_for()
    assert (
        asked_of_start(page).count("/api/server")
        == asked_of_start(page).count("/api/sessions")
        == 1
    )


@pytest.mark.parametrize("session", ["slow_step", "recompiling", "eager_loop", "input_bound"])
def test_every_link_to_the_timeline_chooses_something(page, server, session):
    open_view(page, server, f"/session/{session}/steps")
    findings = page.locator("article.finding")
    eventually(lambda: findings.count() > 0, expected=True)
    links = findings.locator("a").evaluate_all(
        "(all) => all.map((one) => one.getAttribute('href'))"
    )
    for link in links:
        place, _, query = link.partition("?")
        if not place.endswith("/timeline"):
            continue
        request = {name: value[0] for name, value in parse_qs(query).items()}
        assert {"step", "range", "find", "event"} & set(request), link
        if "find" in request:
            assert tool(server, session, view="find", search=request["find"])["found"], link
