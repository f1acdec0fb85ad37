"""The container's file: read, and its commands run here, as far as they need no container."""

import json
import os
import re
import signal
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import httpx
import pytest
from tests.waiting import HANG_S, until

_PORT = re.compile(r" and (http://127\.0\.0\.1:\d+); Ctrl-C ends it")


@pytest.fixture(scope="module")
def steps(root):
    """The instructions, each with its text, in order; continued lines are joined."""
    text = re.sub(r"^#.*\n", "", (root / "Dockerfile").read_text("utf-8"), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [tuple(line.split(maxsplit=1)) for line in lines if line.strip()]


@pytest.fixture(scope="module")
def last(steps):
    """The instructions of the image that is made."""
    begin = max(number for number, (word, _) in enumerate(steps) if word == "FROM")
    return dict(steps[begin:])


def test_what_is_copied_exists_and_is_not_ignored(root, steps):
    rules = [
        line
        for line in (root / ".dockerignore").read_text("utf-8").splitlines()
        if line and not line.startswith("#")
    ]
    assert rules[0] == "*"
    sent = {line[1:] for line in rules if line.startswith("!")}
    sources = [
        source.rstrip("/")
        for word, text in steps
        if word == "COPY" and not text.startswith("--from")
        for source in text.split()[:-1]
    ]
    assert len(sources) > 5
    for source in sources:
        assert (root / source).exists()
        assert source in sent
    # And nothing more, but for one file that another rule would leave out.
    assert {name for name in sent if "/" not in name} == set(sources)
    assert all(fnmatch(name, "src/*") for name in sent if "/" in name)


def test_it_runs_as_nobody_in_particular(last):
    user, _, group = last["USER"].partition(":")
    assert int(user) == int(group) >= 1000
    assert json.loads(last["VOLUME"]) == ["/logs"]
    assert f"--uid {user} " in last["RUN"]


def test_it_installs_the_locks_and_the_wheel(steps):
    commands = " && ".join(text for word, text in steps if word == "RUN")
    assert set(re.findall(r"requirements/\S+\.lock", commands)) == {
        f"requirements/{name}.lock" for name in ("run", "build", "compiler")
    }
    assert commands.count("--require-hashes") == 3
    assert "/opt/peakline/bin/pip install --no-deps /wheel/peakline-*.whl" in commands


def test_its_command_serves_and_its_health_check_passes(last, tmp_path):
    """With other ports and places; without a token it would not listen on every address."""
    logs, tokens = tmp_path / "logs", tmp_path / "tokens"
    logs.mkdir()
    tokens.write_text("a-token-of-thirty-two-characters\n")
    tokens.chmod(0o600)
    entry, more = json.loads(last["ENTRYPOINT"]), json.loads(last["CMD"])
    assert entry[0] == "peakline"
    here = {"/logs": str(logs), "/run/secrets/tokens": str(tokens)}
    start = [sys.executable, "-m", "peakline", *(here.get(word, word) for word in entry[1:])]
    ports = ["--http-port", "0", "--grpc-port", "0"]
    refused = subprocess.run([*start, *ports], capture_output=True, text=True, check=False)
    assert (refused.returncode, "--token-file" in refused.stderr) == (2, True)

    options = [here.get(word, word) for word in more]
    said = tmp_path / "said"
    with (
        said.open("w") as stream,
        subprocess.Popen([*start, *options, *ports], stderr=stream, stdout=stream) as process,
    ):
        try:
            until(lambda: _PORT.search(said.read_text()) or process.poll() is not None)
            url = _PORT.search(said.read_text())[1]
            check = json.loads(last["HEALTHCHECK"].partition("CMD ")[2])
            assert check[0] == "python"
            mine = [word.replace("http://127.0.0.1:8080", url) for word in check[1:]]
            subprocess.run([sys.executable, *mine], check=True, env=_direct())
            assert mine != check[1:]
            assert httpx.get(f"{url}/api/sessions", timeout=HANG_S).status_code == 401
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(HANG_S) == 0
    broken = [sys.executable, *(word.replace("healthz", "nosuch") for word in mine)]
    assert subprocess.run(broken, check=False, env=_direct(), capture_output=True).returncode == 1


def _direct():
    """No proxy is between the check and the server."""
    return {**os.environ, "no_proxy": "*"}


def test_the_ports_are_those_of_the_server(last):
    from peakline.service.settings import Settings

    ports = {int(port) for port in last["EXPOSE"].split()}
    made = Settings(roots=(str(Path.cwd()),))
    assert ports == {made.http_port, made.grpc_port}
