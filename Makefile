# Everything runs in .venv. `make book` installs what requirements.txt pins; a
# target that needs more adds it. `make help` lists the targets.

PYTHON ?= python3
# Those that `make check-slow` finds.
PYTHONS ?= $(or $(foreach v,11 12 13 14,$(shell python3.$v -c 'import sys; print(sys.executable)' 2>/dev/null)),$(PYTHON))
PORT ?= 8000
# Such as --no-browser, or --allow-root in a container.
LAB_FLAGS ?=
BIN := .venv/bin
PIP := pip install --quiet --disable-pip-version-check
# One thread of linear algebra for each of the two processes: with more, they stand in each other's way.
PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal

# A folder that already holds the data files saves the downloads.
ifneq ($(wildcard ../shared/data),)
SOFTLABEL_DATA ?= ../shared/data
endif
ifneq ($(SOFTLABEL_DATA),)
override SOFTLABEL_DATA := $(abspath $(SOFTLABEL_DATA))
export SOFTLABEL_DATA
endif

.PHONY: help book site test test-slow test-without-data test-package coverage lint lab serve verdicts studies bench site-zip pdf \
  notebooks-check assignments grade slides check check-slow clean
.DEFAULT_GOAL := help

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1	/p' Makefile

# What `jupyter-book build .` does, with pages read side by side and every warning an error.
SPHINX := PYTHONPATH=book/_ext OPENBLAS_NUM_THREADS=1 $(BIN)/sphinx-build -j auto -W -n --keep-going -d _build/.doctrees
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)

book: site slides ## execute the chapters, build the site in _build/html and the slides

site: .venv/stamp
	@$(BIN)/jupyter-book config sphinx . > /dev/null
	$(SPHINX) -b html . _build/html

test: .venv/test .venv/teaching ## run the tests, without the slow ones
	$(PYTEST) -m "not slow" -rs

test-slow: .venv/test .venv/teaching ## run the slow tests
	$(PYTEST) -m slow -rs

# As on a machine without a network: a proxy where nothing listens.
test-without-data: .venv/test ## run the tests that look for data files, where none can be had
	rm -rf _build/no-data
	SOFTLABEL_DATA=$(abspath _build/no-data) http_proxy=http://127.0.0.1:9 https_proxy=http://127.0.0.1:9 no_proxy= \
	  $(PYTEST) -m "not slow and not book" -rs softlabel $$(grep -lE 'gastro\(|needs .*files|DataFileError' tests/test_*.py)

# The newest versions with PINS="requirements.txt requirements-test.txt", the oldest that pyproject.toml allows with
# PINS=_build/oldest.txt.
PINS ?= requirements.txt requirements-test.txt
test-package: $(PINS) ## run the package's tests in an environment without the book: make test-package PYTHON=python3.13
	rm -rf _build/package
	$(PYTHON) -m venv _build/package
	_build/package/bin/$(PIP) $(addprefix -c ,$(PINS)) --editable '.[test]'
	OPENBLAS_NUM_THREADS=1 _build/package/bin/pytest -n 2 --dist worksteal -m "not slow and not book"

_build/oldest.txt: pyproject.toml
	@mkdir -p _build
	grep -oE '"[A-Za-z0-9-]+>=[0-9.]+"' $< | tr -d '"' | sed 's/>=/==/' | sort -u > $@

coverage: .venv/test ## the share of the package that its own tests run; at least 95%
	$(PYTEST) -m "not slow and not book" --cov --cov-report=term:skip-covered

lint: .venv/dev ## what ruff and mypy find
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# With these settings a reader does not see the menus of nbgrader, which the tests install; a lecturer's own lab has them.
LAB := JUPYTER_CONFIG_PATH=.venv/etc/reader $(BIN)/jupyter lab

lab: .venv/stamp ## open the chapters as notebooks in JupyterLab
	$(LAB) --notebook-dir=. --LabApp.default_url=/lab/tree/book/index.md $(LAB_FLAGS)

serve: _build/html/index.html ## show the built site on localhost
	@echo "http://127.0.0.1:$(PORT)/ (stop with Ctrl-C)"
	@$(BIN)/python -m http.server $(PORT) --bind 127.0.0.1 --directory _build/html

studies: .venv/test .venv/studies ## run the long simulations that are stale or unfinished, into book/studies (up to two hours)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m softlabel.book.studies

verdicts: .venv/stamp ## list every claim of the paper with its verdict
	@test -e _build/verdicts.json || $(MAKE) book
	@$(BIN)/python book/_ext/verdicts.py

