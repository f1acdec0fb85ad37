"""A server that stores captures of hundreds of megabytes: on the disk, not in its memory."""

from contextlib import ExitStack, closing

import pytest
from tests.service.bad_peers import big
from tests.service.grpc_client import Client
from tests.service.process_numbers import costs_of, files_under, tell
from tests.service.server_process import running_server

MB = 10**6
MOST = 48 * MB
"""What a host may take while its answer comes: its blocks, the places of its planes, a thread."""


@pytest.mark.parametrize(
    ("hosts", "size"),
    [(1, 40 * MB), pytest.param(1, 300 * MB, marks=pytest.mark.soak),
     pytest.param(4, 300 * MB, marks=pytest.mark.soak)],
)  # fmt: skip
def test_an_answer_goes_to_the_disk_as_it_comes(empty, hosts, size):
    with ExitStack() as stack:
        names = {"small": stack.enter_context(big(MB))}
        names |= {f"w{number}": stack.enter_context(big(size)) for number in range(hosts)}
        workers = [word for one in names.items() for word in ("--worker", "=".join(one))]
        server = stack.enter_context(running_server(empty, "--access-log", "off", *workers))
        client = stack.enter_context(closing(Client(f"127.0.0.1:{server.grpc_port}")))
        request = {"duration_ms": 1}
        client.call("NewSession", session_id="small", hosts=["small"], request=request)
        before = costs_of(server).peak
        large = [name for name in names if name != "small"]
        client.call("NewSession", session_id="large", hosts=large, request=request)
        grown = costs_of(server).peak - before
        tell(f"{hosts} x {size / MB:.0f} MB: peak {grown / MB:.0f} MB above {before / MB:.0f} MB")
        assert grown < MOST * hosts
        assert server.end() == 0
    stored = [empty / name for name in files_under(empty) if "large" in name]
    assert [size < file.stat().st_size < size + 1000 for file in stored] == [True] * hosts
    for file in stored:
        file.unlink()
