"""SQL in the page: rows, errors with their place, charts, downloads, addresses."""

import json

import pytest
from tests.web.looking import (
    api,
    eventually,
    expect_accessible_in_both_schemes,
    load_again,
    open_view,
    params,
    screenshot,
    settle,
    wait_for_params,
)
from tests.web.shown import almost, number_of, rows_of

BY_NAME = (
    "select name, count(*) as events, sum(duration_ps) as total_ps\n"
    "from events group by name order by total_ps desc, name limit 20"
)
TABLE = "Rows of the query"


def sql(server, session, query, **more):
    return api(server, f"sessions/{session}/sql", {"query": query, **more})


def heading(page):
    return page.locator("#main h2").filter(has_text=" row").inner_text()


def run(page, query):
    page.get_by_label("Query", exact=True).fill(query)
    page.keyboard.press("Control+Enter")  # the loading begins at once
    settle(page)


def test_rows_are_those_of_the_service(page, server):
    result = sql(server, "tf2_cnn", BY_NAME)
    open_view(page, server, "/session/tf2_cnn/sql")
    run(page, BY_NAME)
    rows = rows_of(page, TABLE)
    assert list(rows[0]) == ["name", "events", "total_ps"]
    assert [row["name"] for row in rows] == [one["name"] for one in result]
    assert [number_of(row["events"]) for row in rows] == [one["events"] for one in result]
    assert [number_of(row["total_ps"]) for row in rows] == [
        almost(one["total_ps"]) for one in result
    ]
    assert heading(page).startswith("20 rows, 3 columns, in ")
    assert params(page)["query"] == BY_NAME


def test_a_link_runs_its_query(page, server):
    open_view(page, server, "/session/tf2_cnn/sql", query="select 6 * 7 as answer")
    assert page.get_by_label("Query", exact=True).input_value() == "select 6 * 7 as answer"
    assert rows_of(page, TABLE) == [{"answer": "42"}]


def test_a_query_over_all_ranks(page, server):
    hosts = api(server, "sessions/tf2_multihost")["hosts"]
    query = "select count(*) n from events"
    each = [sql(server, "tf2_multihost", query, host=host)[0]["n"] for host in hosts]
    open_view(page, server, "/session/tf2_multihost/sql", query=query)
    assert number_of(rows_of(page, TABLE)[0]["n"]) == each[0]
    page.get_by_label("All ranks").check()
    eventually(lambda: number_of(rows_of(page, TABLE)[0]["n"]), sum(each))
    assert params(page)["ranks"] == "all"
    run(page, "select rank, host from ranks order by rank")
    assert [row["host"] for row in rows_of(page, TABLE)] == hosts
    load_again(page, page.url)
    assert [row["host"] for row in rows_of(page, TABLE)] == hosts
    run(page, query)
    page.get_by_label("All ranks").uncheck()
    eventually(lambda: number_of(rows_of(page, TABLE)[0]["n"]), each[0])
    page.go_back()
    eventually(lambda: number_of(rows_of(page, TABLE)[0]["n"]), sum(each))
    open_view(page, server, "/session/tf2_cnn/sql", query="select 1 as one")
    assert not page.get_by_label("All ranks").is_visible()


def test_back_shows_the_query_before(page, server):
    open_view(page, server, "/session/tf2_cnn/sql", query="select 1 as first")
    run(page, "select 2 as second")
    page.get_by_role("columnheader", name="second").wait_for()
    page.go_back()
    page.get_by_role("columnheader", name="first").wait_for()
    eventually(page.get_by_label("Query", exact=True).input_value, "select 1 as first")


def test_numbers_can_be_shown_exactly(page, server):
    query = "select 123456789012::bigint as wait_ps, 9007199254740993::bigint as large"
    open_view(page, server, "/session/tf2_cnn/sql", query=query)
    assert rows_of(page, TABLE) == [{"wait_ps": "123.5 ms", "large": "9007199254740993"}]
    page.get_by_label("Exact numbers").check()
    exact = {"wait_ps": "123456789012", "large": "9007199254740993"}
    eventually(lambda: rows_of(page, TABLE), [exact])


