# `make` says what there is to make. It takes its list from here: `## words` behind a target is the target's line in it, `## Words` on
# a line of its own a heading. Each target sets up .venv by itself; PYTHON= chooses another Python for that.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	if $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo $$p; exit; fi; done; echo python3)
BIN := .venv/bin
READY := .venv/.ready

# What Python has compiled is kept, whatever the machine's own setting: builds and tests start it a few hundred times.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help serve figure check test lint floors builders site wheel manifest book lms bench load mutants fuzz baselines audit lock catalogue dev recorder record measure calibrate clean
help:  ## this list
	@awk -F ':.*## ' '/^## / { print "\n" substr($$0, 4) } /^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

clean:  ## remove build/ and .venv
	rm -rf build .venv

# The environment, made anew when what is pinned changes. Too old a Python is said in one line.
$(READY): pyproject.toml constraints.txt
	@"$(PYTHON)" -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "System ML needs Python 3.11 or newer; $(PYTHON) is %d.%d. Name another: make PYTHON=python3.12 ..." % sys.version_info[:2])'
	@test -x $(BIN)/python || "$(PYTHON)" -m venv .venv
	@echo "Setting up .venv (once, a minute or two) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

## Read it, write it
serve: site  ## the course on http://localhost:5006/, with Python behind every figure; PORT= names another port
	@$(BIN)/python -m course.serve $(if $(PORT),--port $(PORT))

dev: site  ## serve, build in seconds what you change, and reload the page that is open
	@$(BIN)/python -m course.serve $(if $(PORT),--port $(PORT)) --watch

# What a new figure needs of a browser: a picture for the page of figures, and where its words stand (tests/browser/baselines).
figure: site  ## draw a new figure for the page of figures, and note where its words stand; NAME=my_widget
	@test -n "$(NAME)" || { echo "make figure NAME=my_widget"; exit 2; }
	@$(BIN)/python -m course.pictures figures $(NAME)
	@ACCEPT=1 $(BIN)/python -m pytest tests/browser/test_texts.py -q -s --numprocesses 0 -k $(NAME)

## Publish it
# BUILDER=zensical tries the program that follows Material for MkDocs: the newest release that the index has, in an
# environment of its own. Its pages lie in build/zensical, and docs/builder.md says what differs.
BUILDER ?= mkdocs
ZENSICAL := .venv/zensical/.ready
site: $(READY) $(if $(filter zensical,$(BUILDER)),$(ZENSICAL))  ## the static course in build/static, for any host; SITE_URL= is its public address
	@$(BIN)/python -m course.faults course.build --builder $(BUILDER)

$(ZENSICAL): pyproject.toml constraints.txt
	@"$(PYTHON)" -m venv .venv/zensical
	@.venv/zensical/bin/python -m pip install --quiet --disable-pip-version-check --upgrade -c constraints.txt -e '.[build]' zensical
	@touch $@

