"""The job: its numbers are the service's, its map leads to collectives and timelines."""

import pytest
from tests.jobs.simulated import SCENARIOS
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
    with run_server(logdir) as server:
        yield server


def tool(server, name, **query):
    return api(server, f"sessions/mesh/tools/{name}", **query)


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
    page.get_by_label("Host").select_option("all hosts")
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
        assert number_of(numbers[text]) == almost(matrix["rows"][place][1] * matrix["unit_ps"])
    assert root["title"] in canvas.get_attribute("aria-label")
    page.get_by_role("button", name="Waiting").click()
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
    eventually(
        lambda: page.get_by_role("button", name="Waiting").get_attribute("aria-pressed"), "true"
    )


def test_a_cell_leads_to_the_timeline_of_its_rank_at_its_step(page, jobs):
    data = tool(jobs, "job_steps", step="ProfilerStep#3")
    open_view(page, jobs, "/session/mesh/job", rank="rank 5", step="ProfilerStep#3")
    page.get_by_role("link", name="Timeline of rank 5 at this step").click()
    shown = wait_for_params(page, host=data["ranks"]["host"][5])
    begin, end = data["begin_ps"][5], data["end_ps"][5]
    assert int(shown["from"]) < begin < end < int(shown["to"])
    assert int(shown["to"]) - int(shown["from"]) < 1.2 * (end - begin)


def test_everybody_can_use_the_job(page, jobs):
    open_view(page, jobs, "/session/mesh/job", rank="rank 5", step="ProfilerStep#3")
    expect_accessible_in_both_schemes(page, "job")
    page.set_viewport_size({"width": 390, "height": 844})
    settle(page)
    expect_accessible_in_both_schemes(page, "job_390")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
