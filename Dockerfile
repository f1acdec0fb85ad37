# A server for a team: `peakline serve` over the log directory that is mounted at /logs.
#
#     docker build --tag peakline .
#     docker run --publish 8080:8080 --publish 50051:50051 --volume "$PWD/logs:/logs" \
#         --volume "$PWD/tokens:/run/secrets/tokens:ro" peakline
#
# docs/install.md says more. Packages are those of requirements/run.lock, with their hashes, and
# the base that of DIGEST, where one is given: --build-arg DIGEST=sha256:...
ARG PYTHON=3.12
ARG DIGEST=

FROM python:${PYTHON}-slim${DIGEST:+@${DIGEST}} AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /source
COPY requirements/ requirements/
RUN python -m venv /opt/peakline \
    && /opt/peakline/bin/pip install --require-hashes --only-binary :all: --requirement requirements/run.lock \
    && python -m venv /opt/build \
    && /opt/build/bin/pip install --require-hashes --only-binary :all: --requirement requirements/build.lock \
    && /opt/build/bin/pip install --require-hashes --only-binary :all: --requirement requirements/compiler.lock
COPY pyproject.toml setup.py MANIFEST.in README.md LICENSE ./
COPY buildtools/ buildtools/
COPY src/ src/
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /wheel . \
    && /opt/peakline/bin/pip install --no-deps /wheel/peakline-*.whl

FROM python:${PYTHON}-slim${DIGEST:+@${DIGEST}}
RUN useradd --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin peakline \
    && install --directory --owner peakline --group peakline /logs
COPY --from=build /opt/peakline /opt/peakline
ENV PATH=/opt/peakline/bin:$PATH PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
VOLUME ["/logs"]
EXPOSE 8080 50051
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8080/healthz', timeout=4)"]
# Every address, so a token is needed. Other options follow the image's name, this one again among them.
ENTRYPOINT ["peakline", "serve", "/logs", "--host", "0.0.0.0"]
CMD ["--token-file", "/run/secrets/tokens"]
