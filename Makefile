# Everything runs in .venv, which make builds when requirements.txt or
# pyproject.toml is newer. `make help` lists the targets.

PYTHON ?= python3
PORT ?= 8000
# Such as --no-browser, or --allow-root in a container.
LAB_FLAGS ?=
BIN := .venv/bin

# A folder that already holds the data files saves the downloads.
ifneq ($(wildcard ../shared/data),)
SOFTLABEL_DATA ?= ../shared/data
endif
ifneq ($(SOFTLABEL_DATA),)
override SOFTLABEL_DATA := $(abspath $(SOFTLABEL_DATA))
export SOFTLABEL_DATA
endif

.PHONY: help book test lab serve verdicts bench site-zip pdf notebooks-check assignments grade slides check clean
.DEFAULT_GOAL := help

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1	/p' Makefile

book: .venv/stamp ## execute the chapters and build the site in _build/html
	@$(BIN)/python book/_ext/chapters.py build

# One thread of linear algebra for each of the two processes: with more, they stand in each other's way.
test: .venv/stamp ## run the tests
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal

lab: .venv/stamp ## open the chapters as notebooks in JupyterLab
	$(BIN)/jupyter lab --notebook-dir=. --LabApp.default_url=/lab/tree/book/index.md $(LAB_FLAGS)

serve: _build/html/index.html ## show the built site on localhost
	@echo "http://127.0.0.1:$(PORT)/ (stop with Ctrl-C)"
	@$(BIN)/python -m http.server $(PORT) --bind 127.0.0.1 --directory _build/html

verdicts: .venv/stamp ## list every claim of the paper with its verdict
	@$(BIN)/python book/_ext/chapters.py verdicts

bench: .venv/stamp ## compare the speed with other programs (some ten minutes)
	$(BIN)/pip install --quiet --disable-pip-version-check -r benchmarks/requirements.txt
	$(BIN)/python -m benchmarks

site-zip: book ## an offline edition of the site: _build/harmless-label-noise-VERSION.zip
	@$(BIN)/python book/_ext/offline.py

pdf: .venv/stamp ## the book in print, by LaTeX: _build/harmless-label-noise-VERSION.pdf
	@$(BIN)/python book/_ext/printed.py

notebooks-check: _build/html/index.html ## run every notebook that readers download (some five minutes)
	@$(BIN)/python book/_ext/notebooks.py

assignments: .venv/stamp ## the student versions of both assignments
	@$(BIN)/python teaching/course.py release

grade: .venv/stamp ## grade a folder of submissions: make grade SUBMISSIONS=folder
	@$(BIN)/python teaching/course.py grade $(or $(SUBMISSIONS),$(error name the folder: make grade SUBMISSIONS=folder))

slides: .venv/stamp ## build the slides of one lecture in _build/slides
	@$(BIN)/python teaching/slides.py

check: book test ## all that the continuous integration does

clean: ## remove what was built and cached (.venv stays)
	rm -rf _build .pytest_cache .hypothesis *.egg-info
	find benchmarks book softlabel teaching tests -name __pycache__ -prune -exec rm -rf {} +

_build/html/index.html:
	@$(MAKE) book

# The last two commands make JupyterLab open .md files as notebooks, and kernels
# start without a word. They write into .venv and touch nobody's own settings.
.venv/stamp: requirements.txt pyproject.toml
	@test -d .venv || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --editable .
	@$(BIN)/pip check
	@$(BIN)/jupytext-config --settings-file \
	  .venv/etc/jupyter/labconfig/default_setting_overrides.json \
	  set-default-viewer markdown myst
	@mkdir -p .venv/etc/ipython
	@echo 'c.IPKernelApp.log_level = 40' > .venv/etc/ipython/ipython_kernel_config.py
	@touch $@
