"""Files that are dropped on the list, or chosen, become sessions."""

import re

import pytest
from tests.web.looking import api, eventually, expect_accessible, open_view, screenshot, tells
from tests.web.samples import SAMPLES, make_logdir

DROP = """async ([name, bytes]) => {
  const data = new DataTransfer();
  data.items.add(new File([new Uint8Array(bytes)], name));
  for (const kind of ["dragover", "drop"]) {
    document.body.dispatchEvent(
      new DragEvent(kind, {dataTransfer: data, bubbles: true, cancelable: true}));
  }
}"""


@pytest.fixture(scope="module")
def server(run_server, tmp_path_factory):
    """One that takes uploads; it begins with two sessions."""
    logdir = make_logdir(tmp_path_factory.mktemp("writable"), "tf2_cnn", "leak_list")
    with run_server(logdir) as running:
        yield running


def choose(page, *files, name=None):
    page.get_by_role("button", name="Upload …").first.click()
    page.get_by_label("Files", exact=True).set_input_files(list(map(str, files)))
    if name is not None:
        page.get_by_label("Session name").fill(name)


def send(page):
    page.get_by_role("dialog").get_by_role("button", name="Upload", exact=True).click()


def test_a_chosen_file_is_stored_and_opened(page, server):
    (file,) = SAMPLES["jax_cpu"]
    open_view(page, server)
    choose(page, file)
    eventually(page.get_by_label("Session name").input_value, "vm")
    expect_accessible(page)
    screenshot(page, "upload")
    send(page)
    page.wait_for_url(re.compile("#/session/vm/summary"))
    stored = api(server, "sessions/vm")
    assert stored["hosts"] == ["vm"]
    assert stored["bytes"] == file.stat().st_size


def test_a_dropped_file_is_uploaded_under_a_name_of_the_readers_choice(page, server):
    (file,) = SAMPLES["oom_report"]
    open_view(page, server)
    page.evaluate(DROP, [file.name, list(file.read_bytes())])
    field = page.get_by_label("Session name")
    eventually(field.input_value, "tf_bfc_oom")
    field.fill("the third night")
    send(page)
    page.wait_for_url(re.compile("#/session/the%20third%20night/summary"))
    assert "memory_findings" in api(server, "sessions/the%20third%20night")["tools"]


def test_several_files_are_sent_one_after_the_other(page, server):
    (heap,), (log,) = SAMPLES["jax_heap"], SAMPLES["memory_log"]
    open_view(page, server)
    choose(page, heap, log)
    send(page)
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("link", name="session_default_allocator").wait_for()
    dialog.get_by_role("link", name="device_memory").wait_for()
    screenshot(page, "upload_several")
    page.keyboard.press("Escape")
    page.get_by_role("grid").get_by_role("link", name="device_memory").wait_for()


def test_what_is_no_profile_is_refused_with_the_formats_there_are(page, server, tmp_path):
    page.allowed_failures.append("/api/uploads")
    junk = tmp_path / "notes.bin"
    junk.write_bytes(bytes(range(256)) * 4096)
    open_view(page, server)
    choose(page, junk)
    send(page)
    alert = page.get_by_role("dialog").get_by_role("alert")
    tells(alert, "not a profile that Peakline reads", "XSpace")
    screenshot(page, "upload_refused")


def test_a_name_that_is_taken_is_answered_with_another_one(page, server):
    (file,) = SAMPLES["leak_list"]
    open_view(page, server)
    choose(page, file)
    field = page.get_by_label("Session name")
    # The suggested name is free already; the reader insists.
    eventually(field.input_value, "leak_list_2")
    field.fill("leak_list")
    send(page)
    tells(page.get_by_role("dialog").get_by_role("alert"), "there is a session of that name")
    eventually(field.input_value, "leak_list_2")


def test_a_name_that_somebody_else_took_meanwhile_is_told_by_the_server(page, server):
    page.allowed_failures.append("/api/uploads")
    (file,) = SAMPLES["leak_list"]
    # The list of the page does not know the session.
    page.route("**/api/sessions?*", lambda route: route.fulfill(json=[]))
    open_view(page, server)
    choose(page, file, name="leak_list")
    send(page)
    tells(page.get_by_role("dialog").get_by_role("alert"), "leak_list")
    eventually(page.get_by_label("Session name").input_value, "leak_list_2")


def test_a_file_beyond_the_servers_limit_is_not_even_sent(serve, page, tmp_path):
    open_view(page, serve(make_logdir(tmp_path, "tf2_cnn"), max_upload_bytes=1000))
    choose(page, *SAMPLES["leak_list"])
    send(page)
    tells(page.get_by_role("dialog").get_by_role("alert"), "--max-upload")
    page.watch.hear()
    assert not any("/api/uploads" in url for url in page.watch.requests)


def test_the_token_is_sent_with_the_file(serve, page, tmp_path):
    page.allowed_failures.append("/api/server")
    word = "a-t0ken-of-the-tests"
    tokens = tmp_path / "tokens"
    tokens.write_text(word)
    tokens.chmod(0o600)
    server = serve(make_logdir(tmp_path / "logs", "tf2_cnn"), token_file=str(tokens), token=word)
    # Over also when it is refused: what nobody reads would keep it open.
    with page.expect_event("requestfinished", lambda one: one.url.endswith("/api/server")):
        page.goto(f"{server.url}/#/")
    page.get_by_role("dialog").get_by_role("textbox").fill(server.token)
    page.keyboard.press("Enter")
    page.get_by_role("grid").wait_for()
    choose(page, *SAMPLES["jax_cpu"])
    send(page)
    page.wait_for_url(re.compile("#/session/vm/summary"))
    assert api(server, "sessions/vm")["hosts"] == ["vm"]
