import pytest
from tests.each_row import each_row

from peakline.capture import parse_address
from peakline.errors import UsageError


@each_row(
    ("text", "address"),
    [
        ("localhost:9012", "localhost:9012"),
        ("10.0.0.2:8466", "10.0.0.2:8466"),
        ("grpc://worker-0.pool.example:1", "worker-0.pool.example:1"),
        ("[::1]:9931", "[::1]:9931"),
        ("tpu_worker:065535", "tpu_worker:65535"),
        (" a:2 ", "a:2"),
    ],
)
def test_addresses(text, address):
    assert parse_address(text) == address


@each_row(
    "text",
    [
        "", ":", "localhost", "localhost:", ":9012", "a:b", "a:1:2", "::1:9012", "a:0", "a:65536",
        "a:99999999999999999999", "a:-1", "a:+1", "a:1 2", "a:\uff11", "a/b:1", "../x:1", "http://a:1",
        "grpc://grpc://a:1", "unix:///tmp/s:1", "dns:///a:1", "a b:1", "-a:1", "a-:1", "a?x=1:1",
        "a#b:1", "a%2f:1", "a\x00:1", "a\n:1", "[::1]", "[a]:1", "[]:1", "[::1:1", "é:1",
        "[fe80::1%eth0/..]:1", "a" * 300 + ":1",
    ],
)  # fmt: skip
def test_what_is_no_address(text):
    with pytest.raises(UsageError) as raised:
        parse_address(text)
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 300


def test_a_scheme_of_grpc_is_only_a_name():
    # gRPC itself would open a Unix socket, or a file of another resolver, for these.
    from peakline.capture.address import channel_target

    for text in ("unix:80", "xds:80", "ipv4:80"):
        assert channel_target(parse_address(text)) == f"dns:///{text}"
