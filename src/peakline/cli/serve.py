"""``peakline serve``: the ProfileAnalysis service over gRPC and HTTP."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from peakline.cli.serving import leave, serve_until_told
from peakline.cli.tool_hosts import ExecutorName, ExecutorOption, Scheduler, Workers
from peakline.errors import UsageError
from peakline.text import parse_duration, parse_size

__all__ = ["serve"]


def serve(
    context: typer.Context,
    logdirs: Annotated[
        list[str],
        typer.Argument(
            metavar="LOGDIR...",
            show_default=False,
            help="The log directories, or their URLs (s3://, gs://), that callers may name.",
        ),
    ],
    host: Annotated[
        str,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            help="The address to listen on. Any but this machine's own needs --token-file or"
            " --insecure.",
        ),
    ] = "127.0.0.1",
    grpc_port: Annotated[
        int, typer.Option("--grpc-port", metavar="PORT", help="The gRPC port; 0: any free one.")
    ] = 50051,
    http_port: Annotated[
        int, typer.Option("--http-port", metavar="PORT", help="The HTTP port; 0: any free one.")
    ] = 8080,
    profiler_port: Annotated[
        int,
        typer.Option(
            "--profiler-port",
            metavar="PORT",
            help="Where the profilers of running jobs listen, on every host.",
        ),
    ] = 8466,
    workers: Annotated[
        list[str] | None,
        typer.Option(
            "--worker",
            metavar="NAME=ADDRESS:PORT",
            help="A host's name and where its profiler listens; repeat for more.",
        ),
    ] = None,
    allow_capture: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-capture",
            metavar="PATTERN",
            help="Hosts that captures may reach besides this machine and the workers: a name,"
            " *.example.com, an address, 10.0.0.0/8; repeat for more.",
        ),
    ] = None,
    token_file: Annotated[
        str | None,
        typer.Option(
            "--token-file", metavar="FILE", help="Tokens that callers must show, one a line."
        ),
    ] = None,
    tls_cert: Annotated[
        str | None,
        typer.Option(
            "--tls-cert", metavar="FILE", help="The server's certificate chain (PEM): TLS on both."
        ),
    ] = None,
    tls_key: Annotated[
        str | None,
        typer.Option("--tls-key", metavar="FILE", help="The certificate's private key (PEM)."),
    ] = None,
    tls_client_ca: Annotated[
        str | None,
        typer.Option(
            "--tls-client-ca",
            metavar="FILE",
            help="Only clients with a certificate of this authority (PEM).",
        ),
    ] = None,
    allow_origins: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-origin",
            metavar="ORIGIN",
            help="A site, https://host[:port], whose pages may ask and change; repeat for more.",
        ),
    ] = None,
    allow_hosts: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="NAME",
            help="A further name of this server in HTTP's Host header; repeat for more.",
        ),
    ] = None,
    max_message: Annotated[
        int,
        typer.Option(
            "--max-message",
            metavar="SIZE",
            parser=parse_size,
            show_default=False,
            help="The largest gRPC message. Default: 2147483647 bytes, gRPC's own limit.",
        ),
    ] = "2147483647",  # type: ignore[assignment]  # the parser takes the text
    max_upload: Annotated[
        int,
        typer.Option(
            "--max-upload",
            metavar="SIZE",
            parser=parse_size,
            help="The largest file that may be uploaded.",
        ),
    ] = "4GiB",  # type: ignore[assignment]
    max_unpacked: Annotated[
        int | None,
        typer.Option(
            "--max-unpacked",
            metavar="SIZE",
            parser=parse_size,
            show_default=False,
            help="What a gzip file may expand to. Default: 4 GiB, at most half of the memory.",
        ),
    ] = None,
    max_concurrent: Annotated[
        int | None,
        typer.Option(
            "--max-concurrent",
            metavar="N",
            help="Requests that are worked on at once. Default: one for each core, at least 4.",
        ),
    ] = None,
    max_queued: Annotated[
        int,
        typer.Option(
            "--max-queued", metavar="N", help="Requests that may wait; more are refused as busy."
        ),
    ] = 64,
    request_timeout: Annotated[
        int,
        typer.Option(
            "--request-timeout",
            metavar="TIME",
            parser=parse_duration,
            help="How long one answer may take, where the caller sets no nearer deadline.",
        ),
    ] = "300s",  # type: ignore[assignment]
    max_capture: Annotated[
        int,
        typer.Option(
            "--max-capture",
            metavar="TIME",
            parser=parse_duration,
            help="How long one capture may take.",
        ),
    ] = "600s",  # type: ignore[assignment]
    grace: Annotated[
        int,
        typer.Option(
            "--grace",
            metavar="TIME",
            parser=parse_duration,
            help="How long running requests may go on after the server was told to end.",
        ),
    ] = "10s",  # type: ignore[assignment]
    cache: Annotated[
        int | None,
        typer.Option(
            "--cache",
            metavar="SIZE",
            parser=parse_size,
            help="Memory for decoded profiles. Default: 2GiB, at most a quarter of the machine's.",
        ),
    ] = None,
    sql_memory: Annotated[
        int,
        typer.Option(
            "--sql-memory",
            metavar="SIZE",
            parser=parse_size,
            help="Memory that one SQL query may take.",
        ),
    ] = "1GiB",  # type: ignore[assignment]
    executor: ExecutorOption = ExecutorName.THREADS,
    hosts_at_once: Workers = None,
    scheduler: Scheduler = None,
    access_log: Annotated[
        str,
        typer.Option(
            "--access-log",
            metavar="FILE",
            help="A JSON line for every request; - is standard error, off is none.",
        ),
    ] = "-",
    *,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Serve everybody who reaches the ports.")
    ] = False,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Refuse captures and uploads.")
    ] = False,
) -> None:
    """Serve log directories: sessions, analyses, captures, over gRPC and HTTP."""
    # gRPC's own lines, which it decides about when it is loaded.
    debug = bool(context.obj)
    os.environ.setdefault("GRPC_VERBOSITY", "INFO" if debug else "NONE")
    from peakline.service.settings import (
        Settings,
        default_cache_bytes,
        default_concurrency,
        default_unpacked_bytes,
        parse_worker,
    )

    names = [parse_worker(worker) for worker in workers or ()]
    if len(dict(names)) < len(names):
        raise UsageError("--worker names one host twice")
    ended = serve_until_told(
        Settings(
            roots=tuple(logdirs),
            host=host,
            grpc_port=grpc_port,
            http_port=http_port,
            profiler_port=profiler_port,
            workers=dict(names),
            allow_capture=tuple(allow_capture or ()),
            token_file=token_file,
            tls_cert=tls_cert,
            tls_key=tls_key,
            tls_client_ca=tls_client_ca,
            insecure=insecure,
            allowed_origins=tuple(allow_origins or ()),
            allowed_hosts=tuple(allow_hosts or ()),
            max_message_bytes=max_message,
            max_upload_bytes=max_upload,
            max_unpacked_bytes=default_unpacked_bytes() if max_unpacked is None else max_unpacked,
            max_concurrent=default_concurrency() if max_concurrent is None else max_concurrent,
            max_queued=max_queued,
            request_timeout_s=request_timeout / 1000,
            max_capture_s=max_capture / 1000,
            grace_s=grace / 1000,
            cache_bytes=default_cache_bytes() if cache is None else cache,
            sql_memory_bytes=sql_memory,
            executor=executor.value,
            hosts_at_once=hosts_at_once,
            scheduler=scheduler,
            read_only=read_only,
            access_log=access_log,
            debug=debug,
        ),
        lambda server: (
            f"{server.announcement()}; Ctrl-C ends it",
            f"the page is at {server.url}/",
        ),
    )
    leave(ended=ended)