def test_columns_keep_the_query_s_order(page, server):
    """Names that are numbers too, which objects of JavaScript would put first."""
    query = """select 'x' as op, 2 as "2", 1 as "1", '{"a":3}' as "{0}" """
    open_view(page, server, "/session/tf2_cnn/sql", query=query)
    heads = page.get_by_role("columnheader").all_inner_texts()
    assert [head.strip() for head in heads] == ["op", "2", "1", "{0}"]


def test_no_more_rows_are_kept_than_can_be_shown(page, server):
    open_view(page, server, "/session/tf2_cnn/sql", query="select range as n from range(25000)")
    assert heading(page).startswith("25,000 rows")
    assert "The first 10,000 rows are shown" in page.locator("#main").inner_text()
    assert page.get_by_role("grid").get_attribute("aria-rowcount") == "10001"
    # Only rows in view are elements.
    assert page.get_by_role("row").count() < 100


def test_nothing_found_is_told(page, server):
    open_view(page, server, "/session/tf2_cnn/sql", query="select * from events where name = 'no'")
    assert heading(page).startswith("0 rows")
    assert "The query found nothing." in page.locator("#main").inner_text()
    screenshot(page, "sql_nothing")


@pytest.mark.parametrize(
    ("query", "reason", "place", "word"),
    [
        ("select nme\nfrom events", 'column "nme" not found', "Line 1, column 8.", "nme"),
        (
            "select 1\nfrm events e",
            'syntax error at or near "events"',
            "Line 2, column 5.",
            "events",
        ),
        (
            "select *\nfrom evnts",
            "Table with name evnts does not exist",
            "Line 2, column 6.",
            "evnts",
        ),
        ("select count(*\nfrom", "syntax error", None, None),
    ],
)
def test_an_error_tells_its_place(page, server, query, reason, place, word):
    page.allowed_failures.append("/sql")
    open_view(page, server, "/session/tf2_cnn/sql", query=query)
    assert reason in page.locator(".state.error").inner_text()
    if place is None:
        return
    assert place in page.locator("#main").inner_text()
    page.get_by_role("button", name="Show the place").click()
    field = page.get_by_label("Query", exact=True)
    chosen = "(field) => field.value.slice(field.selectionStart, field.selectionEnd)"
    eventually(lambda: field.evaluate(chosen), word)
    screenshot(page, "sql_error")


def test_a_refused_query_is_told_why(page, server):
    page.allowed_failures.append("/sql")
    open_view(page, server, "/session/tf2_cnn/sql", query="drop table events")
    assert page.locator(".state.error p").first.inner_text().strip()
    assert page.get_by_role("grid").count() == 0


def test_tables_and_columns_are_those_that_the_session_has(page, server):
    own = api(server, "sessions/memory_log/tables")
    every = {table["name"]: table for table in api(server, "tables")}
    open_view(page, server, "/session/memory_log/sql")
    assert sorted(page.locator(".table-list summary").all_inner_texts()) == sorted(own)
    page.get_by_text("log_records", exact=True).click()
    columns = page.locator(".table-list details[open] .column")
    expected = [column["name"] for column in every["log_records"]["columns"]]
    eventually(columns.all_inner_texts, expected)


def test_views_are_those_over_the_tables_of_the_session(page, server):
    own = set(api(server, "sessions/tf2_cnn/tables"))
    every = {view["name"]: view for view in api(server, "views")}
    expected = [name for name, view in every.items() if own.issuperset(view["tables"])]
    open_view(page, server, "/session/tf2_cnn/sql")
    shown = page.locator(".view-list summary")
    assert shown.all_inner_texts() == expected
    assert "segment_use" not in expected
    page.get_by_label("Find a table or column").fill("step_tot")
    shown.get_by_text("step_totals", exact=True).click()
    columns = page.locator(".view-list details[open] .column")
    eventually(
        columns.all_inner_texts, [column["name"] for column in every["step_totals"]["columns"]]
    )
    assert page.locator(".view-list").get_by_text(every["step_totals"]["doc"]).is_visible()
    page.locator(".view-list").get_by_role("button", name="Look at it").click()
    page.get_by_role("heading", name="16 rows").wait_for()


