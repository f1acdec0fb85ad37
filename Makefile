# Everything runs from the installed package, never from src/. `make help` lists the targets.
#
# Stamp files under .venv, .venv-peers and .venv-frameworks remember what was installed: a second
# run is quick, a changed source is built and installed again. A .venv that holds a developer's
# editable install is kept; the targets here put the built wheel in its place (`make develop` puts
# it back).

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.SUFFIXES:
unexport PYTHONPATH
unexport VIRTUAL_ENV
# Without what is compiled once every worker compiles all tests again, and every verb the package.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
VENV := .venv
PEERS := .venv-peers
PY := $(VENV)/bin/python
PEERS_PY := $(PEERS)/bin/python
FRAMEWORKS := .venv-frameworks
FRAMEWORKS_PY := $(FRAMEWORKS)/bin/python
SITE := .venv-site
PEERS_ENV := PEAKLINE_PEERS_PYTHON="$(CURDIR)/$(PEERS_PY)"
PIP := -m pip --disable-pip-version-check --quiet
# Exactly the versions and files of a lock (requirements/README.md), from whatever index there is.
LOCKED := $(PIP) install --require-hashes --requirement
SIDE_BY_SIDE = --numprocesses $(WORKERS) --dist loadfile

# What runs and checks the page's modules in tests. Nothing of it is needed to build, serve or use
# them.
NODE := build/node
WITH_NODE := PATH="$(CURDIR)/$(NODE)/venv/bin:$$PATH"

# UPGRADE=1 takes the newest versions, else those in the locks stay.
UPGRADE ?=
LOCK = build/uv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
    --custom-compile-command "make lock" $(if $(UPGRADE),--upgrade) --output-file

# Workers of the tests, each of which takes one file after the other, and minutes of the soak, or
# the damaged files that each of its two kinds of kernels reads, however long that takes.
WORKERS ?= auto
MINUTES ?= 60
MUTANTS ?= 0

# Those that compare with the real programs; .ci/run leaves out what asks them about random inputs.
PEERS_TESTS ?= conformance

# 1 records the pairs of tests/diagnosis again.
RECORD ?=

# Of the release that `make changelog` writes.
VERSION ?= draft

SOURCES := $(shell find src buildtools -type f -not -path '*__pycache__*' -not -path '*.egg-info*' \
    -not -name '*.so' -not -name '*.pxd' -print) src/peakline/kernels/bits.pxd \
    setup.py README.md LICENSE pyproject.toml
EDITABLE := $(wildcard $(VENV)/lib/python*/site-packages/__editable__.peakline-*.pth)

.PHONY: help kernels demo test nightly soak lint page conformance answers diagnosis protobuf pythons sdist dist bench guard schema docs site pictures lock changelog sbom format develop clean FORCE
FORCE:

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):.*##\(.*\)/  make \1\t\2/p' Makefile

demo: $(VENV)/.installed  ## install, and explain the memory of the bundled session
	$(VENV)/bin/peakline demo

test: $(VENV)/.dev $(VENV)/.installed $(NODE)/.node  ## run the tests against the installed package
	$(WITH_NODE) $(PY) -m pytest $(SIDE_BY_SIDE) --junit-xml build/tests.xml
	$(PY) scripts/test_budget.py build/tests.xml

# With what `make test` leaves out, and every example of what it tries few of.
nightly: $(VENV)/.dev $(VENV)/.installed $(PEERS)/.installed $(NODE)/.node  ## all that is long without fuzzing, in 45 minutes
	$(PY) -m pytest $(SIDE_BY_SIDE) --junit-xml build/nightly.xml --hypothesis-profile many \
	    -m "(nightly or hypothesis) and not soak and not conformance"
	$(MAKE) conformance
	$(MAKE) dist

soak: $(VENV)/.dev $(PEERS)/.installed  ## everything that is long on purpose, MINUTES=60 of it, MUTANTS=100000 on each kind of kernels
	$(PEERS_ENV) $(PY) scripts/soak.py --minutes $(MINUTES) --mutants $(MUTANTS)

lint: $(VENV)/.dev $(VENV)/.installed  ## style, types, who imports whom, and the budgets of the house
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(PY) -m mypy
	$(PY) scripts/check_house.py
	PYTHONPATH=src $(VENV)/bin/lint-imports  # what is installed lacks the kernels' source

