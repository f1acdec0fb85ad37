"""A profiler whose answer is as large as it is told, in a process of its own.

    python big_peer.py BYTES

Prints its port; serves until its input ends. The profile is one buffer of zeros, inside a stat of
a plane, between two small planes with events.
"""

import sys
from concurrent import futures

import grpc


def field(number: int, content: bytes | int) -> bytes:
    """The tag and the length of a field, for content that follows."""
    length = content if isinstance(content, int) else len(content)
    out = bytearray([number << 3 | 2])
    while length > 127:
        out.append(length & 127 | 128)
        length >>= 7
    out.append(length)
    return bytes(out) + (b"" if isinstance(content, int) else content)


def answer(size: int) -> bytes:
    """A ProfileResponse with an XSpace of about ``size`` bytes."""
    event = field(4, b"\x08\x01\x10\x01\x18\x01")
    small = field(1, field(2, b"/host:CPU") + field(3, field(2, b"main") + event))
    # XPlane.stats is field 6, XStat.bytes_value field 6, each around the next.
    value = field(6, size)
    stat = field(6, len(value) + size)
    head = field(1, len(stat) + len(value) + size) + stat + value
    return b"".join((field(8, len(head) + size + len(small)), head, bytes(size), small))


def main() -> None:
    content = answer(int(sys.argv[1]))

    class Handler(grpc.GenericRpcHandler):
        def service(self, _details):
            return grpc.unary_unary_rpc_method_handler(lambda _request, _context: content)

    server = grpc.server(
        futures.ThreadPoolExecutor(2),
        handlers=[Handler()],
        options=[("grpc.max_send_message_length", 2**31 - 1)],
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    sys.stdin.read()
    server.stop(None).wait(5)


if __name__ == "__main__":
    main()