def test_a_column_is_inserted_where_the_cursor_is(page, server):
    open_view(page, server, "/session/tf2_cnn/sql")
    field = page.get_by_label("Query", exact=True)
    field.fill("select from buffers")
    field.evaluate("(field) => field.setSelectionRange(6, 6)")
    page.get_by_label("Find a table or column").fill("requested_bytes")
    page.locator(".table-list").get_by_role("button", name="requested_bytes").first.click()
    eventually(field.input_value, "select requested_bytes from buffers")
    eventually(lambda: field.evaluate("(field) => field === document.activeElement"), expected=True)


def test_a_look_at_a_table(page, server):
    open_view(page, server, "/session/tf2_cnn/sql")
    page.get_by_text("steps", exact=True).click()
    page.get_by_role("button", name="Look at it").click()
    page.get_by_role("heading", name="16 rows").wait_for()
    wait_for_params(page, query="select * from steps limit 100")


@pytest.mark.parametrize("session", ["tf2_cnn", "run_metadata", "graph"])
def test_every_question_to_begin_with_has_an_answer(page, server, session):
    open_view(page, server, f"/session/{session}/sql")
    own = set(api(server, f"sessions/{session}/tables"))
    examples = page.evaluate(
        "async () => (await import('/assets/js/views/sql/examples.js')).EXAMPLES"
    )
    fitting = [one for one in examples if set(one["tables"]) <= own]
    buttons = page.locator(".questions button")
    assert buttons.all_inner_texts() == [one["question"] for one in fitting]
    assert fitting
    for one in fitting:
        assert isinstance(sql(server, session, one["query"]), list)
    buttons.first.click()
    page.locator("#main h2").filter(has_text=" row").wait_for()
    wait_for_params(page, query=fitting[0]["query"])


def test_a_chart_of_rows_is_in_the_address(page, other_page, server):
    result = sql(server, "tf2_cnn", BY_NAME)
    open_view(page, server, "/session/tf2_cnn/sql", query=BY_NAME)
    page.get_by_label("Chart", exact=True).select_option("Bars")
    page.locator(".xy .bar").first.wait_for()
    page.get_by_label("up", exact=True).select_option("events")
    wait_for_params(page, chart="bar", y="events")
    load_again(other_page, page.evaluate("location.href"))
    eventually(other_page.locator(".xy .bar").count, len(result))
    drawn = other_page.evaluate(
        "[...document.querySelectorAll('.xy .bar')].map((bar) => Number(bar.getAttribute('width')))"
    )
    counts = [one["events"] for one in result]
    # As long as its number, or a pixel.
    scale = max(drawn) / max(counts)
    assert drawn == pytest.approx([max(count * scale, 1) for count in counts])
    screenshot(other_page, "sql_chart")


def test_times_of_a_chart_have_their_unit(page, server):
    query = "select name, wall_ps from step_breakdown order by start_ps"
    result = sql(server, "tf2_cnn", query)
    open_view(
        page, server, "/session/tf2_cnn/sql", query=query, chart="line", x="name", y="wall_ps"
    )
    page.locator(".xy path.line").wait_for(state="attached")
    assert page.locator(".xy .tick").filter(has_text=" ms").count() > 2
    corners = page.locator(".xy path.line").get_attribute("d")[1:].split("L")
    y = [float(corner.split()[1]) for corner in corners]
    walls = [one["wall_ps"] for one in result]
    scale = (max(y) - min(y)) / (max(walls) - min(walls))
    assert y == pytest.approx([min(y) + (max(walls) - wall) * scale for wall in walls])


