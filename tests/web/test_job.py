"""The job: its numbers are the service's, its map leads to collectives and timelines."""

import pytest
from tests.jobs.simulated import SCENARIOS
from tests.jobs.snapshots import fat_rank_zero, write_snapshots
from tests.web.looking import (
    api,
    eventually,
    expect_accessible_in_both_schemes,
    open_view,
    screenshot,
    settle,
    tells,
    wait_for_params,
)
from tests.web.shown import almost, facts, number_of, rows_of

RANKS, STEPS = 16, 3


@pytest.fixture(scope="module")
def jobs(run_server, tmp_path_factory):
    """A server with a simulated job: one rank of sixteen is slow, in groups of four both ways."""
    logdir, written = tmp_path_factory.mktemp("jobs"), tmp_path_factory.mktemp("written")
    SCENARIOS["tensor_data"](RANKS, STEPS, seed=3).write(written)
    session = logdir / "plugins" / "profile" / "mesh"
    session.mkdir(parents=True)
    for path in written.iterdir():
        path.rename(session / f"{path.name.removesuffix('.json.gz')}.profile")
    fat = logdir / "plugins" / "profile" / "fat"
    fat.mkdir()
    write_snapshots(written, fat_rank_zero(4))
    for path in written.glob("*rank*"):
        path.rename(fat / f"{path.name.partition('.')[0]}.profile")
    with run_server(logdir) as server:
        yield server


def tool(server, name, session="mesh", **query):
    return api(server, f"sessions/{session}/tools/{name}", **query)


def test_a_session_of_several_hosts_opens_at_its_job(page, jobs):
    result = tool(jobs, "job")
    root = result["time"]["root"]
    open_view(page, jobs, "/session/mesh/summary")
    assert "/session/mesh/job" in page.url
    tells(page.locator(".job-answer"), result["headline"][1:], root["evidence"][1][1:])
    shown = facts(page.locator(".job-answer"))
    assert shown["Ranks"] == str(result["job"]["ranks"]) == str(RANKS)
    assert shown["Steps"] == str(STEPS)
    assert number_of(shown["Mean step"]) == almost(result["time"]["step_ps"]["mean"])
    assert number_of(shown["Without the cause"]) == almost(root["step_without_ps"])
    finding = page.locator("article.finding").first
    assert result["first"][0]["title"] in finding.inner_text()
    # Its summary is that of one host, from where the header leads back to all.
    finding.get_by_role("link", name="Its summary").click()
    wait_for_params(page, host=root["host"])
    page.get_by_label("Host", exact=True).select_option("all hosts")
    page.locator(".job-answer").wait_for()
    assert "host=" not in page.url


def test_the_map_is_sorted_and_grouped_and_says_each_number(page, jobs):
    data, root = tool(jobs, "job_steps"), tool(jobs, "job")["time"]["root"]
    open_view(page, jobs, "/session/mesh/job")
    canvas = page.locator("canvas.heat")
    said = page.locator("#announcer")
    place = data["ranks"]["title"].index(root["title"])

    page.get_by_label("Order").select_option("most first")
    wait_for_params(page, sort="value")
    canvas.focus()
    for key in ("Home", "PageUp", "PageUp", "ArrowRight"):
        canvas.press(key)
    tells(said, f"{root['title']}, {data['steps'][1]}, ")
    numbers = dict(part.split(": ") for part in said.inner_text().split(", ") if ": " in part)
    names = {"excess": "Work beyond peers", "step": "Step time", "waiting": "Waiting",
             "late": "Lateness"}  # fmt: skip
    for name, text in names.items():
        matrix = data[f"{name}_ps"]
        assert number_of(numbers[text]) == almost(matrix["rows"][place][1] * matrix["unit"])
    assert root["title"] in canvas.get_attribute("aria-label")
    waiting = page.locator("[data-measure=waiting]")
    waiting.click()
    wait_for_params(page, measure="waiting")
    page.get_by_label("Groups").select_option("machine")
    wait_for_params(page, group="machine")
    screenshot(page, "job_groups")
    canvas.press("Enter")
    wait_for_params(page, rank=root["title"], step=data["steps"][1])
    # Below stand the collectives of that step on all ranks, and its timeline on this one.
    step = data["steps"][1]
    own = tool(jobs, "collectives", by="collective", step=step)["rows"]
    tells(page.locator("#arrivals"), step)
    shown = rows_of(page, "Collectives of the step")
    assert [row["Last to come"] for row in shown] == [one["last_rank"] for one in own][: len(shown)]
    assert [number_of(row["Longest wait"]) for row in shown] == [
        almost(one["wait_ps"]) for one in own[: len(shown)]
    ]
    arrivals = page.locator("canvas.arrivals")
    arrivals.press("ArrowRight")
    tells(said, f"{root['title']}, all-reduce", "transfer ")
    arrivals.press("Enter")
    page.get_by_role("button", name="Whole step").click()
    screenshot(page, "job_arrivals")
    page.get_by_role("button", name="Higher rows").click()
    eventually(lambda: waiting.get_attribute("aria-pressed"), "true")


