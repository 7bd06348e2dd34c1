# Every target can be the first one that is called in a fresh clone.
#   make demo [GUARANTEE=...] [PROCESSING=...] [QUEUES=1|2] [SPARK=4.1|3.5]    without them: the template's defaults
#   make conformance [PROXY=...]    without a proxy: the minicluster
#   make fuzz [SECONDS=...] [SEED=...] [ONLY=requests|sequences]
#   make crash-matrix [ONLY=...]    a part of the names of its cases
#   make proof [ONLY=...] [SAMPLE=N] [LANES=N] [LIST=1]    likewise; so many cases; so many at once; their names
#   make proof MUTANTS=1 [ONLY=...] [LIST=1]    the runtime without each fix: a test must turn red
#   make operations [ONLY=...]    likewise, of its tests
#   make test-cluster PROXY=... [FOLDER=...] [SETTINGS=FILE]    works below FOLDER; FILE has keys that the cluster needs
#   make spyt-tests CHECKOUT=FOLDER [ONLY="FILE ..."]    FOLDER is a checkout of ytsaurus-spyt
#   make real [IMAGE=...] [PROXY=...] [FOLDER=...] [SETTINGS=FILE]    with PROXY no container is started
#   PYTHON=FILE   the interpreter new environments are made with
#   UV=           pip installs them, though uv is there
QUEUES ?= 1
SPARK ?= 4.1
GUARANTEE ?=
PROCESSING ?=
PROXY ?=
FOLDER ?= //tmp
SETTINGS ?=
IMAGE ?=
CHECKOUT ?=
SECONDS ?= 120
SEED ?= 1
ONLY ?=
SAMPLE ?=
LANES ?=
LIST ?=
MUTANTS ?=

# The tools, and Spark 4.1 for the generated projects; Spark 3.5 has an environment of its own.
TOOLS := .venv
VENV_4.1 := .venv
VENV_3.5 := .venv-3.5
BIN := $(TOOLS)/bin

DEMO := build/demo
PATHS_1 := //home/ytstream/bids
PATHS_2 := //home/ytstream/bids-east //home/ytstream/bids-west

# What generated projects get, and the template's own tools beside it.
LOCK_4.1 := templates/locks/template.txt
LOCK_3.5 := templates/locks/spark-3.5-sessions.txt
# The generator of the site and the audit of workflows.
VENV_TOOLS := .venv-tools
LOCK_TOOLS := templates/locks/tools.txt
STAMP_TOOLS = $(VENV_TOOLS)/.locked-$(shell cksum $(LOCK_TOOLS) | cut -d ' ' -f 1)
# One stamp per state of these files: a second set-up finds nothing to do.
STAMP = $(VENV_$*)/.locked-$(shell cksum $(LOCK_$*) packages/*/pyproject.toml | cksum | cut -d ' ' -f 1)

.DEFAULT_GOAL := help
.PHONY: help prerequisites git java setup setup-4.1 setup-3.5 installed-4.1 installed-3.5 installed-tools demo test \
  test-quick journeys crash-matrix proof outages operations conformance test-cluster real spyt-tests fuzz bench lint audit site picture locks dist release

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

# At once: pip works on one core.
setup: ## make both environments with the locked packages
	@$(MAKE) --no-print-directory --jobs 2 setup-4.1 setup-3.5

setup-4.1 setup-3.5: setup-%: prerequisites
	@$(MAKE) --no-print-directory installed-$*

# All that linters need: no Java.
installed-4.1 installed-3.5: installed-%: git
	@test -f "$(STAMP)" || { \
	  set -e; \
	  $(call make-environment,$(VENV_$*)); \
	  echo "Installing the locked packages for Spark $* into $(VENV_$*), about 1 GB; the first time takes a few minutes."; \
	  $(call install-locked,$(VENV_$*),$(LOCK_$*)); \
	  $(call installer,$(VENV_$*)) --no-deps $(addprefix --editable ,$(dir $(wildcard packages/*/pyproject.toml))); \
	  rm -f "$(VENV_$*)"/.locked-* "$(VENV_$*)/.begun"; \
	  touch "$(STAMP)"; }