def test_rows_can_be_downloaded(page, server, tmp_path):
    open_view(page, server, "/session/tf2_cnn/sql", query=BY_NAME)
    result = sql(server, "tf2_cnn", BY_NAME)
    saved = {}
    for name in ("CSV", "JSON", "Parquet"):
        with page.expect_download() as coming:
            page.get_by_role("button", name=name, exact=True).click()
        place = tmp_path / coming.value.suggested_filename
        coming.value.save_as(place)
        saved[name] = place
    assert [place.name for place in saved.values()] == [
        "tf2_cnn_query.csv",
        "tf2_cnn_query.json",
        "tf2_cnn_query.parquet",
    ]
    assert json.loads(saved["JSON"].read_text(encoding="utf-8")) == result
    assert saved["CSV"].read_text(encoding="utf-8").splitlines()[0] == "name,events,total_ps"
    import pyarrow.parquet as pq

    assert pq.read_table(saved["Parquet"]).to_pylist() == result


def test_queries_are_remembered_and_forgotten(page, server):
    open_view(page, server, "/session/tf2_cnn/sql", query="select 1 as a")
    run(page, "select 2 as b")
    past = page.locator("details").filter(has_text="Asked before")
    past.locator("summary").click()
    request = past.locator(".queries button")
    eventually(request.all_inner_texts, ["select 2 as b", "select 1 as a"])
    past.get_by_text("select 1 as a").click()
    page.get_by_role("columnheader", name="a", exact=True).wait_for()
    eventually(request.all_inner_texts, ["select 1 as a", "select 2 as b"])
    past.get_by_role("button", name="Forget them").click()
    past.wait_for(state="hidden")
    assert page.evaluate("localStorage.getItem('peakline.sql.history')") is None


def test_tab_leaves_the_editor(page, server):
    open_view(page, server, "/session/tf2_cnn/sql")
    page.get_by_label("Query", exact=True).focus()
    page.keyboard.press("Tab")
    eventually(lambda: page.evaluate("document.activeElement.textContent"), "Run")


def test_a_query_is_of_the_host_that_is_shown(page, server):
    query = "select count(*) as n from steps"
    hosts = api(server, "sessions/tf2_multihost")["hosts"]
    counts = [sql(server, "tf2_multihost", query, host=host)[0]["n"] for host in hosts]
    assert len(set(counts)) == 2
    for host, count in zip(hosts, counts, strict=True):
        open_view(page, server, "/session/tf2_multihost/sql", query=query, host=host)
        assert rows_of(page, TABLE) == [{"n": str(count)}]


def test_what_a_query_finds_is_text(page, server):
    markup = "<img src=x onerror=alert(1)>"
    query = f"select '{markup}' as a, 1 as b"
    open_view(page, server, "/session/tf2_cnn/sql", query=query, chart="bar")
    assert rows_of(page, TABLE) == [{"a": markup, "b": "1"}]
    page.locator(".xy text").get_by_text(markup, exact=True).wait_for()
    assert page.locator("img[src=x]").count() == 0


def test_everybody_can_read_it(page, server):
    open_view(page, server, "/session/tf2_cnn/sql", query=BY_NAME, chart="bar")
    page.locator(".xy .bar").first.wait_for()
    page.locator(".table-list summary").get_by_text("events", exact=True).click()
    page.locator(".table-list details[open] .column").first.wait_for()
    expect_accessible_in_both_schemes(page, "sql")


def test_the_same_query_again_keeps_its_chart(page, server):
    open_view(page, server, "/session/tf2_cnn/sql", query=BY_NAME)
    page.get_by_label("Chart", exact=True).select_option("Line")
    page.locator(".xy path.line").wait_for(state="attached")
    run(page, BY_NAME)
    page.locator(".xy path.line").wait_for(state="attached")
    eventually(page.get_by_label("Chart", exact=True).input_value, "line")
    wait_for_params(page, chart="line")
