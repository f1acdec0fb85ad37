"""The OpenAPI document: complete, and kept by the server whatever is asked (schemathesis)."""

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tests.service.conftest import SESSIONS
from tests.service.http_client import serving
from tests.sweeps import each_sample

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "openapi.json"
CNN = SESSIONS["tf2_cnn"]
WORD = "s3cret-t0ken"
PATHS = json.loads(DOCUMENT.read_text())["paths"]
OPERATIONS = [(path, method) for path in PATHS for method in PATHS[path]]
OF_EACH_KIND = {
    "/api/compare": "parameters that need each other",
    "/api/sessions": "a list, and pages of it",
    "/api/sessions/{session_id}/sql": "a document is sent",
    "/api/sessions/{session_id}/tools/{tool}": "parameters of tools",
    "/api/uploads": "bytes are sent",
    "/data/plugin/profile/runs": "addresses of XProf",
    "/healthz": "no parameter",
}
"""Paths that every run tries, and why; the night tries all."""

ANYTHING = {
    # Whether a text is a query, bytes are a profile, a tool has a format is in no schema.
    "/api/sessions/{session_id}/sql",
    "/api/uploads",
    "/api/sessions/{session_id}/tools/{tool}",
    # And whether a figure takes a parameter.
    "/api/sessions/{session_id}/figures/{figure}",
    "/data/plugin/profile/data",
    "/data/plugin/profile/data_csv",
    # And nobody listens where a capture would go: 503.
    "/api/captures",
    "/data/plugin/profile/capture_profile",
}
"""Where what fits the schema may be refused all the same."""


@pytest.fixture(scope="module")
def face(sample_logdir, tmp_path_factory):
    place = tmp_path_factory.mktemp("openapi")
    shutil.copytree(sample_logdir, place / "logs")
    with serving(
        place, place / "logs", token=WORD, sql_memory_bytes=64 << 20, request_timeout_s=20.0
    ) as running:
        yield running


@pytest.fixture(scope="module")
def described():
    """The document as Schemathesis reads it. What that makes of an operation takes seconds, so
    nothing is made of it before the test runs.
    """
    import schemathesis
    from schemathesis.config import SchemathesisConfig

    generation = {"deterministic": True, "database": "none"}
    return schemathesis.openapi.from_dict(
        json.loads(DOCUMENT.read_text()),
        config=SchemathesisConfig.from_dict({"generation": generation}),
    )


@pytest.mark.parametrize("examples", [3, pytest.param(300, marks=pytest.mark.soak)])
@each_sample("operation", OPERATIONS, chosen=lambda operation: operation[0] in OF_EACH_KIND)
def test_every_answer_is_one_that_is_described(face, described, operation, examples):
    """What the schema says is tried at its bounds, and ``examples`` more that fit it or do not."""
    from schemathesis.checks import not_a_server_error
    from schemathesis.generation.feedback import FeedbackSources
    from schemathesis.pytest._test_builder import build_operation_test
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    path, method = operation
    excluded = [positive_data_acceptance] if path in ANYTHING else []
    if path == "/api/captures":
        excluded.append(not_a_server_error)

    @settings(suppress_health_check=list(HealthCheck), max_examples=examples)
    def check(case):
        tried.append(case)
        answer = case.call_and_validate(
            base_url=face.url, headers={"Authorization": f"Bearer {WORD}"}, excluded_checks=excluded
        )
        assert answer.status_code not in {500, 502}

    tried = []
    build_operation_test(
        config=described.config,
        operation=described[path][method.upper()],
        test_func=check,
        given_kwargs={},
        feedback=FeedbackSources(),
    )()
    assert tried


@pytest.fixture(scope="module")
def document(face):
    return face.client.get("/openapi.json", headers={"Authorization": f"Bearer {WORD}"}).json()


def test_the_document_is_the_one_in_docs(document):
    assert document == json.loads(DOCUMENT.read_text()), "run scripts/generate_openapi.py"


def test_every_route_is_in_the_document(document):
    assert sorted(document["paths"]) == [
        "/", "/api/captures", "/api/compare", "/api/figures", "/api/server", "/api/sessions",
        "/api/sessions/{session_id}", "/api/sessions/{session_id}/figures/{figure}",
        "/api/sessions/{session_id}/sql", "/api/sessions/{session_id}/tables",
        "/api/sessions/{session_id}/tools/{tool}", "/api/tables", "/api/tools", "/api/uploads",
        "/api/views", "/assets/{name}", "/data/plugin/profile/capture_profile",
        "/data/plugin/profile/config", "/data/plugin/profile/data",
        "/data/plugin/profile/data_csv", "/data/plugin/profile/hosts",
        "/data/plugin/profile/module_list", "/data/plugin/profile/run_tools",
        "/data/plugin/profile/runs", "/data/plugin/profile/version", "/healthz", "/metrics",
        "/openapi.json",
    ]  # fmt: skip


def test_everything_is_described(document):
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            place = f"{method} {path}"
            assert operation["summary"], place
            assert {"400", "401", "421", "500"} <= operation["responses"].keys(), place
            for parameter in operation.get("parameters", []):
                assert parameter["description"], (place, parameter["name"])
            for status, answer in operation["responses"].items():
                assert answer["description"], (place, status)
                if int(status) >= 400:
                    assert list(answer["content"]) == ["application/problem+json"], (place, status)


def test_a_wrong_token_is_refused_everywhere(document, face):
    without = {"/healthz": 200, "/": 200, "/assets/{name}": 404}
    for path, operations in document["paths"].items():
        for method in operations:
            answer = face.client.request(method, path, headers={"Authorization": "Bearer no"})
            assert answer.status_code == without.get(path, 401), path
