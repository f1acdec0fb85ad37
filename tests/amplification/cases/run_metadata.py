"""A RunMetadata that is worse than any session makes it (step_stats.proto, cost_graph.proto)."""

from tests.amplification.cases import graph_def
from tests.amplification.wire import many, number, part, repeated

_STEP_STATS, _COST, _PARTITION, _FUNCTIONS = 1, 2, 3, 4
_ZERO = 1_700_000_000_000_000


def _run(name: str, start: int, took: int, more: bytes = b"", label: str = "") -> bytes:
    times = number(2, _ZERO + start) + number(4, took) + number(5, took)
    return part(2, part(1, name) + times + (part(8, label) if label else b"") + more)


def _device(name: str, *content: bytes) -> bytes:
    return part(1, part(1, name) + b"".join(content))


def _stats(*devices: bytes) -> bytes:
    return part(_STEP_STATS, b"".join(devices))


_CPU = "/job:localhost/replica:0/task:0/device:CPU:0"


def empty_devices(size: int) -> bytes:
    return _stats(_device(_CPU, _run("a", 0, 5)), many(size, part(1)))


def devices(size: int) -> bytes:
    return _stats(repeated(size, lambda n: _device(f"/device:GPU:{n}", _run("a", n, 5))))


def empty_runs(size: int) -> bytes:
    return _stats(_device(_CPU, _run("a", 0, 5), many(size, part(2))))


def runs(size: int) -> bytes:
    return _stats(
        _device(_CPU, repeated(size, lambda n: _run(f"n{n}", n, 5, label=f"n{n} = Op{n}(a)")))
    )


def gpus(size: int) -> bytes:
    run = part(2, part(1, "a") + number(2, 5) + number(4, 1) + number(5, 1))
    return _stats(repeated(size, lambda n: _device(f"/gpu:{n}", run)))


def streams_of_one_gpu(size: int) -> bytes:
    streams = repeated(size, lambda n: _device(f"/gpu:0/stream:{n}", part(2, number(2, 5))))
    return _stats(_device("/device:GPU:0", _run("a", 5, 1)), streams)


