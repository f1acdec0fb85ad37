"""What a server for a team counts, in Prometheus' text format.

Every label has few values: methods are those that a face announced with `Metrics.know`, others
count as ``other``; codes are status names or numbers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from peakline import __version__
from peakline.engine import Gate, ProfileCache
from peakline.service.metrics import Metrics
from peakline.tables.sql_process.pool import ENDINGS, SqlPool

_OTHER = "other"
_MOST_CODES = 64
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_CAPTURED_BYTES = tuple(1 << power for power in range(10, 34, 2))


class PrometheusMetrics(Metrics):
    """In a registry of its own, which `render` writes in Prometheus' text format."""

    def __init__(self) -> None:
        super().__init__()
        # A second series for each one would say nothing but its birthday.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = registry = CollectorRegistry()
        self._known: dict[str, frozenset[str]] = {}
        self._codes: set[str] = set()
        self._lock = threading.Lock()
        counter, gauge, histogram = (
            partial(Counter, registry=registry),
            partial(Gauge, registry=registry),
            partial(Histogram, registry=registry),
        )
        self._requests = counter(
            "peakline_requests",
            "Finished requests, by face (grpc, http), method and code.",
            ("face", "method", "code"),
        )
        self._seconds = histogram(
            "peakline_request_seconds",
            "How long requests took, from their arrival to the end of the answer.",
            ("face", "method"),
            buckets=_SECONDS,
        )
        self._in_flight = gauge(
            "peakline_in_flight", "Requests that have arrived and are not answered yet.", ("face",)
        )
        self._refused = counter(
            "peakline_refused",
            "Requests refused before any work: by token, host, origin, busy, size or connections.",
            ("reason",),
        )
        self._connections = gauge(
            "peakline_connections", "Connections that are open, by face.", ("face",)
        )
        self._hung_up = counter(
            "peakline_connections_closed",
            "Connections that were closed because the client kept the server waiting: for a head,"
            " a body, the reading of an answer, or the longest when all places were full.",
            ("reason",),
        )
        self._captures = counter(
            "peakline_captures",
            "Hosts that captures requested, by outcome (stored, saved_by_host, empty, failed).",
            ("outcome",),
        )
        self._capture_bytes = histogram(
            "peakline_capture_bytes",
            "Sizes of the profiles that captures stored.",
            buckets=_CAPTURED_BYTES,
        )
        self._upload_bytes = counter(
            "peakline_upload_bytes", "Bytes of uploaded files that were stored."
        )
        gauge("peakline_build_info", "Always 1; the version is a label.", ("version",)).labels(
            __version__
        ).set(1)
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)
        for face in ("grpc", "http"):
            self._in_flight.labels(face)
        for reason in _REASONS:
            self._refused.labels(reason)
        for reason in _WAITS:
            self._hung_up.labels(reason)
        for outcome in _OUTCOMES:
            self._captures.labels(outcome)

    def know(self, face: str, methods: Iterable[str]) -> None:
        """``methods`` are the names that may become labels of ``face``."""
        with self._lock:
            self._known[face] = self._known.get(face, frozenset()) | frozenset(methods)

    def observe(self, face: str, method: str, code: str, seconds: float) -> None:
        """A request ended with ``code`` after ``seconds``."""
        if method not in self._known.get(face, ()):
            method = _OTHER
        self._requests.labels(face, method, self._known_code(code)).inc()
        self._seconds.labels(face, method).observe(seconds)

    @contextmanager
    def in_flight(self, face: str) -> Iterator[None]:
        """A request is being answered while the block runs."""
        with super().in_flight(face), self._in_flight.labels(face).track_inprogress():
            yield

    def refused(self, reason: str) -> None:
        """A request was refused: one of `_REASONS`."""
        self._refused.labels(reason if reason in _REASONS else _OTHER).inc()

    def hung_up(self, reason: str) -> None:
        """A connection was closed by the server, which waited for its client: one of `_WAITS`."""
        self._hung_up.labels(reason if reason in _WAITS else _OTHER).inc()

    def watch_connections(self, face: str, count: Callable[[], int]) -> None:
        """Show what ``count`` returns at the moment of `render`."""
        self._connections.labels(face).set_function(count)

    def captured(self, outcome: str, size: int = 0) -> None:
        """One host's part of a capture ended; ``size`` is what was stored."""
        self._captures.labels(outcome if outcome in _OUTCOMES else _OTHER).inc()
        if size > 0:
            self._capture_bytes.observe(size)

    def uploaded(self, size: int) -> None:
        """A file of ``size`` bytes was stored."""
        self._upload_bytes.inc(size)

    def watch(
        self,
        *,
        gate: Gate | None = None,
        cache: ProfileCache | None = None,
        sql_pool: SqlPool | None = None,
    ) -> None:
        """Show what ``gate``, ``cache`` and ``sql_pool`` report at the moment of `render`."""
        if gate is not None:
            for name, doc in (
                ("running", "Requests that are worked on."),
                ("waiting", "Requests that wait for their turn."),
            ):
                gauge = Gauge(f"peakline_gate_{name}", doc, registry=self._registry)
                gauge.set_function(partial(getattr, gate, name))
        if cache is not None:
            self._registry.register(_CacheCollector(cache))
        if sql_pool is not None:
            self._registry.register(_SqlCollector(sql_pool))

    def render(self) -> bytes:
        """All numbers, as `CONTENT_TYPE`."""
        return generate_latest(self._registry)

    def _known_code(self, code: str) -> str:
        """``code``, unless there are so many already that somebody must be inventing them."""
        with self._lock:
            if code not in self._codes and len(self._codes) >= _MOST_CODES:
                return _OTHER
            self._codes.add(code)
        return code


_REASONS = frozenset(("token", "host", "origin", "busy", "size", "connections"))
_WAITS = frozenset(("head", "body", "reading", "full"))
_OUTCOMES = frozenset(("stored", "saved_by_host", "empty", "failed"))


class _CacheCollector(Collector):
    def __init__(self, cache: ProfileCache) -> None:
        self._cache = cache

    def collect(self) -> Iterator[Metric]:
        stats = self._cache.stats()
        yield GaugeMetricFamily(
            "peakline_cache_bytes", "Bytes of decoded profiles that are held.", value=stats.bytes
        )
        yield GaugeMetricFamily(
            "peakline_cache_profiles", "Decoded profiles that are held.", value=stats.profiles
        )
        for name, doc, value in (
            ("hits", "Requests that found their profile decoded.", stats.hits),
            ("misses", "Requests that had to open their profile.", stats.misses),
            ("evictions", "Profiles given up to make room.", stats.evictions),
        ):
            yield CounterMetricFamily(f"peakline_cache_{name}", doc, value=value)


class _SqlCollector(Collector):
    def __init__(self, pool: SqlPool) -> None:
        self._pool = pool

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily(
            "peakline_sql_processes", "Processes for SQL queries.", value=len(self._pool.pids)
        )
        yield GaugeMetricFamily(
            "peakline_sql_shared_bytes",
            "Bytes of columns that are shared with these processes.",
            value=self._pool.shared.nbytes,
        )
        ended = CounterMetricFamily(
            "peakline_sql_processes_ended",
            f"Processes for SQL queries that were ended, by reason ({', '.join(ENDINGS)}).",
            labels=("reason",),
        )
        for reason in ENDINGS:
            ended.add_metric((reason,), self._pool.ended[reason])
        yield ended