page: $(NODE)/.typescript  ## types of the page's modules
	$(WITH_NODE) node $(NODE)/node_modules/typescript/bin/tsc \
	    --project scripts/page

conformance: $(VENV)/.dev $(PEERS)/.installed  ## compare with the real XProf, TensorFlow and JAX
	$(PEERS_ENV) $(PY) -m pytest $(SIDE_BY_SIDE) --junit-xml build/conformance.xml \
	    -m "$(PEERS_TESTS)" tests/conformance

answers: $(VENV)/.dev $(VENV)/.installed $(PEERS)/.installed  ## record the peers' answers about the samples again
	rm -rf tests/data/answers
	$(PEERS_ENV) PEAKLINE_RECORD_ANSWERS=1 $(PY) -m pytest -m nightly -k recorded_whole \
	    tests/conformance

diagnosis: $(VENV)/.dev $(VENV)/.installed $(if $(RECORD),$(FRAMEWORKS)/.packages)  ## score the findings on programs with planted faults, RECORD=1 records them again
	$(if $(RECORD),$(FRAMEWORKS_PY) tests/diagnosis/record.py)
	$(PY) -m tests.diagnosis.score

protobuf: $(VENV)/.python  ## the schema under every supported protobuf runtime
	scripts/check_protobuf_versions.sh

pythons: build/wheel/.built  ## the wheel with every other Python that the machine has
	scripts/check_pythons.sh

sdist: $(VENV)/.dev $(VENV)/.build  ## the source distribution alone, checked, in build/sdist
	rm -rf build/sdist
	$(PY) -m build --sdist --no-isolation --outdir build/sdist . > build/sdist.txt 2>&1 || { cat build/sdist.txt; exit 1; }
	$(PY) scripts/check_distributions.py build/sdist

