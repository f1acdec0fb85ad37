"""Traces in Chrome's format that neither PyTorch nor TensorFlow writes."""

from tests.amplification.wire import many, repeated

_HEAD = b'{"traceEvents":[{"ph":"X","pid":1,"tid":1,"ts":0,"dur":5,"name":"a","cat":"cpu_op"}'
_HOSTLESS = b'{"traceEvents":[{}'
_TAIL = b"]}"


def _trace(events: bytes) -> bytes:
    return _HEAD + events + _TAIL


def _event(name: str, start: float, took: float, more: str = "", tid: str = "1") -> bytes:
    return (
        f',{{"ph":"X","pid":1,"tid":{tid},"ts":{start},"dur":{took},"name":"{name}"{more}}}'
    ).encode()


def _metadata(what: str, name: str) -> bytes:
    return f',{{"ph":"M","pid":1,"tid":1,"name":"{what}","args":{{"name":"{name}"}}}}'.encode()


def _devices(size: int) -> bytes:
    event = ',{{"ph":"X","pid":1,"tid":1,"ts":{0},"dur":1,"cat":"kernel","args":{{"device":{0}}}}}'
    return repeated(size, lambda n: event.format(n).encode())


def _threads(size: int) -> bytes:
    on_device = ',"cat":"kernel","args":{"device":0}'
    return _event("a", 0, 1, on_device) + repeated(
        size, lambda n: f',{{"ph":"X","pid":1,"tid":{n + 2},"ts":1}}'.encode()
    )


def devices(size: int) -> bytes:
    return _trace(_devices(size))