def deep_scopes(size: int) -> bytes:
    return _stats(
        _device(_CPU, repeated(size, lambda n: _run(f"s{n}/" + "a/" * (size // 400) + "b", n, 5)))
    )


def threads(size: int) -> bytes:
    return _stats(_device(_CPU, repeated(size, lambda n: _run("a", n, 5, number(10, n)))))


def thread_names(size: int) -> bytes:
    names = repeated(size, lambda n: part(3, number(1, n) + part(2, f"t{n}")))
    return _stats(_device(_CPU, _run("a", 0, 5), names))


def nested_runs(size: int) -> bytes:
    count = size // 26
    return _stats(_device(_CPU, repeated(size, lambda n: _run("a", n, max(2 * count - 2 * n, 0)))))


def staircase(size: int) -> bytes:
    """Everything overlaps, so that every run needs a row of its own."""
    return _stats(_device(_CPU, repeated(size, lambda n: _run("a", n, size))))


def inputs_of_labels(size: int) -> bytes:
    """Each run takes from a thousand before it."""
    return _stats(
        _device(
            _CPU,
            repeated(
                size,
                lambda n: _run(
                    f"n{n}", n, 5,
                    label=f"n{n} = AddN({', '.join(f'n{k}' for k in range(max(0, n - 200), n))})",
                ),
            ),
        )
    )  # fmt: skip


def empty_memory(size: int) -> bytes:
    return _stats(_device(_CPU, _run("a", 0, 5, many(size, part(6)))))


def allocators(size: int) -> bytes:
    used = repeated(size, lambda n: part(6, part(1, f"a{n}") + number(2, 99) + number(3, 99)))
    return _stats(_device(_CPU, _run("a", 0, 5, used)))


def allocation_records(size: int) -> bytes:
    records = repeated(size, lambda n: part(6, number(1, _ZERO + n) + number(2, 1 << 40)))
    return _stats(_device(_CPU, _run("a", 0, 5, part(6, part(1, "cpu") + records))))


def empty_records(size: int) -> bytes:
    return _stats(_device(_CPU, _run("a", 0, 5, part(6, part(1, "cpu") + many(size, part(6))))))


def empty_outputs(size: int) -> bytes:
    return _stats(_device(_CPU, _run("a", 0, 5, many(size, part(7)))))


def outputs(size: int) -> bytes:
    def one(n: int) -> bytes:
        buffer = part(4, number(1, 9) + number(2, 16) + part(3, "cpu") + number(4, n + 1))
        return part(7, number(1, n) + part(3, number(1, 1) + buffer))

    return _stats(_device(_CPU, _run("a", 0, 5, repeated(size, one))))


def output_shapes(size: int) -> bytes:
    shape = part(2, many(size, part(2, number(1, 1 << 62))))
    return _stats(_device(_CPU, _run("a", 0, 5, part(7, part(3, shape)))))


def references(size: int) -> bytes:
    return _stats(_device(_CPU, _run("a", 0, 5, many(size, part(11)))))


def persistent_ids(size: int) -> bytes:
    return _stats(_device(_CPU, _run("a", 0, 5, part(12, part(5, b"\x01" * size)))))


def buffers(size: int) -> bytes:
    """One buffer that very many ops put out."""
    buffer = part(4, number(1, 9) + number(2, 16) + part(3, "cpu") + number(4, 1))
    output = part(7, part(3, number(1, 1) + buffer))
    return _stats(_device(_CPU, repeated(size, lambda n: _run(f"n{n}", n, 5, output))))


def persistent_steps(size: int) -> bytes:
    """Devices that name one op again and again, each with memory that stays."""
    used = part(6, part(1, "gpu_bfc") + number(2, 512) + number(3, 512) + number(4, 512))
    return _stats(_device(_CPU, repeated(size, lambda n: _run("a", n * 9, 5, used))))


def cost_nodes(size: int) -> bytes:
    return part(_COST, repeated(size, lambda n: part(1, part(1, f"n{n}") + number(3, n))))


def empty_cost_nodes(size: int) -> bytes:
    return part(_COST, part(1, part(1, "a")) + many(size, part(1)))


def cost_edges(size: int) -> bytes:
    node = part(1, part(1, "a") + many(size // 2, part(4)) + part(8, b"\1" * (size // 2)))
    return part(_COST, node)


def cost_outputs(size: int) -> bytes:
    return part(_COST, part(1, part(1, "a") + many(size, part(5))))


def costs(size: int) -> bytes:
    return part(_COST, part(1, part(1, "a")) + many(size, part(2)))


def partitions(size: int) -> bytes:
    node = part(1, part(1, "a") + part(2, "Op"))
    return _stats(_device(_CPU, _run("a", 0, 5))) + many(size, part(_PARTITION, node))


def empty_partitions(size: int) -> bytes:
    return _stats(_device(_CPU, _run("a", 0, 5))) + many(size, part(_PARTITION))


def function_graphs(size: int) -> bytes:
    graph = part(1, part(1, "a") + part(2, "Op"))
    return _stats(_device(_CPU, _run("a", 0, 5))) + many(
        size, part(_FUNCTIONS, part(1, graph) + part(2, graph) + part(3, graph))
    )


def deep_graph_and_runs(size: int) -> bytes:
    """Runs of the nodes of a graph with one deep scope."""
    graph = graph_def.deep_scopes(size // 2)
    name = "a/" * (size // 5) + "b"
    return _stats(_device(_CPU, _run(name, 0, 5), many(size // 4, part(2)))) + part(3, graph)


def chain(size: int) -> bytes:
    runs = repeated(size // 2, lambda n: _run(f"n{n}", n * 3, 5))
    return _stats(_device(_CPU, runs)) + part(_PARTITION, graph_def.chain(size // 2))


def dense(size: int) -> bytes:
    runs = repeated(size // 4, lambda n: _run(f"{chr(97 + n % 26)}{n // 26}", n * 3, 5))
    return _stats(_device(_CPU, runs)) + part(_PARTITION, graph_def.dense(3 * size // 4))


def sends(size: int) -> bytes:
    """What a device sends, and another receives, under one name."""
    send = repeated(
        size // 2, lambda n: _run("_SEND_0", n, 5, label=f"[Send] edge_1_{n} from a @b")
    )
    recv = repeated(
        size // 2, lambda n: _run("_RECV_0", n, 5, label=f"[Recv] edge_1_{n} from a @b")
    )
    return _stats(_device(_CPU, send), _device("/device:GPU:0", recv))


def kernels(size: int) -> bytes:
    """A GPU's streams, each with a run of an op of the host."""
    host = repeated(size // 3, lambda n: _run(f"n{n}", n, 5))
    streams = repeated(
        size // 2, lambda n: _device(f"/device:GPU:0/stream:{n}", _run(f"n{n}:MatMul", n, 5))
    )
    return _stats(_device(_CPU, host), streams)


def text(size: int) -> bytes:
    head = b'step_stats { dev_stats { device: "/device:CPU:0" node_stats { node_name: "a" }\n'
    return head + many(size, b"node_stats{}\n") + b"} }\n"


def json(size: int) -> bytes:
    head = b'{"stepStats":{"devStats":[{"device":"/device:CPU:0","nodeStats":[{"nodeName":"a"}'
    return head + many(size, b",{}") + b"]}]}}"
