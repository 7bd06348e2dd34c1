# Every target can be the first one that is called in a fresh clone.
#   make demo [GUARANTEE=...] [PROCESSING=...] [QUEUES=1|2] [SPARK=...]    without them: the template's defaults
#   make conformance [PROXY=...]    without a proxy: the minicluster
#   make fuzz [SECONDS=...] [SEED=...] [ONLY=requests|sequences]
#   make crash-matrix [ONLY=...] [LANES=N]    a part of the names of its cases, or a regular expression
#   make proof [ONLY=...] [SAMPLE=N] [LANES=N] [LIST=1]    likewise; so many cases; so many at once; their names
#   make proof SPARK=... [SAMPLE=N]    on another Spark; the page is made of the default one's results
#   make proof STUMBLES=1    jobs with state, on a cluster that stumbles: each class of request meets each fault
#   make proof CHECK=FILE [SAMPLE=N] [SEED=N]    a file of results is held to the page, and N of its cases are played again
#   make proof MUTANTS=1 [ONLY=...] [LIST=1]    the runtime without each fix: a test must turn red
#   make operations [ONLY=...]    likewise, of its tests
#   make test-cluster PROXY=... [FOLDER=...] [SETTINGS=FILE]    works below FOLDER; FILE has keys that the cluster needs
#   make spyt-tests CHECKOUT=FOLDER [ONLY="FILE ..."]    FOLDER is a checkout of ytsaurus-spyt
#   make real [IMAGE=...] [PROXY=...] [FOLDER=...] [SETTINGS=FILE]    with PROXY no container is started
#   PYTHON=FILE   the interpreter new environments are made with
#   UV=           pip installs them, though uv is there
# The Spark versions that the template offers, the default first.
SPARKS := $(shell sed -n 's/^ *Spark."\([0-9.]*\)".*/\1/p' local_extensions/versions.py)
DEFAULT := $(firstword $(SPARKS))
QUEUES ?= 1
SPARK ?= $(DEFAULT)
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

# The tools, and the default Spark for the generated projects. Each other Spark has an environment of its own.
TOOLS := .venv
BIN := $(TOOLS)/bin
venv = $(TOOLS)$(if $(filter $(DEFAULT),$(1)),,-$(1))

DEMO := build/demo
PATHS_1 := //home/ytstream/bids
PATHS_2 := //home/ytstream/bids-east //home/ytstream/bids-west