def long_name_of_devices(size: int) -> bytes:
    return _trace(_metadata("process_name", "x" * (size // 2)) + _devices(size // 2))


def padded_name_of_devices(size: int) -> bytes:
    return _trace(_metadata("thread_name", "x" * (size // 2) + " ") + _devices(size // 2))


def names_of_devices(size: int) -> bytes:
    return _trace(many(size // 2, _metadata("process_name", "x")) + _devices(size // 2))


def long_name_of_threads(size: int) -> bytes:
    return _HOSTLESS + _metadata("process_name", "x " * (size // 4)) + _threads(size // 2) + _TAIL


def names_of_threads(size: int) -> bytes:
    return _HOSTLESS + many(size // 2, _metadata("process_name", "x")) + _threads(size // 2) + _TAIL


def devices_and_steps(size: int) -> bytes:
    mark = ',{{"ph":"X","pid":2,"ts":{0},"dur":1,"name":"ProfilerStep#{0}"}}'
    return _trace(_devices(size // 2) + repeated(size // 2, lambda n: mark.format(n).encode()))


def steps_in_each_other(size: int) -> bytes:
    """Steps of one thread that all run all of its ops."""
    count = size // 200
    steps = repeated(size // 3, lambda n: _event("ProfilerStep#1", n, 9 * count))
    ops = repeated(2 * size // 3, lambda n: _event(f"{n}", count + n, 0.5, ',"cat":"cpu_op"'))
    return _trace(steps + ops)


def empty_events(size: int) -> bytes:
    return _trace(many(size, b",{}"))


def short_events(size: int) -> bytes:
    return _trace(many(size, b',{"ph":"X","ts":1}'))


def nulls(size: int) -> bytes:
    return _trace(many(size, b",0"))


def threads(size: int) -> bytes:
    return _trace(repeated(size, lambda n: _event("a", n, 5, tid=f'"t{n}"')))


def processes(size: int) -> bytes:
    return _trace(repeated(size, lambda n: f',{{"ph":"X","pid":{n},"ts":{n}}}'.encode()))


def names(size: int) -> bytes:
    return _trace(repeated(size, lambda n: _event(f"n{n}", n * 9, 5, f',"cat":"c{n}"')))


def nested(size: int) -> bytes:
    count = size // 60
    return _trace(repeated(size, lambda n: _event("a", n, max(2 * count - 2 * n, 0))))


def nested_ops(size: int) -> bytes:
    """Ops of PyTorch, each inside the one before."""
    count = size // 90
    more = ',"cat":"cpu_op","args":{"External id":1}'
    return _trace(repeated(size, lambda n: _event("aten::mm", n, max(2 * count - 2 * n, 0), more)))


def nested_python(size: int) -> bytes:
    count = size // 120

    def one(n: int) -> bytes:
        more = f',"cat":"python_function","args":{{"Python id":{n},"Python parent id":{n - 1}}}'
        return _event(f"a.py({n}): f", n, max(2 * count - 2 * n, 0), more)

    return _trace(repeated(size, one))


def nested_modules(size: int) -> bytes:
    count = size // 120

    def one(n: int) -> bytes:
        more = f',"cat":"python_function","args":{{"Python id":{n},"Python module id":{n}}}'
        return _event(f"nn.Module: M_{n}", n, max(2 * count - 2 * n, 0), more)

    return _trace(repeated(size, one))


def begins(size: int) -> bytes:
    return _trace(many(size, b',{"ph":"B","ts":1}'))


def ends(size: int) -> bytes:
    return _trace(many(size, b',{"ph":"E","ts":1}'))


def staircase(size: int) -> bytes:
    return _trace(repeated(size, lambda n: _event("a", n, size, ',"cat":"kernel"')))


def flows(size: int) -> bytes:
    """One id that begins and ends again and again."""
    return _trace(
        many(size // 2, b',{"ph":"s","id":1,"ts":1}')
        + many(size // 2, b',{"ph":"f","id":1,"ts":1}')
    )


def flows_of_threads(size: int) -> bytes:
    """An arrow from each thread to the next."""

    def one(n: int) -> bytes:
        at = f'"pid":1,"tid":{n},"ts":{n}'
        ends = f',{{"ph":"s","id":{n},{at}}},{{"ph":"f","id":{n - 1},"bp":"e",{at}}}'
        return _event("a", n, 1, tid=str(n)) + ends.encode()

    return _trace(repeated(size, one))


def annotated_threads(size: int) -> bytes:
    """Each with two turns of a loop of its own."""
    category = ',"cat":"user_annotation"'

    def one(n: int) -> bytes:
        return b"".join(_event(f"s{n}", n + 5 * k, 1, category, str(n)) for k in range(2))

    return _trace(repeated(size, one))


def asynchronous(size: int) -> bytes:
    return _trace(
        many(size // 2, b',{"ph":"b","id":1,"ts":1}')
        + many(size // 2, b',{"ph":"e","id":1,"ts":1}')
    )


def correlations(size: int) -> bytes:
    launch = ',"cat":"cuda_runtime","args":{"correlation":7,"External id":1}'
    kernel = ',"cat":"kernel","args":{"correlation":7,"stream":7,"device":0}'
    return _trace(
        repeated(size // 2, lambda _: _event("cudaLaunchKernel", 1, 2, launch))
        + repeated(size // 2, lambda n: _event("k", n * 3, 2, kernel))
    )


def external_ids(size: int) -> bytes:
    more = ',"cat":"cpu_op","args":{"External id":7}'
    return _trace(
        repeated(size // 2, lambda n: _event(f"aten::a{n}", 9 * n, 5, more))
        + repeated(size // 2, lambda n: _event("k", n * 3, 2, more.replace("cpu_op", "kernel")))
    )


def steps(size: int) -> bytes:
    return _trace(
        repeated(size, lambda n: _event(f"ProfilerStep#{n}", n * 9, 9, ',"cat":"user_annotation"'))
    )


def overlapping_steps(size: int) -> bytes:
    return _trace(
        repeated(
            size // 2,
            lambda n: _event(f"ProfilerStep#{n}", n, size, ',"cat":"user_annotation"', tid=f"{n}"),
        )
        + repeated(size // 2, lambda n: _event("aten::mm", n, 1, ',"cat":"cpu_op"'))
    )


def args(size: int) -> bytes:
    keys = b",".join(f'"k{n}":{n}'.encode() for n in range(size // 12))
    return _trace(b',{"ph":"X","pid":1,"tid":1,"ts":1,"dur":2,"name":"b","args":{' + keys + b"}}")


def empty_args(size: int) -> bytes:
    return _trace(many(size, b',{"ph":"X","ts":1,"args":{"":0}}'))


def nested_args(size: int) -> bytes:
    deep = b'{"a":' * 250 + b"1" + b"}" * 250
    return _trace(many(size, b',{"ph":"X","ts":1,"args":' + deep + b"}"))


def deep_json(size: int) -> bytes:
    return _trace(
        b',{"ph":"X","ts":1,"args":{"a":' + b"[" * (size // 2) + b"]" * (size // 2) + b"}}"
    )


def escapes(size: int) -> bytes:
    return _trace(_event("\\u0041" * (size // 6), 1, 2))


def long_name(size: int) -> bytes:
    return _trace(_event("x" * size, 1, 2))


def deep_scopes(size: int) -> bytes:
    return _trace(repeated(size, lambda n: _event(f"s{n}/" + "a/" * (size // 400) + "b", n * 9, 5)))


def shapes(size: int) -> bytes:
    dims = "[" + ",".join(["9"] * (size // 16)) + "]"
    more = f',"cat":"cpu_op","args":{{"Input Dims":[{dims}],"Input type":["float"]}}'
    return _trace(repeated(size, lambda n: _event("aten::mm", n * 9, 5, more)))


def counters(size: int) -> bytes:
    return _trace(
        repeated(size, lambda n: f',{{"ph":"C","ts":{n},"name":"c{n}","args":{{"v":1}}}}'.encode())
    )


def counter_series(size: int) -> bytes:
    series = b",".join(f'"s{n}":{n}'.encode() for n in range(size // 12))
    return _trace(b',{"ph":"C","pid":1,"ts":1,"name":"c","args":{' + series + b"}}")


def memory(size: int) -> bytes:
    """Allocations that are never freed, each of a device of its own."""
    return _trace(
        repeated(
            size,
            lambda n: (
                f',{{"ph":"i","name":"[memory]","ts":{n},"tid":1,"args":{{"Addr":{n},"Bytes":512,'
                f'"Device Type":1,"Device Id":{n % 5000},"Total Allocated":{512 * n}}}}}'
            ).encode(),
        )
    )


def metadata(size: int) -> bytes:
    return _trace(
        repeated(
            size,
            lambda n: (
                f',{{"ph":"M","pid":{n},"tid":{n},"name":"thread_name","args":{{"name":"t{n}"}}}}'
            ).encode(),
        )
    )


def root_fields(size: int) -> bytes:
    fields = b"".join(f',"k{n}":{{}}'.encode() for n in range(size // 12))
    return _HEAD + b"]" + fields + b"}"


def plain_list(size: int) -> bytes:
    return b'[{"ph":"X","pid":1,"tid":1,"ts":0,"dur":5,"name":"a"}' + many(size, b",{}") + b"]"


def bad_times(size: int) -> bytes:
    return _trace(
        repeated(size, lambda n: f',{{"ph":"X","ts":1e{n % 400},"dur":1e{n % 400}}}'.encode())
    )


def long_numbers(size: int) -> bytes:
    return _trace(b',{"ph":"X","ts":' + b"9" * size + b',"dur":1}')