wheel: site  ## build/wheel/system_ml_course-….whl for pip install, with the built course in it, and a list of what it is made of
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir build/wheel .
	@$(BIN)/python -m course.output.sbom build/wheel
	@ls -sh build/wheel/*

# The Kubernetes manifest against the published schemas of its kinds, which the validator brings along (22 MB).
KUBERNETES ?= 1.34
manifest: $(READY)  ## the Kubernetes manifest, held against the schemas of its kinds
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check kubernetes-validate==1.37.0 || { echo "manifest: kubernetes-validate could not be installed; nothing was validated."; exit 1; }
	@$(BIN)/kubernetes-validate --strict -k $(KUBERNETES) deploy/kubernetes/course.yaml

book: site  ## the whole course as build/system-ml.pdf and build/system-ml.epub; SITE_URL= is where its links lead
	@$(BIN)/python -m course.output.paper

lms: site  ## the course for a learning system: SCORM 2004, SCORM 1.2 and cmi5 packages in build/
	@$(BIN)/python -m course.output.lms

## Test it

# The pages by both programs that can make them, side by side: docs/builder.md. Some minutes.
builders:  ## whether Zensical makes the same pages as mkdocs: words, links and pictures
	@$(MAKE) site
	@$(MAKE) site BUILDER=zensical
	@$(BIN)/python -m tests.builders

# Before a commit, within a minute: style, imports, types, and the tests nearest to what changed since the last commit
# (or since BASE=main). It says what it leaves out.
check: $(READY)  ## what a change could break, in about a minute; BASE=main for a whole branch
	@$(BIN)/python -m tests.check $(if $(BASE),--base $(BASE))

# On all cores, a core without work taking some from the others; what PYTEST= names runs in one process.
# EVERY=1 asks of each figure what is otherwise asked of a few that stand for all.
test: $(READY)  ## everything there is to test; PYTEST="tests/engine -k roofline" for some, EVERY=1 for every figure
	@$(BIN)/python -m pytest $(or $(PYTEST),--numprocesses auto --dist worksteal)

lint: $(READY)  ## style, types, and who imports whom
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright --pythonpath $(BIN)/python
	@$(BIN)/lint-imports --no-cache

# Whether the oldest versions that pyproject.toml allows do work: they are resolved anew, installed apart, and the site is
# built and some tests are run on them. Needs a package index.
floors: $(READY)  ## the oldest libraries that pyproject.toml allows
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv || { echo "floors: uv could not be installed; nothing was tried."; exit 1; }
	@$(BIN)/python tests/floors.py

# The nonsense that make test tries, thirty times as much of it: some minutes. FUZZ_SEED= gives other cases, FUZZ_TIMES= more.
FUZZ_SEED ?= $(shell date +%j)
FUZZ_TIMES ?= 30
fuzz: $(READY)  ## feed everything rubbish, for some minutes; FUZZ_SEED= for other rubbish
	@echo "Seed $(FUZZ_SEED), $(FUZZ_TIMES) times the cases of make test."
	@FUZZ_SEED=$(FUZZ_SEED) FUZZ_TIMES=$(FUZZ_TIMES) $(BIN)/python -m pytest tests/fuzz -q -s --numprocesses 0 --durations 0

# What each figure says and where, in every state and at three widths: what stands elsewhere than in tests/browser/baselines
# is shown; make baselines ACCEPT=1 keeps it (then look at git diff). PYTEST="-k kv_cache" for some. Some minutes.
baselines: $(READY)  ## which words of a figure have moved, in every state and at three widths; ACCEPT=1 keeps it
	@BASELINES=all ACCEPT=$(ACCEPT) $(BIN)/python -m pytest tests/browser/test_texts.py -q -s --numprocesses auto --dist worksteal $(PYTEST)

# Known faults of what is pinned, by pip-audit; without its data on every package it fails, and says so.
audit: $(READY)  ## known faults of what we build on
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check pip-audit || { echo "audit: pip-audit could not be installed; nothing was audited."; exit 1; }
	@$(BIN)/python -m pip_audit --strict --no-deps --disable-pip --progress-spinner off -r constraints.txt || { echo "audit: a fault was found, or the data of known faults could not be had for a package (see above)."; exit 1; }

# The versions of constraints.txt that the container needs, with the digests of all their files. Needs a package index.
lock: $(READY)  ## write deploy/requirements.txt, the digests of what the container installs
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv || { echo "lock: uv could not be installed; nothing was written."; exit 1; }
	@sed -n '1p' deploy/requirements.txt > build/lock.txt
	@echo hatchling | $(BIN)/uv pip compile --quiet --universal --python-version 3.12 --generate-hashes --no-annotate --no-header \
		-c constraints.txt --extra build pyproject.toml - >> build/lock.txt
	@mv build/lock.txt deploy/requirements.txt

# What engine/catalog says of its own entries; it fails where one names no source.
catalogue: $(READY)  ## which entries of the catalogue are older than a year, lack a source, or are inferred
	@$(BIN)/python -m engine.catalog.upkeep

## Measure it
bench: $(READY)  ## the budgets of speed and size, as figures and ratios of one run
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]' || echo "The other engines could not be installed; they are left out."
	@$(BIN)/python -m bench --write

# A hundred readers before one process, then before nginx and several: bench/RESULTS.md. Under five minutes.
load: site  ## a hundred readers who drag, before one process and before several behind nginx
	@$(BIN)/python -m bench.load --write

# Breaks the engine in some 650 small ways and shows that its tests notice each; make mutants NAMES="step gpus.toml".
mutants: $(READY)  ## break the engine on purpose, and see which test notices
	@$(BIN)/python -m bench.mutants $(or $(NAMES),--write)

## Look at PyTorch and at a GPU

# PyTorch and Triton beside the rest: what recording needs, and the tests that hold recordings against a fresh one. And the
# official client of the Model Context Protocol, by which a test asks `system-ml mcp`.
RECORDER := .venv/.recorder
$(RECORDER): $(READY)
	@echo "Adding PyTorch and Triton to .venv (once; several GB where PyTorch brings CUDA) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[record,agents]'
	@touch $@

recorder: $(RECORDER)  ## add PyTorch and Triton, for what follows and for the tests that need them

# Records again what a real PyTorch does, for the lessons on one GPU's software: engine/one_gpu/recordings.
record: $(RECORDER)  ## record again what PyTorch and Triton do, for the lessons to show
	@$(BIN)/python -m record

# Times what this machine's NVIDIA GPU takes, burst and steady: engine/one_gpu/measurements.
measure: $(RECORDER)  ## time this machine's NVIDIA GPU, for the lessons to show
	@$(BIN)/python -m measure

# Fits the constants of engine/calibration on tables of measured operations, and judges the estimate on whole runs: make calibrate MEASUREMENTS=folder.
calibrate: $(READY)  ## fit the engine's constants on tables of measurements; MEASUREMENTS= is their folder
	@test -n "$(MEASUREMENTS)" || { echo "make calibrate MEASUREMENTS=folder, with the tables that engine/calibration/README.md describes"; exit 2; }
	@$(BIN)/python -m engine.calibration.fit "$(MEASUREMENTS)"
	@$(BIN)/python -m engine.validation.fitted_steps
	@$(BIN)/python -m engine.validation.runs "$(MEASUREMENTS)"