def test_a_cell_leads_to_the_timeline_of_its_rank_at_its_step(page, jobs):
    data = tool(jobs, "job_steps", step="ProfilerStep#3")
    open_view(page, jobs, "/session/mesh/job", rank="rank 5", step="ProfilerStep#3")
    page.get_by_role("link", name="Timeline of rank 5 at this step").click()
    shown = wait_for_params(page, host=data["ranks"]["host"][5])
    begin, end = data["begin_ps"][5], data["end_ps"][5]
    assert int(shown["from"]) < begin < end < int(shown["to"])
    assert int(shown["to"]) - int(shown["from"]) < 1.2 * (end - begin)


def test_collectives_and_ranks_are_those_of_the_service(page, jobs):
    result = tool(jobs, "collectives", by="group")["rows"]
    ranks = tool(jobs, "job")["ranks"]
    open_view(page, jobs, "/session/mesh/job", rank="rank 5", step="ProfilerStep#3")
    rows = rows_of(page, "Collectives by kind and group")
    assert [(row["Kind"], row["Ranks"], row["Count"]) for row in rows] == [
        (one["kind"], one["group"], str(one["count"])) for one in result
    ]
    for title, name in (("Median wait", "wait_ps"), ("Median transfer", "transfer_ps")):
        assert [number_of(row[title]) for row in rows] == [almost(one[name]) for one in result]
    row = page.get_by_role("grid", name="Collectives by kind and group").locator(".row").first
    row.click()
    eventually(lambda: row.get_attribute("aria-selected"), "true")
    rows = rows_of(page, "Ranks of the job")
    assert [row["Rank"] for row in rows] == [one["title"] for one in ranks]
    for title, name in (("Mean step", "step_ps"), ("Waiting", "waiting_ps"), ("Late", "late_ps")):
        assert [number_of(row[title]) for row in rows] == [almost(one[name]) for one in ranks]
    page.get_by_role("link", name=ranks[6]["title"], exact=True).click()
    wait_for_params(page, host=ranks[6]["host"])


def test_the_memory_of_all_ranks_says_who_holds_what_more(page, jobs):
    result = tool(jobs, "job_memory", "fat")
    (apart,) = result["memory"]["differences"]
    open_view(page, jobs, "/session/fat/job")
    assert page.locator("canvas.heat").count() == 0
    panel = page.locator("section[aria-labelledby=peaks-of-ranks]")
    tells(panel, result["headline"][1:], f"What {apart['rank']} holds beside its peers")
    rows = rows_of(page, "What a rank holds differently")
    assert [(row["Op"], number_of(row["Bytes"]), number_of(row["Others"])) for row in rows] == [
        (one["op"], almost(one["bytes"]), almost(one["usual_bytes"])) for one in apart["held"]
    ]
    canvas = page.locator("canvas.peaks")
    canvas.focus()
    canvas.press("ArrowRight")
    second = result["ranks"][1]
    tells(page.locator("#announcer"), f"{second['title']}, peak ", "optimizer state ")
    screenshot(page, "job_memory")
    canvas.press("Enter")
    wait_for_params(page, host=second["host"])


def test_everybody_can_use_the_job(page, jobs):
    open_view(page, jobs, "/session/mesh/job", rank="rank 5", step="ProfilerStep#3")
    expect_accessible_in_both_schemes(page, "job")
    page.set_viewport_size({"width": 390, "height": 844})
    settle(page)
    expect_accessible_in_both_schemes(page, "job_390")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
