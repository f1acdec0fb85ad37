"""A server that sends the beginning of an answer and dies of SIGKILL, in a process of its own.

    python dying_peer.py PORT [when-told]

Prints a line when it listens; the port may be bound by others, who keep it when this process is
gone. Dies when the other side has taken the beginning of its answer, and when-told not
before it is given a line. It speaks as much HTTP/2 as that takes: frames of RFC 9113, and response
headers in the literal form of RFC 7541.
"""

import os
import signal
import socket
import sys

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, PING = 0, 1, 4, 6
ACK, END_HEADERS = 1, 4
STATUS_200 = b"\x88"
CONTENT_TYPE = b"\x0f\x10\x10application/grpc"


def frame(kind: int, flags: int, stream: int, content: bytes = b"") -> bytes:
    return (
        len(content).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + content
    )


def main() -> None:
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), reuse_port=True)
    sys.stdout.write("listens\n")
    sys.stdout.flush()
    connection, _ = listener.accept()
    stream = connection.makefile("rb")
    assert stream.read(len(PREFACE)) == PREFACE
    connection.sendall(frame(SETTINGS, 0, 0))
    while True:
        head = stream.read(9)
        stream.read(int.from_bytes(head[:3], "big"))
        kind, flags = head[3], head[4]
        if kind == SETTINGS and not flags & ACK:
            connection.sendall(frame(SETTINGS, ACK, 0))
        elif kind == HEADERS:
            call = int.from_bytes(head[5:], "big")
            promised = (1 << 20).to_bytes(4, "big")
            connection.sendall(
                frame(HEADERS, END_HEADERS, call, STATUS_200 + CONTENT_TYPE)
                + frame(DATA, 0, call, b"\0" + promised + b"\x42\xfa\xff\x3f" + bytes(1000))
                + frame(PING, 0, 0, bytes(8))
            )
        elif kind == PING and flags & ACK:
            # Frames are read in order: all that was sent before has been taken.
            break
    if "when-told" in sys.argv:
        sys.stdin.readline()
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