# What no test of a job needs: seconds to make, without Spark and Java.
installed-tools: git
	@test -f "$(STAMP_TOOLS)" || { \
	  set -e; \
	  $(call make-environment,$(VENV_TOOLS)); \
	  $(call install-locked,$(VENV_TOOLS),$(LOCK_TOOLS)); \
	  rm -f "$(VENV_TOOLS)"/.locked-* "$(VENV_TOOLS)/.begun"; \
	  touch "$(STAMP_TOOLS)"; }

demo: ## generate a project, run its demo: rows in, kill -9, restart, rows counted
	$(if $(filter 1 2,$(QUEUES)),,$(error QUEUES=$(QUEUES): give 1 or 2))
	$(if $(filter 4.1 3.5,$(SPARK)),,$(error SPARK=$(SPARK): give 4.1 or 3.5))
	@$(MAKE) --no-print-directory setup-4.1 $(if $(filter 3.5,$(SPARK)),setup-3.5)
	@$(BIN)/python -m tools.offered "GUARANTEE=$(GUARANTEE)" "PROCESSING=$(PROCESSING)"
	@rm -rf $(DEMO) && mkdir -p $(DEMO)
	@printf 'replay_dir: $(DEMO)/../replay\ncookiecutters_dir: $(DEMO)/../cookiecutters\n' > $(DEMO)/../cookiecutter.yaml
	@# Its hook says what a user does next; here the next lines do it.
	@$(BIN)/cookiecutter . --no-input --config-file $(DEMO)/../cookiecutter.yaml --output-dir $(DEMO) \
	  "queue_paths=$(PATHS_$(QUEUES))" spark_version=$(SPARK) \
	  $(if $(GUARANTEE),"guarantee=$(GUARANTEE)") $(if $(PROCESSING),"processing=$(PROCESSING)") > /dev/null
	@echo "Made $$(echo $(DEMO)/*) from the template."
	@$(BIN)/python -m tools.overlay $(VENV_$(SPARK)) build/environment-$(SPARK)
	@echo "build/environment-$(SPARK) has the packages of $(VENV_$(SPARK)): pip finds them there."
	@$(MAKE) --no-print-directory -C $(DEMO)/* demo UV= VENV="$$PWD/build/environment-$(SPARK)"

dist: ## the wheels of packages/, as an organisation uploads them to its index, in dist/
	@rm -rf dist && $(find-python); "$$python" local_extensions/wheels.py dist

# A test that hangs fails, with the lines where its threads are, and the others run on.
LIMIT := -o faulthandler_timeout=1200 -o faulthandler_exit_on_timeout=true

# Four workers, each with a JVM of its own, beside the JVMs that tests start and kill.
test: setup installed-tools test-quick ## the tests, linters included, on both Spark versions
	@$(BIN)/pytest -n 4 --dist worksteal $(LIMIT) -m "(slow or spark) and not journey"

journeys: setup ## the long tests that `make test` leaves out: it has a sample of them
	@$(BIN)/pytest -m journey --ignore tests/faults/operations

crash-matrix: setup-4.1 ## two drivers: one paused, late or killed at every point of a batch, rows counted
	@$(BIN)/python -m tests.faults.two_drivers --only "$(ONLY)"

proof: setup-4.1 ## every case of docs/proof.md without a result for this runtime: hours; ONLY=... plays a case again
	@$(BIN)/python -m tests.faults.$(if $(MUTANTS),mutants,sweep) --only "$(ONLY)" \
	  $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(LANES),--lanes $(LANES)) $(if $(LIST),--list)

outages: setup-4.1 ## the cluster goes away for ten minutes, HTTP or RPC for one; a job is stopped in every state
	@$(BIN)/python -m tests.faults.two_drivers.outages --only "$(ONLY)"

operations: setup ## jobs through spark-submit on the minicluster's operations, with every fault; ONLY=... chooses
	@$(BIN)/pytest tests/faults/operations -k "$(ONLY)"

# A worker's tests share its clusters.
test-quick: setup-4.1 installed-tools ## what runs without Spark
	@$(BIN)/pytest -n 4 --dist worksteal $(LIMIT) -m "not slow and not spark and not journey"

conformance: setup-4.1 ## the conformance suite, on the cluster PROXY (YT_TOKEN) or the minicluster
	@YT_CONFORMANCE_PROXY="$(PROXY)" $(BIN)/pytest packages/minicluster/tests/conformance

test-cluster: setup-4.1 ## a whole submit and the conformance suite on the cluster PROXY (YT_TOKEN): where it differs
	$(if $(PROXY),,$(error PROXY is missing: the name, host or URL of a cluster))
	@$(BIN)/python -m tools.trial "$(PROXY)" --folder "$(FOLDER)" $(if $(SETTINGS),--settings "$(SETTINGS)")

# Exit code 1: a step failed. 3: an answer has changed since the run before.
real: setup-4.1 ## a YTsaurus server in a container: the suite, jobs killed and submitted; writes docs/real/REPORT.md
	@$(BIN)/python -m tools.real $(if $(PROXY),--proxy "$(PROXY)",$(if $(IMAGE),--image "$(IMAGE)")) \
	  --folder "$(FOLDER)" $(if $(SETTINGS),--settings "$(SETTINGS)")

# A path: nothing is fetched here.
spyt-tests: setup-4.1 ## the end-to-end tests of SPYT's own repository, on the minicluster's operations
	$(if $(CHECKOUT),,$(error CHECKOUT is missing: the folder of a checkout of ytsaurus-spyt))
	@$(BIN)/python -m tools.spyt_tests "$(CHECKOUT)" $(ONLY)

# ONLY=requests or ONLY=sequences: one of the two.
fuzz: setup-4.1 ## random requests to the minicluster, then random sequences of what happens to a job, SECONDS each
	$(if $(filter-out requests sequences,$(ONLY)),$(error ONLY=$(ONLY): give requests or sequences))
	@$(if $(filter sequences,$(ONLY)),:,$(BIN)/python \
	  -m tools.fuzz.run --seconds $(SECONDS) --seed $(SEED))
	@$(if $(filter requests,$(ONLY)),:,$(BIN)/python \
	  -m tests.faults.sequences --seconds $(SECONDS) --seed $(SEED))

bench: setup ## jobs beside SPYT's listing, as tables and as files: eight rows, most of an hour
	@$(BIN)/python -m bench

lint: installed-4.1 ## ruff, mypy --strict, the layers of the packages, the words of the pages
	@$(BIN)/ruff check --config pyproject.toml .
	@$(BIN)/ruff format --config pyproject.toml --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports pyproject.toml --no-cache --no-logo
	@$(BIN)/python -m tools.prose

audit: installed-4.1 installed-tools ## zizmor and jactionlint, over this repository's workflows and the generated ones
	@$(BIN)/python -m tools.audit "$(VENV_TOOLS)/bin/zizmor" "$(VENV_TOOLS)/bin/jactionlint"

site: installed-4.1 installed-tools ## the documentation as a site, in build/site; a link that leads nowhere ends it
	@$(BIN)/python -m tools.site "$(VENV_TOOLS)/bin/zensical"

picture: setup-4.1 ## make the pictures in docs/ again, from a demo that it runs; docs/page.png if chromium is there
	@$(BIN)/python -m tools.picture
	@$(BIN)/python -m tools.operated $(shell command -v chromium)

release: installed-4.1 ## tag VERSION=..., if the tree, the packages' versions and the changelog agree
	@$(BIN)/python -m tools.release "$(VERSION)"

locks: installed-4.1 ## resolve templates/locks again from versions.py: what is installed, here and in generated projects
	@$(BIN)/python -m tools.locks

JAVA := $(shell sed -n 's/.*"java", "\([0-9]*\)".*/\1/p' local_extensions/versions.py)
include templates/make/environment.mk
# Another Spark's, as a rule; the generated Makefile has its own.
unexport PYTHONPATH
include templates/make/prerequisites.mk
include templates/make/packages.mk
