# Every target sets up what it needs: a fresh machine needs Python 3.11+ (with venv) and make, nothing else.
#
#   make demo         two MCP servers, a scripted agent, a chart, and what crossed which plane
#   make test         the tests, with the reference implementation as a peer in an environment of its own; where CI is set,
#                     with the full Hypothesis profile and a coverage gate
#   make test-long    the same and the long ones: 10,000 examples for each property
#   make test-faults  the tests that inject faults into processes, sockets and bytes
#   make test-clients real hosts (mcp 1.x, fastmcp, langchain, pydantic-ai, openai-agents, the Inspector), each doing a whole exchange
#   make check        format, lint, import rules, sizes, types: of this code, and of what users write (tests/typing)
#   make bench        the benchmarks, each in a fresh process
#   make docs         runs every snippet of README and docs, and checks their links
#   make type-table   prints the type table of docs/reference/types.md as measured here
#   make format       formats the code and applies safe fixes
#   make lock         resolves all pinned versions afresh
#   make clean        removes environments, caches and what the examples wrote

PYTHON ?= python3
VENV := .venv
PEER := .venv-mcp-sd
VGI := .venv-vgi
CLIENTS := .venv-clients
FASTMCP := .venv-fastmcp
INSPECTOR := build/inspector
BIN := $(VENV)/bin
# One more than the two cores of CI's machines: some tests wait for timeouts of servers. A file's tests stay together, so that
# the servers they share are started once.
WORKERS ?= 3
PYTEST := $(BIN)/python -m pytest -q
PARALLEL := -n $(WORKERS) --dist loadfile
# Measuring coverage costs 40% more time, so only CI does it.
COVERAGE := $(if $(CI),--cov --cov-report=term)
PIP := -m pip --disable-pip-version-check --no-input --quiet
# Build tools come from the constraints as well; without them pip would fetch unpinned ones for each build.
BUILD_TOOLS := hatchling editables setuptools

# What a Python is asked for the path of one that vgi-rpc accepts, if there is any.
FIND_FOR_VGI := -c 'from bench.contenders import ENVIRONMENTS, interpreter_of; print(interpreter_of(ENVIRONMENTS["vgi"].needs) or "")'

export FRAMEWIRE_MCP_SD_PYTHON ?= $(CURDIR)/$(PEER)/bin/python

.DEFAULT_GOAL := help
.PHONY: help setup setup-peer setup-vgi demo test test-long test-faults test-clients check bench docs type-table format lock clean

help:
	@sed -n 's/^#   //p' Makefile

# --- environments ------------------------------------------------------------------------------------------------------

setup: $(VENV)/.installed
setup-peer: $(PEER)/.installed
setup-vgi: $(VGI)/.installed

