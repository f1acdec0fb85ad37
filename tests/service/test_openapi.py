"""The OpenAPI document: complete, and kept by the server whatever is asked (schemathesis)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import positive_data_acceptance
from tests.service.conftest import SESSIONS
from tests.service.http_client import serving

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "openapi.json"
CNN = SESSIONS["tf2_cnn"]
WORD = "s3cret-t0ken"
EXAMPLES = 12

EXCLUDED = {
    # Whether a text is a query, bytes are a profile, a tool has a format is in no schema.
    "/api/sessions/{session_id}/sql": [positive_data_acceptance],
    "/api/uploads": [positive_data_acceptance],
    "/api/sessions/{session_id}/tools/{tool}": [positive_data_acceptance],
    # And whether a figure takes a parameter.
    "/api/sessions/{session_id}/figures/{figure}": [positive_data_acceptance],
    "/data/plugin/profile/data": [positive_data_acceptance],
    # And nobody listens where a capture would go: 503.
    "/api/captures": [positive_data_acceptance, not_a_server_error],
}
schema = schemathesis.openapi.from_dict(
    json.loads(DOCUMENT.read_text()),
    config=SchemathesisConfig.from_dict(
        {
            "generation": {"max-examples": EXAMPLES, "deterministic": True, "database": "none"},
        }
    ),
)


@pytest.fixture(scope="module")
def face(sample_logdir, tmp_path_factory):
    place = tmp_path_factory.mktemp("openapi")
    shutil.copytree(sample_logdir, place / "logs")
    with serving(
        place, place / "logs", token=WORD, sql_memory_bytes=64 << 20, request_timeout_s=20.0
    ) as running:
        yield running


@schema.parametrize()
@settings(suppress_health_check=list(HealthCheck))
def test_every_answer_is_one_that_is_described(case, face):
    answer = case.call_and_validate(
        base_url=face.url,
        headers={"Authorization": f"Bearer {WORD}"},
        excluded_checks=EXCLUDED.get(case.operation.path, []),
    )
    assert answer.status_code not in {500, 502}


@pytest.fixture(scope="module")
def document(face):
    answer = face.client.get("/openapi.json", headers={"Authorization": f"Bearer {WORD}"})
    return answer.json()


def test_the_document_is_the_one_in_docs(document):
    assert document == json.loads(DOCUMENT.read_text()), "run scripts/generate_openapi.py"


def test_every_route_is_in_the_document(document):
    assert sorted(document["paths"]) == [
        "/",
        "/api/captures",
        "/api/compare",
        "/api/figures",
        "/api/server",
        "/api/sessions",
        "/api/sessions/{session_id}",
        "/api/sessions/{session_id}/figures/{figure}",
        "/api/sessions/{session_id}/sql",
        "/api/sessions/{session_id}/tables",
        "/api/sessions/{session_id}/tools/{tool}",
        "/api/tables",
        "/api/tools",
        "/api/uploads",
        "/assets/{name}",
        "/data/plugin/profile/data",
        "/data/plugin/profile/hosts",
        "/data/plugin/profile/run_tools",
        "/data/plugin/profile/runs",
        "/healthz",
        "/metrics",
        "/openapi.json",
    ]


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
