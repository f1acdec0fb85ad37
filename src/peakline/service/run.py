"""A server from its start to its end: both faces over one engine, under one set of rules."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from peakline.engine import Engine
from peakline.errors import PeaklineError
from peakline.extras import require
from peakline.repository import is_url
from peakline.service.access import Access
from peakline.service.access_log import AccessLog
from peakline.service.addresses import join_port, literal_address
from peakline.service.background import Indexer, WarmUp
from peakline.service.core import Analysis
from peakline.service.http import create_app
from peakline.service.http.page_routes import editions
from peakline.service.http_server import HttpServer, bind
from peakline.service.metrics import Metrics
from peakline.service.settings import Settings, check_settings, is_loopback

if TYPE_CHECKING:
    from peakline.service.grpc_server import GrpcServer

_COUNTING_S = 10.0
"""How long the announcement waits for the number of sessions; a bucket may take minutes."""
_BESIDE_S = 5.0
"""How long threads that serve no request may take to end, at most; no longer than the grace."""
_CLEANING_S = 5.0
_LEAST_ANSWERS = 256 << 20
"""Bytes of answers that are held, however small the cache of profiles is."""
_LOOK_S = 0.02
_QUIET_S = 0.3
"""What is done beforehand waits until no request has come for so long."""


class Server:
    """The gRPC and the HTTP face of one set of log directories.

    `start` returns when both accept requests. Raises UsageError for settings that cannot work and
    for ports that cannot be had, RemoteError for a cluster that does not answer; nothing is left
    open then.
    """

    def __init__(self, settings: Settings) -> None:
        check_settings(settings)
        self.settings = settings
        self.access = Access(settings)
        self.metrics = _metrics_of(settings)
        self.log = AccessLog(
            settings.access_log, debug=settings.debug, hide=self.access.without_tokens
        )
        self.engine = Engine(
            cache_bytes=settings.cache_bytes,
            answers_bytes=max(_LEAST_ANSWERS, settings.cache_bytes // 4),
            max_unpacked_bytes=settings.max_unpacked_bytes,
            executor=settings.executor,
            workers=settings.hosts_at_once,
            scheduler=settings.scheduler,
            sql_processes=settings.max_concurrent,
        )
        self.analysis = Analysis(
            settings, access=self.access, engine=self.engine, metrics=self.metrics
        )
        self.metrics.watch(
            gate=self.analysis.gate, cache=self.engine.cache, sql_pool=self.engine.sql_pool
        )
        analysis = self.analysis
        gates = (analysis.gate, analysis.lists)

        def is_busy() -> bool:
            # Who opens the page sends dozens of requests for its files, with gaps between them:
            # each would wait for the interpreter while a session is looked at.
            return any(gate.running for gate in gates) or not self.metrics.is_quiet(_QUIET_S)

        self._indexer = Indexer(analysis.sessions, analysis.look, is_busy)
        analysis.on_unfinished = self._indexer.ask
        self._warm_up = WarmUp(then=self._index, first=self._prepare)
        self._grpc: GrpcServer | None = None
        self._http: HttpServer | None = None
        self._stopping = threading.Lock()
        self._started = False

    @property
    def grpc_port(self) -> int | None:
        """The port of the gRPC face; None for a server that has none."""
        if self.settings.grpc_port is None:
            return None
        if self._grpc is None:
            raise PeaklineError("the server does not run")
        return self._grpc.port

    @property
    def http_port(self) -> int:
        """The port of the HTTP face."""
        if self._http is None:
            raise PeaklineError("the server does not run")
        return self._http.port

    def start(self) -> None:
        """Bind both ports, then serve both faces; the kernels are loaded beside it."""
        settings = self.settings
        self._clean()
        self.engine.executor.start()
        sockets = bind(settings.host, settings.http_port)
        try:
            app = create_app(settings, self.analysis, self.access, self.log, self.metrics)
            self._http = HttpServer(app, settings, sockets, self.metrics)
            if settings.grpc_port is not None:
                from peakline.service.grpc_server import start_grpc

                self._grpc = start_grpc(
                    settings, self.analysis, self.access, self.log, self.metrics
                )
            self._http.start()
        except BaseException:
            for listener in sockets:
                listener.close()
            self.stop(grace_s=0)
            raise
        self._started = True
        self._warm_up.start()
        self.log.event("started", grpc_port=self.grpc_port, http_port=self.http_port)

    def stop(self, grace_s: float | None = None) -> bool:
        """Accept nothing more, let running requests end for ``grace_s`` seconds, cancel the rest.

        May be called again and from any thread. Returns whether every thread has ended.
        """
        grace = self.settings.grace_s if grace_s is None else grace_s
        end = time.monotonic() + min(grace, _BESIDE_S)
        with self._stopping:
            grpc_server, self._grpc = self._grpc, None
            http_server, self._http = self._http, None
            if http_server is not None:
                http_server.begin_stop(grace)
            if grpc_server is not None:
                grpc_server.stop(grace)
            if http_server is not None:
                http_server.stop(grace)
            self._settle()
            ended = self._indexer.stop(max(_LOOK_S, end - time.monotonic()))
            ended &= self._warm_up.stop(max(_LOOK_S, end - time.monotonic()))
            if self._started:
                self.log.event("stopped")
                self._started = False
            self.engine.close()
            self.log.close()
        return ended

    def _clean(self, *, nested: bool = False) -> None:
        """Remove what servers and captures that were killed left; before anybody stores anything.

        Nested runs, which take longer to find, are cleaned beside the first requests.
        """
        if self.settings.read_only:
            return
        for root in self.settings.roots:
            with suppress(PeaklineError):  # a list says what is wrong
                self.access.repository(root).clean(nested=nested)

    def _prepare(self) -> None:
        """What any first request would wait for."""
        with suppress(OSError):  # the page says what it has lost
            editions.prepare()
        self.engine.sql_pool.start()

    def _index(self) -> None:
        """Look at all local sessions; those of a bucket, which cost transfers, when listed."""
        self._clean(nested=True)
        for root in self.settings.roots:
            if not is_url(root):
                try:
                    self._indexer.ask(self.access.repository(root))
                except PeaklineError:
                    continue  # a list says what is wrong
        self._indexer.start()

    def _settle(self) -> None:
        """Let work that was cancelled clean up: a capture removes what it has begun."""
        analysis = self.analysis
        gates = (analysis.gate, analysis.captures.gate, analysis.uploads.gate)
        end = time.monotonic() + _CLEANING_S
        while any(gate.running or gate.waiting for gate in gates) and time.monotonic() < end:
            time.sleep(_LOOK_S)

    def cautions(self) -> list[str]:
        """What the operator should know before others reach the server; one line for each."""
        settings = self.settings
        result = self.access.cautions()
        if settings.tls_cert is None and not is_loopback(settings.host):
            result.append(
                "without --tls-cert everything, tokens included, crosses the network in the clear"
            )
        if settings.insecure and not self.access.guarded and not is_loopback(settings.host):
            result.append("--insecure: everybody who reaches these ports may read, capture, upload")
        return result

    def reload(self) -> None:
        """Read the token file and open the access log anew; what fails stays as it was.

        One line in the access log says that everything is new, or what failed.
        """
        reasons = []
        for renew in (self.access.reload_tokens, self.log.reopen):
            try:
                renew()
            except PeaklineError as error:
                reasons.append(str(error))
        if reasons:
            self.log.event("reload failed", reason="; ".join(reasons))
        else:
            self.log.event("reloaded")

    def announcement(self) -> str:
        """One line: where the server listens, what it serves, and who may ask."""
        faces = [self.url]
        if self.grpc_port is not None:
            secured = "grpcs" if self.settings.tls_cert else "grpc"
            place = join_port(_reachable(self.settings.host), self.grpc_port)
            faces.insert(0, f"{secured}://{place}")
        return f"serving {', '.join(self._roots_listed())} on {' and '.join(faces)}"

    @property
    def url(self) -> str:
        """How this machine reaches the HTTP face, without a slash at the end."""
        place = join_port(_reachable(self.settings.host), self.http_port)
        return f"{self.settings.scheme}://{place}"

    def _roots_listed(self) -> list[str]:
        """Every root with the number of its sessions, as far as they are counted in time."""
        counts: dict[str, str] = {}

        def count() -> None:
            for root in self.settings.roots:
                try:
                    result = self.access.inside(self.access.repository(root).runs())
                except PeaklineError as error:
                    counts[root] = f"cannot be read now: {error}"
                else:
                    counts[root] = f"{len(result)} session{'' if len(result) == 1 else 's'}"

        counter = threading.Thread(target=count, name="count-sessions", daemon=True)
        counter.start()
        counter.join(_COUNTING_S)
        answer = dict(counts)
        return [
            f"{root} ({answer.get(root, 'sessions not counted yet')})"
            for root in self.settings.roots
        ]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.stop(grace_s=0 if kind is not None else None)


def _metrics_of(settings: Settings) -> Metrics:
    """What counts: a server without a gRPC face is one reader's own, and nobody collects that."""
    if settings.grpc_port is None:
        return Metrics()
    require("serve", "serve")
    from peakline.service.prometheus import PrometheusMetrics

    return PrometheusMetrics()


def _reachable(host: str) -> str:
    """How this machine itself reaches a server that is bound to ``host``."""
    address = literal_address(host)
    if address is not None and address.is_unspecified:
        return "127.0.0.1" if address.version == 4 else "::1"
    return host