# The stamp is written last, so an interrupted installation is made anew.
$(VENV)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "framewire needs Python 3.11 or later; name one with: make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo "Installing into $(VENV) (about a minute the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python $(PIP) install -c constraints.txt $(BUILD_TOOLS)
	@$(BIN)/python $(PIP) install -c constraints.txt --no-build-isolation --use-pep517 -e '.[dev]'
	@touch $@

$(PEER)/.installed: tests/interop/constraints-mcp-sd.txt
	@echo "Installing the reference implementation into $(PEER)"
	@test -x $(PEER)/bin/python || $(PYTHON) -m venv $(PEER)
	@$(PEER)/bin/python $(PIP) install -c tests/interop/constraints-mcp-sd.txt mcp-sd==0.1.2
	@touch $@

# Needs a later Python than framewire. Where there is none, the benchmarks leave vgi-rpc out and say why.
$(VGI)/.installed: bench/constraints-vgi.txt | $(VENV)/.installed
	@python=$$($(BIN)/python $(FIND_FOR_VGI)) || exit 1; \
	if [ -z "$$python" ]; then echo "vgi-rpc is left out: no Python 3.13 or later was found"; exit 0; fi; \
	echo "Installing vgi-rpc into $(VGI)"; \
	{ test -x $(VGI)/bin/python || "$$python" -m venv $(VGI); } \
	  && $(VGI)/bin/python $(PIP) install -c bench/constraints-vgi.txt 'vgi-rpc[http]' numpy polars pyarrow \
	  && touch $@

# --- what one does -----------------------------------------------------------------------------------------------------

demo: setup
	@$(BIN)/python examples/flights/demo.py

test: setup setup-peer
	$(PYTEST) $(PARALLEL) $(COVERAGE) --ignore=tests/typing

test-long: setup setup-peer
	$(PYTEST) $(PARALLEL) -m 'not faults and not clients' --hypothesis-profile=long

# Two runs: the long forms, and the streams that are cut, flipped and blown up, at their full number.
test-faults: setup setup-peer
	$(PYTEST) -m faults
	FRAMEWIRE_LONG=1 $(PYTEST) tests/faults/test_bombs.py tests/faults/test_mutations.py tests/faults/test_truncation.py

# Hosts of other environments: their versions are pinned beside the tests. The Inspector needs Node.js and npm.
test-clients: setup $(CLIENTS)/.installed $(FASTMCP)/.installed $(INSPECTOR)/.installed
	FRAMEWIRE_CLIENTS_PYTHON=$(CURDIR)/$(CLIENTS)/bin/python FRAMEWIRE_FASTMCP_PYTHON=$(CURDIR)/$(FASTMCP)/bin/python \
	FRAMEWIRE_INSPECTOR=$(CURDIR)/$(INSPECTOR)/node_modules/.bin/mcp-inspector $(PYTEST) -m clients tests/clients

$(CLIENTS)/.installed: tests/clients/constraints.txt
	@test -x $(CLIENTS)/bin/python || $(PYTHON) -m venv $(CLIENTS)
	@$(CLIENTS)/bin/python $(PIP) install -r $<
	@touch $@

$(FASTMCP)/.installed: tests/clients/constraints-fastmcp.txt
	@test -x $(FASTMCP)/bin/python || $(PYTHON) -m venv $(FASTMCP)
	@$(FASTMCP)/bin/python $(PIP) install -r $<
	@touch $@

$(INSPECTOR)/.installed: tests/clients/npm/package-lock.json
	@mkdir -p $(INSPECTOR) && cp tests/clients/npm/package*.json $(INSPECTOR)
	@cd $(INSPECTOR) && npm install --silent --no-audit --no-fund
	@touch $@

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PYTEST) tests/test_rooms.py tests/test_size.py tests/typing

bench: setup setup-peer setup-vgi
	$(BIN)/python -m bench

docs: setup
	$(PYTEST) tests/docs

type-table: setup
	@$(BIN)/python -m tests.type_table

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# --- upkeep ------------------------------------------------------------------------------------------------------------

lock:
	rm -rf build/lock && mkdir -p build/lock
	$(PYTHON) -m venv build/lock/main && build/lock/main/bin/python $(PIP) install '.[dev]' setuptools
	$(PYTHON) -m venv build/lock/peer && build/lock/peer/bin/python $(PIP) install mcp-sd==0.1.2
	@python=$$(build/lock/main/bin/python $(FIND_FOR_VGI)) || exit 1; \
	test -z "$$python" || { "$$python" -m venv build/lock/vgi \
	  && build/lock/main/bin/python -m pip list --format=freeze --disable-pip-version-check \
	    | grep -E '^(numpy|polars|pyarrow)==' > build/lock/same \
	  && build/lock/vgi/bin/python $(PIP) install -r build/lock/same 'vgi-rpc[http]'; }
	@for pair in main:constraints.txt peer:tests/interop/constraints-mcp-sd.txt vgi:bench/constraints-vgi.txt; do \
	  test -d build/lock/$${pair%%:*} || continue; \
	  file=$${pair#*:}; sed -n '/^#/p' $$file > build/lock/new; \
	  build/lock/$${pair%%:*}/bin/python -m pip list --format=freeze --disable-pip-version-check \
	    | grep -v -i -E '^(framewire|pip)==' >> build/lock/new; \
	  mv build/lock/new $$file; \
	done
	rm -rf build/lock

clean:
	rm -rf $(VENV) $(PEER) $(VGI) $(CLIENTS) $(FASTMCP) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage .coverage.* dist build
	rm -rf examples/flights/out examples/alerts/out bench/.data bench/out
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