# What generated projects get. The default's has the template's own tools, too.
lock = templates/locks/spark-$(1).txt
# The generator of the site and the audit of workflows.
VENV_TOOLS := .venv-tools
LOCK_TOOLS := templates/locks/tools.txt
STAMP_TOOLS = $(VENV_TOOLS)/.locked-$(shell cksum $(LOCK_TOOLS) | cut -d ' ' -f 1)
# One stamp per state of these files: a second set-up finds nothing to do.
STAMP = $(call venv,$*)/.locked-$(shell cksum $(call lock,$*) packages/*/pyproject.toml | cksum | cut -d ' ' -f 1)

.DEFAULT_GOAL := help
.PHONY: help prerequisites git java setup setup-all $(SPARKS:%=setup-%) $(SPARKS:%=installed-%) installed-tools demo test \
  test-all test-more test-quick journeys crash-matrix proof outages damage operations conformance test-cluster real spyt-tests fuzz bench lint audit site picture locks dist release

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

setup: setup-$(DEFAULT) ## make the environment of the default Spark, with the locked packages

# At once: pip works on one core.
setup-all: ## make the environments of all Spark versions
	@$(MAKE) --no-print-directory --jobs 2 $(SPARKS:%=setup-%)

$(SPARKS:%=setup-%): setup-%: prerequisites
	@$(MAKE) --no-print-directory installed-$*

# All that linters need: no Java.
$(SPARKS:%=installed-%): installed-%: git
	@test -f "$(STAMP)" || { \
	  set -e; \
	  $(call make-environment,$(call venv,$*)); \
	  echo "Installing the locked packages for Spark $* into $(call venv,$*), about 1 GB; the first time takes a few minutes."; \
	  $(call install-locked,$(call venv,$*),$(call lock,$*)); \
	  $(call installer,$(call venv,$*)) --no-deps $(addprefix --editable ,$(dir $(wildcard packages/*/pyproject.toml))); \
	  rm -f "$(call venv,$*)"/.locked-* "$(call venv,$*)/.begun"; \
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
	$(if $(filter $(SPARKS),$(SPARK)),,$(error SPARK=$(SPARK): give one of $(SPARKS)))
	@$(MAKE) --no-print-directory setup $(if $(filter $(DEFAULT),$(SPARK)),,setup-$(SPARK))
	@$(BIN)/python -m tools.demo_words "GUARANTEE=$(GUARANTEE)" "PROCESSING=$(PROCESSING)"
	@rm -rf $(DEMO) && mkdir -p $(DEMO)
	@printf 'replay_dir: $(DEMO)/../replay\ncookiecutters_dir: $(DEMO)/../cookiecutters\n' > $(DEMO)/../cookiecutter.yaml
	@# Its hook says what a user does next; here the next lines do it.
	@$(BIN)/cookiecutter . --no-input --config-file $(DEMO)/../cookiecutter.yaml --output-dir $(DEMO) \
	  "queue_paths=$(PATHS_$(QUEUES))" spark_version=$(SPARK) \
	  $(if $(GUARANTEE),"guarantee=$(GUARANTEE)") $(if $(PROCESSING),"processing=$(PROCESSING)") > /dev/null
	@echo "Made $$(echo $(DEMO)/*) from the template."
	@$(BIN)/python -m tools.overlay $(call venv,$(SPARK)) build/environment-$(SPARK)
	@echo "build/environment-$(SPARK) has the packages of $(call venv,$(SPARK)): pip finds them there."
	@$(MAKE) --no-print-directory -C $(DEMO)/* demo UV= VENV="$$PWD/build/environment-$(SPARK)"

dist: ## the wheels of packages/, as an organisation uploads them to its index, in dist/
	@rm -rf dist && $(find-python); "$$python" local_extensions/wheels.py dist

# A test that hangs fails, with the lines where its threads are, and the others run on.
LIMIT := -o faulthandler_timeout=1200 -o faulthandler_exit_on_timeout=true

# Marks of what `make test-all` alone runs; pyproject.toml says what each means.
ALL_ONLY := journey or other_spark or thorough

# One worker more than cores, since tests also wait, and four at most. Each collects the tests and has a JVM of its own.
WORKERS := $(shell cores=$$(getconf _NPROCESSORS_ONLN 2> /dev/null || echo 2); echo $$((cores < 4 ? cores + 1 : 4)))

test: setup installed-tools ## the tests of a contributor, on the default Spark
	@$(BIN)/pytest -n $(WORKERS) --dist worksteal $(LIMIT) -m "not ($(ALL_ONLY))"

test-all: test test-more journeys crash-matrix ## everything: all tests, the crash matrix, a sample of the proof; hours
	@$(MAKE) --no-print-directory proof SAMPLE=200

test-more: setup-all ## the tests that `make test` leaves out: of the other Spark versions, and long ones
	@$(BIN)/pytest -n $(WORKERS) --dist worksteal $(LIMIT) -m "(other_spark or thorough) and not journey"

journeys: setup-all ## the longest tests, one after the other: `make test` has a sample of them
	@$(BIN)/pytest -m journey --ignore tests/faults/operations

crash-matrix: setup ## two drivers: one paused, late or killed at every point of a batch, rows counted
	@$(BIN)/python -m tests.faults.two_drivers --only "$(ONLY)" --lanes $(or $(LANES),$(WORKERS))

proof: setup ## every case of docs/proof.md without a result for this runtime: hours; ONLY=... plays a case again
	$(if $(filter $(SPARKS),$(SPARK)),,$(error SPARK=$(SPARK): give one of $(SPARKS)))
	@$(if $(filter $(DEFAULT),$(SPARK)),,$(MAKE) --no-print-directory setup-$(SPARK))
	@$(BIN)/python -m tests.faults.$(if $(MUTANTS),mutants,sweep) --only "$(ONLY)" \
	  $(if $(CHECK),--check "$(CHECK)" $(if $(SEED),--seed $(SEED))) $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(STUMBLES),--stumbles) $(if $(LANES),--lanes $(LANES)) $(if $(LIST),--list) \
	  $(if $(filter $(DEFAULT),$(SPARK)),,--spark $(SPARK))

outages: setup ## the cluster goes away for ten minutes, HTTP or RPC for one; a job is stopped in every state
	@$(BIN)/python -m tests.faults.two_drivers.outages --only "$(ONLY)"

damage: setup-all ## a file of a job's checkpoint is damaged: what the job says, how `rewind state` repairs it, rows counted
	@$(BIN)/python -m tests.faults.two_drivers.damage --only "$(ONLY)"

operations: setup-all ## jobs through spark-submit on the minicluster's operations, with every fault; ONLY=... chooses
	@$(BIN)/pytest tests/faults/operations -k "$(ONLY)"

# A worker's tests share its clusters.
test-quick: setup installed-tools ## what runs without Spark
	@$(BIN)/pytest -n $(WORKERS) --dist worksteal $(LIMIT) -m "not slow and not spark and not ($(ALL_ONLY))"

conformance: setup ## the conformance suite, on the cluster PROXY (YT_TOKEN) or the minicluster
	@YT_CONFORMANCE_PROXY="$(PROXY)" $(BIN)/pytest packages/minicluster/tests/conformance

test-cluster: setup ## a whole submit and the conformance suite on the cluster PROXY (YT_TOKEN): where it differs
	$(if $(PROXY),,$(error PROXY is missing: the name, host or URL of a cluster))
	@$(BIN)/python -m tools.cluster_trial "$(PROXY)" --folder "$(FOLDER)" $(if $(SETTINGS),--settings "$(SETTINGS)")

# Exit code 1: a step failed. 3: an answer has changed since the run before.
real: setup ## a YTsaurus server in a container: the suite, jobs killed and submitted; writes docs/real/REPORT.md
	@$(BIN)/python -m tools.real $(if $(PROXY),--proxy "$(PROXY)",$(if $(IMAGE),--image "$(IMAGE)")) \
	  --folder "$(FOLDER)" $(if $(SETTINGS),--settings "$(SETTINGS)")

# A path: nothing is fetched here.
spyt-tests: setup setup-$(lastword $(SPARKS)) ## the end-to-end tests of SPYT's own repository, on the minicluster's operations
	$(if $(CHECKOUT),,$(error CHECKOUT is missing: the folder of a checkout of ytsaurus-spyt))
	@$(BIN)/python -m tools.spyt_tests "$(CHECKOUT)" $(ONLY)

# ONLY=requests or ONLY=sequences: one of the two.
fuzz: setup ## random requests to the minicluster, then random sequences of what happens to a job, SECONDS each
	$(if $(filter-out requests sequences,$(ONLY)),$(error ONLY=$(ONLY): give requests or sequences))
	@$(if $(filter sequences,$(ONLY)),:,$(BIN)/python \
	  -m tools.fuzz.run --seconds $(SECONDS) --seed $(SEED))
	@$(if $(filter requests,$(ONLY)),:,$(BIN)/python \
	  -m tests.faults.sequences --seconds $(SECONDS) --seed $(SEED))

bench: setup-all ## jobs beside SPYT's listing, as tables and as files: eight rows, most of an hour
	@$(BIN)/python -m bench

lint: installed-$(DEFAULT) ## ruff, mypy --strict, the layers of the packages, the words of the pages
	@$(BIN)/ruff check --config pyproject.toml .
	@$(BIN)/ruff format --config pyproject.toml --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports pyproject.toml --no-cache --no-logo
	@$(BIN)/python -m tools.prose

audit: installed-$(DEFAULT) installed-tools ## zizmor and jactionlint, over this repository's workflows and the generated ones
	@$(BIN)/python -m tools.audit "$(VENV_TOOLS)/bin/zizmor" "$(VENV_TOOLS)/bin/jactionlint"

site: installed-$(DEFAULT) installed-tools ## the documentation as a site, in build/site; a link that leads nowhere ends it
	@$(BIN)/python -m tools.site "$(VENV_TOOLS)/bin/zensical"

picture: setup ## make the pictures in docs/ again, from a demo that it runs; docs/page.png if chromium is there
	@$(BIN)/python -m tools.picture
	@$(BIN)/python -m tools.operator_pictures $(shell command -v chromium)

release: installed-$(DEFAULT) ## tag VERSION=..., if the tree, the packages' versions and the changelog agree
	@$(BIN)/python -m tools.release "$(VERSION)"

locks: installed-$(DEFAULT) ## resolve templates/locks again from versions.py: what is installed, here and in generated projects
	@$(BIN)/python -m tools.locks

JAVA := $(shell sed -n 's/.*"java", "\([0-9]*\)".*/\1/p' local_extensions/versions.py)
include templates/make/environment.mk
# Another Spark's, as a rule; the generated Makefile has its own.
unexport PYTHONPATH
# Set in many containers. Each of the hundreds of Pythons of a run would compile pandas again.
unexport PYTHONDONTWRITEBYTECODE
include templates/make/prerequisites.mk
include templates/make/packages.mk
