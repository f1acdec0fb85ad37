import contextlib
import socket

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from tests.each_row import each_row
from tests.service.certificates import Authority
from tests.service.conftest import SESSIONS
from tests.service.grpc_client import Client
from tests.service.test_grpc_analysis import failure
from tests.waiting import HANG_S

from peakline.errors import UsageError

TOKEN = "a-token-of-27-characters.-_"  # noqa: S105 (a test's own)


def bearer(text):
    return (("authorization", text),)


def listed(client, **options):
    return [session.session_id for session in client.call("EnumSessions", **options).sessions]


# -- tokens ---------------------------------------------------------------------------------------


@pytest.fixture
def guarded(serve, sample_logdir):
    return serve(sample_logdir, token=TOKEN)


def test_the_token_opens_every_method(serve, sample_logdir):
    client = serve(sample_logdir, token=TOKEN).client
    assert len(listed(client, metadata=bearer(f"Bearer {TOKEN}"))) == len(SESSIONS)


@each_row(
    "metadata",
    [
        (),
        bearer(""), bearer(TOKEN), bearer("Bearer"), bearer("Bearer wrong"),
        bearer(f"Bearer {TOKEN}x"), bearer(f"Bearer {TOKEN[:-1]}"), bearer(f"Basic {TOKEN}"),
        (*bearer(f"Bearer {TOKEN}"), *bearer("Bearer wrong")),
        (("x-authorization", f"Bearer {TOKEN}"),),
    ],
)  # fmt: skip
@each_row("method", ["EnumSessions", "NewSession", "Monitor", "Profile"])
def test_no_other_text_opens_one(guarded, method, metadata):
    before = len(guarded.parts.log_lines())
    status, details = failure(guarded.client.call, method, metadata=metadata)
    assert (status, "Bearer TOKEN" in details) == ("UNAUTHENTICATED", True)
    *_, line = lines = guarded.parts.log_lines()
    assert len(lines) == before + 1
    assert line["method"].endswith(method)
    assert line["code"] == "UNAUTHENTICATED"
    assert line["seconds"] > 0
    assert line["request_id"]
    assert TOKEN not in guarded.parts.log_path.read_text()
    assert f'_total{{reason="token"}} {len(lines)}.0' in (guarded.parts.metrics.render().decode())


def test_a_token_in_the_place_of_a_request_id_is_not_logged(serve, sample_logdir):
    served = serve(sample_logdir, token=TOKEN)
    mine, token = (("x-request-id", "mine-1"),), (("x-request-id", TOKEN),)
    shown = bearer(f"Bearer {TOKEN}")
    for metadata in (mine, token, (*shown, *mine), (*shown, *token)):
        with contextlib.suppress(grpc.RpcError):
            served.client.call("EnumSessions", metadata=metadata)
    ids = [line["request_id"] for line in served.parts.log_lines()]
    assert (ids[0], ids[2]) == ("mine-1", "mine-1")
    assert TOKEN not in served.parts.log_path.read_text()


def test_reflection_needs_the_token_and_health_does_not(serve, sample_logdir):
    channel = serve(sample_logdir, token=TOKEN).client.channel
    ask = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    status, _ = failure(list, ask(iter([request]), timeout=HANG_S))
    assert status == "UNAUTHENTICATED"
    (answer,) = ask(iter([request]), timeout=HANG_S, metadata=bearer(f"Bearer {TOKEN}"))
    assert answer.list_services_response.service
    check = health_pb2_grpc.HealthStub(channel).Check
    assert check(health_pb2.HealthCheckRequest(), timeout=HANG_S).status == 1


@pytest.mark.nightly
def test_a_method_that_does_not_exist_needs_the_token_too(serve, sample_logdir):
    channel = serve(sample_logdir, token=TOKEN).client.channel
    stub = channel.unary_unary("/tensorflow.ProfileAnalysis/DeleteEverything")
    assert failure(stub, b"", timeout=HANG_S)[0] == "UNAUTHENTICATED"
    metadata = bearer(f"Bearer {TOKEN}")
    assert failure(stub, b"", timeout=HANG_S, metadata=metadata)[0] == "UNIMPLEMENTED"


# -- TLS ------------------------------------------------------------------------------------------


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path, "authority")


@pytest.fixture
def connect():
    clients = []

    def make(served, *, trusted, pair=None):
        credentials = grpc.ssl_channel_credentials(
            trusted, *(() if pair is None else (pair.key, pair.certificate))
        )
        clients.append(Client(f"localhost:{served.server.port}", credentials))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


def test_tls_clients_that_trust_the_authority_are_answered(
    serve, sample_logdir, authority, connect
):
    pair = authority.issue("server")
    served = serve(sample_logdir, tls_cert=str(pair.certificate_path), tls_key=str(pair.key_path))
    assert listed(connect(served, trusted=authority.certificate))
    assert failure(served.client.call, "EnumSessions", timeout=HANG_S)[0] == "UNAVAILABLE"


def test_other_clients_do_not_take_the_server_for_real(
    serve, sample_logdir, tmp_path, authority, connect
):
    pair = authority.issue("server")
    served = serve(sample_logdir, tls_cert=str(pair.certificate_path), tls_key=str(pair.key_path))
    stranger = connect(served, trusted=Authority(tmp_path, "other").certificate)
    assert failure(stranger.call, "EnumSessions", timeout=HANG_S)[0] == "UNAVAILABLE"


def test_with_a_client_authority_only_its_clients_are_answered(
    serve, sample_logdir, tmp_path, authority, connect
):
    pair, clients = authority.issue("server"), Authority(tmp_path, "clients")
    served = serve(
        sample_logdir,
        tls_cert=str(pair.certificate_path),
        tls_key=str(pair.key_path),
        tls_client_ca=str(clients.path),
    )
    trusted = authority.certificate
    assert listed(connect(served, trusted=trusted, pair=clients.issue("friend")))
    for pair in (None, authority.issue("of-another-authority")):
        status, _ = failure(
            connect(served, trusted=trusted, pair=pair).call, "EnumSessions", timeout=HANG_S
        )
        assert status == "UNAVAILABLE"


def test_a_key_that_does_not_fit_is_one_line(serve, sample_logdir, authority):
    pair, other = authority.issue("server"), authority.issue("other")
    with pytest.raises(UsageError, match="the certificate and the key do not fit"):
        serve(sample_logdir, tls_cert=str(pair.certificate_path), tls_key=str(other.key_path))
    with pytest.raises(UsageError, match=r"--tls-key .*: cannot be read: No such file"):
        serve(sample_logdir, tls_cert=str(pair.certificate_path), tls_key="/nowhere")


@pytest.mark.nightly
def test_a_taken_port_is_one_line(serve, sample_logdir):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"--grpc-port {port}: cannot listen on 127"):
            serve(sample_logdir, grpc_port=port)


@pytest.mark.nightly
def test_two_servers_never_share_a_port(serve, sample_logdir):
    port = serve(sample_logdir).server.port
    with pytest.raises(UsageError, match="in use"):
        serve(sample_logdir, grpc_port=port)