dist: $(VENV)/.dev $(VENV)/.build build/wheel/.built  ## a source distribution and a wheel built of it, checked, in build/dist
	rm -rf build/dist
	$(PY) -m build --no-isolation --outdir build/dist . > build/dist.txt 2>&1 || { cat build/dist.txt; exit 1; }
	$(PY) -m twine check --strict build/dist/*
	$(PY) scripts/check_distributions.py build/dist build/wheel

bench: $(VENV)/.dev $(VENV)/.installed $(PEERS)/.installed  ## measure all parts against XProf; writes benchmarks/results and RESULTS.md
	$(PY) benchmarks/run.py --peers "$(CURDIR)/$(PEERS_PY)"

guard: $(VENV)/.dev $(VENV)/.installed  ## hold the main verbs to their memory and instructions on 40 MB
	$(PY) benchmarks/guard.py

schema: $(VENV)/.dev  ## compile the .proto sources again
	$(PY) scripts/generate_schema.py

site: $(SITE)/.packages  ## make build/site, the documentation to read and search in a browser
	rm -rf build/site
	$(SITE)/bin/sphinx-build --quiet --fail-on-warning --jobs auto --doctree-dir build/site.cache \
	    --conf-dir scripts/site docs build/site

pictures: $(VENV)/.dev $(VENV)/.installed  ## take the pictures of the page in docs/images again, in Chromium
	$(PY) scripts/take_pictures.py

docs: $(VENV)/.dev $(VENV)/.installed  ## write the generated pages of docs/ again
	$(PY) scripts/generate_docs.py
	$(PY) scripts/generate_openapi.py

lock: build/uv/bin/uv  ## write requirements/*.lock again, UPGRADE=1 with the newest versions
	$(LOCK) requirements/dev.lock --extra dev pyproject.toml > /dev/null
	$(LOCK) requirements/run.lock --constraints requirements/dev.lock --extra all pyproject.toml \
	    > /dev/null
	$(LOCK) requirements/build.lock --constraints requirements/dev.lock requirements/build.in \
	    > /dev/null
	for name in compiler node peers frameworks site uv wheels; do \
	    $(LOCK) requirements/$$name.lock requirements/$$name.in > /dev/null; \
	done

changelog: $(VENV)/.dev  ## put the fragments of changelog.d into CHANGELOG.md, VERSION=draft prints them
	$(PY) -m towncrier build --yes $(if $(filter draft,$(VERSION)),--draft --version Unreleased,--version $(VERSION))

sbom: $(VENV)/.dev  ## list what an installation consists of, in build/sbom.json (CycloneDX)
	$(PY) -W ignore::UserWarning -m cyclonedx_py requirements --pyproject pyproject.toml --mc-type library \
	    --output-reproducible --output-file build/sbom.json requirements/run.lock

format: $(VENV)/.dev  ## format the code
	$(PY) -m ruff check --fix
	$(PY) -m ruff format

develop: $(VENV)/.dev $(VENV)/.build  ## put an editable install into .venv
	$(PY) $(PIP) install --no-deps --no-build-isolation --editable .
	rm -f $(VENV)/.installed

kernels:  ## compile in place what changed of the kernels (after make develop)
	$(PY) setup.py --quiet build_ext --inplace

clean:  ## remove what was made, but not the environments
	rm -rf build bench-data .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo "Python 3.11 or newer is needed; name it: make PYTHON=python3.12 ..." >&2; exit 1; }
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	touch $@

# A C compiler too, where the machine has none.
$(VENV)/.build: requirements/build.lock requirements/compiler.lock | $(VENV)/.python
	$(PY) $(LOCKED) requirements/build.lock
	PYTHONPATH=buildtools $(PY) -c 'import sys, kernels; sys.exit(kernels.needs_zig())' \
	    || $(PY) $(LOCKED) requirements/compiler.lock
	touch $@

build/wheel/.built: $(VENV)/.build $(SOURCES)
	rm -rf build/wheel
	$(PY) $(PIP) wheel --no-deps --no-build-isolation --wheel-dir build/wheel .
	touch $@

# Replaced even when its version stays the same, or where an editable install is.
$(VENV)/.installed: build/wheel/.built requirements/run.lock $(if $(EDITABLE),FORCE)
	$(PY) $(LOCKED) requirements/run.lock \
	    && $(PY) $(PIP) install --force-reinstall --no-deps build/wheel/peakline-*.whl \
	    && echo "package installed in $$SECONDS s"
	touch $@

$(VENV)/.dev: requirements/dev.lock | $(VENV)/.python
	$(PY) $(LOCKED) requirements/dev.lock && echo "development tools installed in $$SECONDS s"
	touch $@

# Node from the machine, or where it is too old or not there, from the wheel that has it.
$(NODE)/.node: requirements/node.lock
	rm -rf $(NODE)
	mkdir -p $(NODE)
	{ command -v npm \
	    && node --eval 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)'; \
	    } > /dev/null \
	    || { $(PYTHON) -m venv $(NODE)/venv \
	    && $(NODE)/venv/bin/python $(LOCKED) requirements/node.lock; }
	touch $@

$(NODE)/.typescript: $(NODE)/.node scripts/page/package-lock.json
	cp scripts/page/package.json scripts/page/package-lock.json $(NODE)
	$(WITH_NODE) npm ci --prefix $(NODE) --no-audit --no-fund \
	    --ignore-scripts
	touch $@

build/uv/bin/uv: requirements/uv.lock
	$(PYTHON) -m venv build/uv
	build/uv/bin/python $(LOCKED) requirements/uv.lock
	touch $@

$(PEERS)/.packages: requirements/peers.lock | $(VENV)/.python
	test -x $(PEERS_PY) || $(PYTHON) -m venv $(PEERS)
	$(PEERS_PY) $(LOCKED) requirements/peers.lock && echo "peers installed in $$SECONDS s"
	touch $@

$(FRAMEWORKS)/.packages: requirements/frameworks.lock | $(VENV)/.python
	test -x $(FRAMEWORKS_PY) || $(PYTHON) -m venv $(FRAMEWORKS)
	$(FRAMEWORKS_PY) $(LOCKED) requirements/frameworks.lock \
	    && echo "frameworks installed in $$SECONDS s"
	touch $@

$(SITE)/.packages: requirements/site.lock | $(VENV)/.python
	test -x $(SITE)/bin/python || $(PYTHON) -m venv $(SITE)
	$(SITE)/bin/python $(LOCKED) requirements/site.lock
	touch $@

# Without dependencies: the pins of the peers and ours never meet.
$(PEERS)/.installed: $(PEERS)/.packages build/wheel/.built
	$(PEERS_PY) $(PIP) install --force-reinstall --no-deps build/wheel/peakline-*.whl
	touch $@
