# make serve · make check · make test · make lint · make site · make wheel · make manifest · make book · make lms · make bench · make load · make mutants · make fuzz · make baselines · make audit · make floors · make dev · make record · make measure · make calibrate      Each sets up .venv by itself; PYTHON= to choose one.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	if $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo $$p; exit; fi; done; echo python3)
BIN := .venv/bin
READY := .venv/.ready

# What Python has compiled is kept, whatever the machine's own setting: builds and tests start it a few hundred times.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help serve check test lint floors site wheel manifest book lms bench load mutants fuzz baselines audit dev recorder record measure calibrate clean
help:
	@sed -n '1p' Makefile

# The environment, made anew when what is pinned changes. Too old a Python is said in one line.
$(READY): pyproject.toml constraints.txt
	@"$(PYTHON)" -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "System ML needs Python 3.11 or newer; $(PYTHON) is %d.%d. Name another: make PYTHON=python3.12 ..." % sys.version_info[:2])'
	@test -x $(BIN)/python || "$(PYTHON)" -m venv .venv
	@echo "Setting up .venv (once, a minute or two) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

serve: site
	@$(BIN)/python -m course.serve $(if $(PORT),--port $(PORT))

site: $(READY)
	@$(BIN)/python -m course.faults course.build

# All that `pip install` needs, the built course included: system-ml serve from anywhere.
wheel: site
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir build/wheel .
	@ls -sh build/wheel/*.whl

# The Kubernetes manifest against the published schemas of its kinds, which the validator brings along (22 MB).
KUBERNETES ?= 1.34
manifest: $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check kubernetes-validate==1.37.0 || { echo "manifest: kubernetes-validate could not be installed; nothing was validated."; exit 1; }
	@$(BIN)/kubernetes-validate --strict -k $(KUBERNETES) deploy/kubernetes/course.yaml

# The whole course as a PDF and as an EPUB: build/system-ml.pdf, build/system-ml.epub. SITE_URL=https://example.org/course/ makes its links lead there.
book: site
	@$(BIN)/python -m course.output.paper

# The course for a learning system, which is told of predictions and exercises: build/system-ml-scorm2004.zip and build/system-ml-cmi5.zip.
lms: site
	@$(BIN)/python -m course.output.lms

# Before a commit, within a minute: style, imports, types, and the tests nearest to what changed since the last commit
# (or since BASE=main). It says what it leaves out.
check: $(READY)
	@$(BIN)/python -m tests.check $(if $(BASE),--base $(BASE))

# All of it on all cores, a core without work taking some from the others; make test PYTEST="tests/engine -k roofline" for some, in one process.
# make test EVERY=1 asks of each figure what is otherwise asked of a few that stand for all.
test: $(READY)
	@$(BIN)/python -m pytest $(or $(PYTEST),--numprocesses auto --dist worksteal)

# What can be said of the code without running it: style, names, types, and who imports whom.
lint: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright --pythonpath $(BIN)/python
	@$(BIN)/lint-imports --no-cache

# Whether the oldest versions that pyproject.toml allows do work: they are resolved anew, installed apart, and the site is
# built and some tests are run on them. Needs a package index.
floors: $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv || { echo "floors: uv could not be installed; nothing was tried."; exit 1; }
	@$(BIN)/python tests/floors.py

bench: $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]' || echo "The other engines could not be installed; they are left out."
	@$(BIN)/python -m bench --write

# A hundred readers before one process, then before nginx and several: bench/RESULTS.md. Under five minutes.
load: site
	@$(BIN)/python -m bench.load --write

# Breaks the engine in some 250 small ways and shows that its tests notice each; make mutants NAMES="step gpus.toml".
mutants: $(READY)
	@$(BIN)/python -m bench.mutants $(or $(NAMES),--write)

# PyTorch and Triton beside the rest: what recording needs, and the tests that hold recordings against a fresh one.
RECORDER := .venv/.recorder
$(RECORDER): $(READY)
	@echo "Adding PyTorch and Triton to .venv (once; several GB where PyTorch brings CUDA) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[record]'
	@touch $@

recorder: $(RECORDER)

# Records again what a real PyTorch does, for the lessons on one GPU's software: engine/one_gpu/recordings.
record: $(RECORDER)
	@$(BIN)/python -m record

# Times what this machine's NVIDIA GPU takes, burst and steady: engine/one_gpu/measurements.
measure: $(RECORDER)
	@$(BIN)/python -m measure

# Fits the constants of engine/calibration on tables of measured operations, and judges the estimate on whole runs: make calibrate MEASUREMENTS=folder.
calibrate: $(READY)
	@test -n "$(MEASUREMENTS)" || { echo "make calibrate MEASUREMENTS=folder, with the tables that engine/calibration/README.md describes"; exit 2; }
	@$(BIN)/python -m engine.calibration.fit "$(MEASUREMENTS)"
	@$(BIN)/python -m engine.validation.fitted_steps
	@$(BIN)/python -m engine.validation.runs "$(MEASUREMENTS)"

# The nonsense that make test tries, thirty times as much of it: some minutes. FUZZ_SEED= gives other cases, FUZZ_TIMES= more.
FUZZ_SEED ?= $(shell date +%j)
FUZZ_TIMES ?= 30
fuzz: $(READY)
	@echo "Seed $(FUZZ_SEED), $(FUZZ_TIMES) times the cases of make test."
	@FUZZ_SEED=$(FUZZ_SEED) FUZZ_TIMES=$(FUZZ_TIMES) $(BIN)/python -m pytest tests/fuzz -q -s --numprocesses 0 --durations 0

# What each figure says and where, in every state and at three widths: what stands elsewhere than in tests/browser/baselines
# is shown; make baselines ACCEPT=1 keeps it (then look at git diff). PYTEST="-k kv_cache" for some. Some minutes.
baselines: $(READY)
	@BASELINES=all ACCEPT=$(ACCEPT) $(BIN)/python -m pytest tests/browser/test_texts.py -q -s --numprocesses auto --dist worksteal $(PYTEST)

# Known faults of what is pinned, by pip-audit; without its data on every package it fails, and says so.
audit: $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check pip-audit || { echo "audit: pip-audit could not be installed; nothing was audited."; exit 1; }
	@$(BIN)/python -m pip_audit --strict --no-deps --disable-pip --progress-spinner off -r constraints.txt || { echo "audit: a fault was found, or the data of known faults could not be had for a package (see above)."; exit 1; }

# Serves the course, builds what a change touches (a lesson, a widget or a style in seconds), and has open pages load
# themselves again.
dev: site
	@$(BIN)/python -m course.serve $(if $(PORT),--port $(PORT)) --watch

clean:
	rm -rf build .venv