bench: .venv/bench ## compare the speed with other programs (some ten minutes)
	$(BIN)/python -m benchmarks

site-zip: book ## an offline edition of the site: _build/harmless-label-noise-VERSION.zip
	@$(BIN)/python book/_ext/offline.py

pdf: .venv/stamp ## the book in print, by LaTeX: _build/harmless-label-noise-VERSION.pdf
	@PYTHONPATH=book/_ext $(BIN)/python book/_ext/printed.py
	@$(BIN)/jupyter-book config sphinx . > /dev/null
	$(SPHINX) -b latex . _build/latex
	@# By Sphinx's own rules, which tell the index's program how to sort.
	$(MAKE) -C _build/latex LATEXMKOPTS="-interaction=nonstopmode -halt-on-error -quiet"
	cp _build/latex/harmless-label-noise.pdf _build/harmless-label-noise-$(VERSION).pdf

notebooks-check: .venv/test _build/html/index.html ## run every notebook that readers download (some five minutes)
	folder=$$(mktemp -d) && cp -r _build/html/notebooks $$folder && \
	  OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -c /dev/null --nbmake --nbmake-timeout=600 -n 2 -q $$folder; \
	  failed=$$?; rm -rf $$folder; exit $$failed

# STUDENTS=file has a name a line: each student gets numbers of their own. ASSIGNMENTS=folder holds sources of your own.
export ASSIGNMENTS
COURSE := $(BIN)/python teaching/course.py
assignments: .venv/teaching ## the student versions of both assignments
	@$(COURSE) release$(if $(STUDENTS), --students "$(STUDENTS)")

grade: .venv/teaching ## grade a folder of submissions: make grade SUBMISSIONS=folder [STUDENT=name] [DUE=2030-05-31T18:00]
	@$(COURSE) grade "$(or $(SUBMISSIONS),$(error name the folder: make grade SUBMISSIONS=folder))"$(if \
	  $(STUDENT), --student "$(STUDENT)")$(if $(STUDENTS), --students "$(STUDENTS)")$(if $(DUE), --due "$(DUE)")$(if $(OPEN), --open)

slides: site ## build the slides of one lecture in _build/slides
	@$(BIN)/python teaching/slides.py

check: book test test-without-data lint ## all that the continuous integration does for a change

check-slow: book test-slow notebooks-check coverage ## what it does once a week
	$(MAKE) test-package PYTHON=$(firstword $(PYTHONS)) PINS=_build/oldest.txt
	for python in $(PYTHONS); do $(MAKE) test-package PYTHON=$$python || exit; done

clean: ## remove what was built and cached (.venv stays)
	rm -rf _build conf.py .pytest_cache .hypothesis .mypy_cache .ruff_cache .coverage *.egg-info
	find benchmarks book softlabel teaching tests -name __pycache__ -prune -exec rm -rf {} +

_build/html/index.html:
	@$(MAKE) book

# After the packages come settings, all in .venv: JupyterLab opens .md files as notebooks, `make lab` shows no menus of
# nbgrader, kernels start without a word. Nobody's own settings are touched.
.venv/stamp: requirements.txt pyproject.toml
	@test -d .venv || $(PYTHON) -m venv .venv
	$(BIN)/$(PIP) -r requirements.txt
	$(BIN)/$(PIP) --no-deps --editable .
	@$(BIN)/pip check
	@$(BIN)/jupytext-config --settings-file \
	  .venv/etc/jupyter/labconfig/default_setting_overrides.json \
	  set-default-viewer markdown myst
	@mkdir -p .venv/etc/reader/labconfig .venv/etc/ipython
	@echo '{"disabledExtensions": {"@jupyter/nbgrader": true}}' > .venv/etc/reader/labconfig/page_config.json
	@echo 'c.IPKernelApp.log_level = 40' > .venv/etc/ipython/ipython_kernel_config.py
	@touch $@

# What only some targets need comes into the same environment, beside the versions that are there.
.venv/test: requirements-test.txt
.venv/teaching: requirements-teaching.txt
.venv/dev: requirements-dev.txt
.venv/bench: benchmarks/requirements.txt
.venv/studies: softlabel/book/studies/requirements.txt
.venv/test .venv/teaching .venv/dev .venv/bench .venv/studies: .venv/stamp
	$(BIN)/$(PIP) -c requirements.txt $(addprefix -r ,$(filter %.txt,$^))
	@$(BIN)/pip check
	@touch $@
