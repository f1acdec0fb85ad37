"""The list of sessions: what it shows is what the service says, and nobody is flooded."""

import re
from urllib.parse import unquote

import pytest
from tests.web.looking import (
    api,
    eventually,
    expect_accessible,
    expect_accessible_in_both_schemes,
    open_view,
    quote_part,
    screenshot,
    settle,
    tells,
    wait_for_params,
)
from tests.web.samples import HOSTILE, MADE, SAMPLES, make_logdir

from peakline.text import size_text

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
        found, one = cells(page, name), by_id[name]
        assert found[2] == one["modified"][:16].replace("T", " ")
        assert found[7:9] == [str(len(one["hosts"])), size_text(one["bytes"])]
    expect_accessible(page)


def test_the_list_can_be_read_by_everybody(page, server):
    # By name: when the samples were written, by which they are sorted else, is as the clone is.
    open_view(page, server, chosen="leak_list", sort="name")
    page.get_by_role("heading", name="To fix first").wait_for()
    expect_accessible_in_both_schemes(page, "sessions")


def test_what_a_session_says_at_a_glance_is_its_summary(page, server):
    told = summary(server, "leak_list")
    open_view(page, server, q="leak_list")
    _, _, _, duration, steps, peak, findings, *_ = cells(page, "leak_list")
    assert picoseconds(duration) == pytest.approx(told["profile"]["duration_ps"], rel=0.01)
    assert steps == str(told["time"]["steps"]) == "20"
    assert peak == size_text(told["memory"]["allocators"][0]["peak_bytes"])
    assert told["findings"] == {"error": 0, "warning": 1, "info": 0}
    assert findings == "1 warning"


def test_of_several_hosts_the_findings_are_added_up(page, server):
    hosts = summary(server, "tf2_multihost")["hosts"]
    open_view(page, server, q="tf2_multihost")
    infos = sum(host["findings"]["info"] for host in hosts)
    assert infos == 2
    found = cells(page, "tf2_multihost")
    assert found[6] == f"{infos} info"
    peaks = [one["peak_bytes"] for host in hosts for one in host["memory"]["allocators"]]
    assert found[5] == size_text(max(peaks))


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
            told = summary(server, one["session_id"])
            for host in told.get("hosts", [told]):
                found = [
                    each["peak_bytes"]
                    for each in (host["memory"] or {"allocators": []})["allocators"]
                ]
                peaks[one["session_id"]] = max([peaks.get(one["session_id"], 0), *found])
    highest = sorted(peaks, key=lambda name: -peaks[name])[:3]
    eventually(lambda: names(page)[:3], highest)


def test_no_more_than_two_sessions_are_asked_at_a_time_and_none_after_the_list_is_left(
    page, server
):
    open_view(page, server, "/nosuch")
    page.evaluate(COUNT_SUMMARIES)
    open_view(page, server)
    assert page.evaluate("summaries.most") == 2
    asked = page.evaluate("summaries.asked")
    assert len(asked) == len(set(asked)) > 2
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
    told = page.locator(".nothing-yet").inner_text()
    for part in ("No sessions yet", "jax.profiler.trace", "tf.profiler", empty_server.logdir.name):
        assert part in told
    assert "read-only" in told
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
