"""``peakline serve``: what it refuses at its start, each in one line; and its page."""

import re
import socket

from tests.each_row import each_row

from peakline.cli.main import app


@each_row(
    ("words", "reason"),
    [
        ([], "Missing argument"),
        (["missing"], "no such directory"),
        ([".", "--host", "::"], "--insecure"),
        ([".", "--worker", "w0"], "--worker 'w0'"),
        ([".", "--worker", "w=a:1", "--worker", "w=b:1"], "names one host twice"),
        ([".", "--allow-capture", "http://x"], "--allow-capture"),
        ([".", "--allow-origin", "*"], "--allow-origin"),
        ([".", "--allow-host", "a b"], "--allow-host"),
        ([".", "--token-file", "missing"], "--token-file missing: cannot be read"),
        ([".", "--access-log", "missing/x"], "--access-log missing/x: cannot be written"),
        ([".", "--tls-cert", "x"], "belong together"),
        ([".", "--cache", "much"], "no size"),
        ([".", "--grace", "soon"], "no time"),
        ([".", "--http-port", "x"], "--http-port"),
    ],
)
def test_what_cannot_be_served_is_one_line_and_exit_2(
    peakline, tmp_path, monkeypatch, words, reason
):
    monkeypatch.chdir(tmp_path)
    run = peakline("serve", *words)
    assert (run.code, run.out) == (2, "")
    assert reason in run.err
    assert run.err.count("\n") == 1


@each_row("face", ["grpc", "http"])
def test_a_port_in_use_is_one_line_and_exit_2(peakline, tmp_path, face):
    other = {"grpc": "http", "http": "grpc"}[face]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        run = peakline("serve", tmp_path, f"--{face}-port", port, f"--{other}-port", 0)
    assert (run.code, run.out) == (2, "")
    assert run.err.count("\n") == 1
    assert str(port) in run.err


def test_weak_tokens_are_told_before_the_server_runs(peakline, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text("short", encoding="utf-8")
    tokens.chmod(0o644)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        run = peakline("serve", tmp_path, "--token-file", tokens, "--http-port", port)
    assert [line.split(":")[1] for line in run.err.splitlines()[:-1]] == [" warning", " warning"]
    assert "short" not in run.err.replace("shorter", "")


def test_an_option_on_the_page_has_its_default(root):
    page = (root / "docs" / "serve.md").read_text(encoding="utf-8")
    result = re.findall(r"^\| `(--[a-z-]+)[^`]*` \|([^|]*)\|", page, re.MULTILINE)
    rows = {option: default.strip() for option, default in result}
    options = [
        parameter
        for parameter in app.get_command(None, "serve").params
        if parameter.param_type_name == "option"
    ]
    assert set(rows) <= {option.opts[0] for option in options}
    assert len(rows) > 10
    for option in options:
        default = option.to_info_dict()["default"]
        if option.opts[0] in rows and default is not None and option.show_default is not False:
            assert rows[option.opts[0]] == f"`{default}`", option.opts
