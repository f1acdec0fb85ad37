"""The numbers of a server: what is counted, with few labels, and that each is documented."""

from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from peakline.engine import CacheStats, Gate
from peakline.service.prometheus import PrometheusMetrics


@dataclass
class _Cache:
    cache_stats: CacheStats

    def stats(self):
        return self.cache_stats


def _samples(metrics):
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(metrics.render().decode())
        for sample in family.samples
    }


def test_requests_are_counted_by_face_method_and_code():
    metrics = PrometheusMetrics()
    metrics.know("grpc", ["S/EnumSessions"])
    metrics.observe("grpc", "S/EnumSessions", "OK", 0.2)
    metrics.observe("grpc", "S/EnumSessions", "OK", 0.4)
    metrics.observe("grpc", "S/EnumSessions", "NOT_FOUND", 0.1)
    result = _samples(metrics)
    assert result["peakline_requests_total", "OK", "S/EnumSessions", "grpc"] == 2
    assert result["peakline_requests_total", "NOT_FOUND", "S/EnumSessions", "grpc"] == 1
    assert result["peakline_request_seconds_count", "S/EnumSessions", "grpc"] == 3
    assert abs(result["peakline_request_seconds_sum", "S/EnumSessions", "grpc"] - 0.7) < 1e-9


def test_it_is_quiet_once_no_request_began_or_ended_for_a_while(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("peakline.service.metrics.time.monotonic", lambda: now[0])
    metrics = PrometheusMetrics()
    assert metrics.is_quiet(0.3)
    with metrics.in_flight("http"):
        assert not metrics.is_quiet(0.3)
        now[0] += 1
        assert metrics.is_quiet(0.3), "one that lasts holds nothing up"
    assert not metrics.is_quiet(0.3)
    now[0] += 0.3
    assert metrics.is_quiet(0.3 - 1e-9)


def test_callers_cannot_make_labels():
    metrics = PrometheusMetrics()
    metrics.know("http", ["GET /healthz"])
    for number in range(1000):
        metrics.observe("http", f"GET /{number}", f"CODE{number}", 0)
        metrics.observe("grpc", "GET /healthz", "OK", 0)
        metrics.refused(f"reason{number}")
        metrics.captured(f"outcome{number}")
    result = _samples(metrics)
    methods = {key[2:] for key in result if key[0] == "peakline_requests_total"}
    assert all("other" in labels for labels in methods)
    assert len(methods) < 70
    assert result["peakline_refused_total", "other"] == 1000
    assert result["peakline_captures_total", "other"] == 1000


def test_what_runs_waits_and_is_kept_is_shown_as_it_is_now():
    metrics, gate = PrometheusMetrics(), Gate(2, 2)
    cache = _Cache(CacheStats(hits=5, misses=4, evictions=3, bytes=2, profiles=1))
    metrics.watch(gate=gate, cache=cache)
    with gate.enter(), metrics.in_flight("http"):
        result = _samples(metrics)
        assert result["peakline_gate_running",] == 1
        assert result["peakline_in_flight", "http"] == 1
    result = _samples(metrics)
    assert result["peakline_gate_running",] == 0
    assert result["peakline_in_flight", "http"] == 0
    chosen = {
        key[0].removeprefix("peakline_cache_"): result[key] for key in result if "cache" in key[0]
    }
    assert chosen == {
        "hits_total": 5, "misses_total": 4, "evictions_total": 3, "bytes": 2, "profiles": 1,
    }  # fmt: skip


def test_captures_and_uploads_are_counted_with_their_sizes():
    metrics = PrometheusMetrics()
    metrics.captured("stored", 5000)
    metrics.captured("failed")
    metrics.uploaded(7)
    metrics.refused("busy")
    result = _samples(metrics)
    assert result["peakline_captures_total", "stored"] == 1
    assert result["peakline_captures_total", "failed"] == 1
    assert result["peakline_captures_total", "empty"] == 0
    assert (result["peakline_capture_bytes_count",], result["peakline_capture_bytes_sum",]) == (
        1,
        5000,
    )
    assert result["peakline_upload_bytes_total",] == 7
    assert result["peakline_refused_total", "busy"] == 1


def test_two_servers_in_one_process_count_apart():
    one, other = PrometheusMetrics(), PrometheusMetrics()
    one.uploaded(1)
    assert _samples(other)["peakline_upload_bytes_total",] == 0


def test_every_metric_is_documented(root):
    page = (root / "docs" / "serve.md").read_text(encoding="utf-8")
    metrics = PrometheusMetrics()
    metrics.watch(
        gate=Gate(1, 1),
        cache=_Cache(CacheStats(hits=0, misses=0, evictions=0, bytes=0, profiles=0)),
    )
    metrics.uploaded(1)
    names = {
        line.split()[2]
        for line in metrics.render().decode().splitlines()
        if line.startswith("# TYPE") and not line.split()[2].endswith("_created")
    }
    assert len(names) > 15
    assert sorted(name for name in names if f"`{name}`" not in page) == []
