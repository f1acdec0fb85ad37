"""``peakline serve``: the ProfileAnalysis service over gRPC and HTTP."""

from __future__ import annotations

import os

import click

from peakline.cli.options import Argument, executor_option, scheduler_option, workers_option
from peakline.errors import UsageError
from peakline.service.foreground import leave, serve_until_told
from peakline.text import parse_duration, parse_size

__all__ = ["serve"]


@click.command()
@click.argument(
    "logdirs",
    cls=Argument,
    metavar="LOGDIR...",
    nargs=-1,
    required=True,
    help="The log directories, or their URLs (s3://, gs://), that callers may name.",
)
@click.option(
    "--host",
    metavar="ADDRESS",
    default="127.0.0.1",
    help="The address to listen on. Any but this machine's own needs --token-file or --insecure.",
)
@click.option("--grpc-port", metavar="PORT", default=50051, help="The gRPC port; 0: any free one.")
@click.option("--http-port", metavar="PORT", default=8080, help="The HTTP port; 0: any free one.")
@click.option(
    "--profiler-port",
    metavar="PORT",
    default=8466,
    help="Where the profilers of running jobs listen, on every host.",
)
@click.option(
    "--worker",
    metavar="NAME=ADDRESS:PORT",
    multiple=True,
    help="A host's name and where its profiler listens; repeat for more.",
)
@click.option(
    "--allow-capture",
    metavar="PATTERN",
    multiple=True,
    help="Hosts that captures may reach besides this machine and the workers: a name,"
    " *.example.com, an address, 10.0.0.0/8; repeat for more.",
)
@click.option("--token-file", metavar="FILE", help="Tokens that callers must show, one a line.")
@click.option(
    "--tls-cert", metavar="FILE", help="The server's certificate chain (PEM): TLS on both."
)
@click.option("--tls-key", metavar="FILE", help="The certificate's private key (PEM).")
@click.option(
    "--tls-client-ca",
    metavar="FILE",
    help="Only clients with a certificate of this authority (PEM).",
)
@click.option(
    "--allow-origin",
    "allow_origins",
    metavar="ORIGIN",
    multiple=True,
    help="A site, https://host[:port], whose pages may ask and change; repeat for more.",
)
@click.option(
    "--allow-host",
    "allow_hosts",
    metavar="NAME",
    multiple=True,
    help="A further name of this server in HTTP's Host header; repeat for more.",
)
@click.option(
    "--max-message",
    metavar="SIZE",
    type=parse_size,
    default="2147483647",
    show_default=False,
    help="The largest gRPC message. Default: 2147483647 bytes, gRPC's own limit.",
)
@click.option(
    "--max-upload",
    metavar="SIZE",
    type=parse_size,
    default="4GiB",
    help="The largest file that may be uploaded.",
)
@click.option(
    "--max-unpacked",
    metavar="SIZE",
    type=parse_size,
    help="What a gzip file may expand to. Default: 4 GiB, at most half of the memory.",
)
@click.option(
    "--max-concurrent",
    metavar="N",
    type=int,
    help="Requests that are worked on at once. Default: one for each core, at least 4.",
)
@click.option(
    "--max-queued",
    metavar="N",
    default=64,
    help="Requests that may wait; more are refused as busy.",
)
@click.option(
    "--request-timeout",
    metavar="TIME",
    type=parse_duration,
    default="300s",
    help="How long one answer may take, where the caller sets no nearer deadline.",
)
@click.option(
    "--max-capture",
    metavar="TIME",
    type=parse_duration,
    default="600s",
    help="How long one capture may take.",
)
@click.option(
    "--grace",
    metavar="TIME",
    type=parse_duration,
    default="10s",
    help="How long running requests may go on after the server was told to end.",
)
@click.option(
    "--cache",
    metavar="SIZE",
    type=parse_size,
    help="Memory for decoded profiles. Default: 2GiB, at most a quarter of the machine's.",
)
@click.option(
    "--sql-memory",
    metavar="SIZE",
    type=parse_size,
    default="1GiB",
    help="Memory that one SQL query may take.",
)
@executor_option
@workers_option
@scheduler_option
@click.option(
    "--access-log",
    metavar="FILE",
    default="-",
    help="A JSON line for every request; - is standard error, off is none.",
)
@click.option("--insecure", is_flag=True, help="Serve everybody who reaches the ports.")
@click.option("--read-only", is_flag=True, help="Refuse captures and uploads.")
@click.pass_context
def serve(
    context: click.Context,
    logdirs: tuple[str, ...],
    host: str,
    grpc_port: int,
    http_port: int,
    profiler_port: int,
    worker: tuple[str, ...],
    allow_capture: tuple[str, ...],
    token_file: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    tls_client_ca: str | None,
    allow_origins: tuple[str, ...],
    allow_hosts: tuple[str, ...],
    max_message: int,
    max_upload: int,
    max_unpacked: int | None,
    max_concurrent: int | None,
    max_queued: int,
    request_timeout: int,
    max_capture: int,
    grace: int,
    cache: int | None,
    sql_memory: int,
    executor: str,
    workers: int | None,
    scheduler: str | None,
    access_log: str,
    *,
    insecure: bool,
    read_only: bool,
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

    names = [parse_worker(word) for word in worker]
    if len(dict(names)) < len(names):
        raise UsageError("--worker names one host twice")
    ended = serve_until_told(
        Settings(
            roots=logdirs,
            host=host,
            grpc_port=grpc_port,
            http_port=http_port,
            profiler_port=profiler_port,
            workers=dict(names),
            allow_capture=allow_capture,
            token_file=token_file,
            tls_cert=tls_cert,
            tls_key=tls_key,
            tls_client_ca=tls_client_ca,
            insecure=insecure,
            allowed_origins=allow_origins,
            allowed_hosts=allow_hosts,
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
            executor=executor,
            hosts_at_once=workers,
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
