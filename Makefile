# The commands of a contributor. Every target first installs what it needs into .venv, once.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test style check e2e coverage laws bench bench-cluster memory soak pod-spec chart lock docs workflows clean

bin := .venv/bin
runtime := .venv/runtime.stamp
dev := .venv/dev.stamp
site := .venv/site.stamp

# A pipe fails if the command before it does.
SHELL := bash
.SHELLFLAGS := -o pipefail -c

# The first Python on PATH that is new enough; `make PYTHON=/path/to/python3 …` chooses another.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$python; break; }; done)

# Processes that run tests: two for each processor, since many tests wait for servers and commands.
WORKERS ?= $(shell echo $$(($$(nproc 2>/dev/null || echo 2) * 2)))

# Every process of tests would compile all of them again, and every command that they start the engine.
unexport PYTHONDONTWRITEBYTECODE

# Processes that run tests on real API servers. Each starts its own, which take about 3 GB of memory.
E2E_WORKERS ?= 2

# The release of Kubernetes that is built for `make e2e`: 1.37, whose scheduler schedules gangs, 1.35, or 1.30, the oldest that is supported.
export KUBERNETES ?= 1.37

# Whether every control plane of `make e2e` serves PodGroups, so that gangs are scheduled by them: on or off. Stories of gangs always have it.
export GANGS ?= off

# Pods of `make memory`, ten in a replica: as many as a set may have. A tenth takes a minute.
PODS ?= 100000

# Additional arguments for pytest, as in `make test ARGS='-k sync -x'`.
ARGS ?=

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z.0-9-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.venv: $(dev) ## create the virtual environment for development

$(bin)/python:
	@test -n "$(PYTHON)" || { echo "make: needs Python 3.11 or newer on PATH, with its venv module" >&2; exit 1; }
	@echo 'make: creates .venv with $(PYTHON)'
	@$(PYTHON) -m venv .venv

projects := pyproject.toml sandbox/pyproject.toml constraints.txt
install = $(bin)/python -m pip install --progress-bar off --disable-pip-version-check -c constraints.txt

# What pip says, less what repeats itself: a line for each package that it fetches, and what it installs.
progress := sed -u -n -E 's/ \(from .*//; /^ *(Collecting|Building|Installing collected|Successfully)/p'

# Wheels for `make demo`, a folder for each state of the projects and each Python: what is there needs no package index, which takes
# longest. It is complete once it has this name.
wheels = $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/grove-engine/wheels-$(shell \
	{ cat $(projects); $(bin)/python -VV; uname -ms; } | cksum | tr ' ' -)
needed = $(bin)/python -c 'import tomllib; \
	read = [tomllib.load(open(f"{folder}pyproject.toml", "rb")) for folder in ("", "sandbox/")]; \
	print("editables", *(each for one in read for each in (*one["project"]["dependencies"], *one["build-system"]["requires"])), sep="\n")'
from_wheels = $(install) --no-compile --no-index --find-links $(wheels)

$(runtime): $(projects) | $(bin)/python
	@if [ ! -d $(wheels) ]; then \
		echo 'make: fetches the packages that the engine and the sandbox need'; \
		rm -rf $(wheels).part; mkdir -p $(wheels).part; $(needed) > $(wheels).part/needed; \
		$(bin)/python -m pip wheel --progress-bar off --disable-pip-version-check -c constraints.txt -w $(wheels).part \
			-r $(wheels).part/needed | $(progress) && mv $(wheels).part $(wheels); \
	fi
	@echo 'make: installs the engine and the sandbox into .venv'
	@$(from_wheels) --quiet hatchling editables
	@$(from_wheels) --no-build-isolation -e . -e ./sandbox | $(progress)
	@touch $@

$(dev): $(projects) | $(bin)/python
	@echo 'make: installs the engine, the sandbox and the tools of a developer into .venv'
	@$(install) -e '.[dev]' -e ./sandbox | $(progress)
	@touch $(runtime) $@

$(site): $(projects) | $(bin)/python
	@echo 'make: installs what builds the documentation site into .venv'
	@$(install) -e '.[docs]' | $(progress)
	@touch $@

demo: $(runtime) ## preview, sync, scale and delete an example, on a cluster in memory
	$(bin)/engine demo

test: $(dev) ## run every test that needs nothing but Python
	$(bin)/python -m pytest -n $(WORKERS) --dist worksteal -m 'not e2e' $(ARGS)

style: $(dev) ## check style alone, in a few seconds
	$(bin)/ruff check -q .
	$(bin)/ruff format -q --check .

check: $(dev) ## check style, types and architecture, as the continuous integration does
	$(bin)/ruff check .
	$(bin)/ruff format --check .
	$(bin)/mypy
	$(bin)/python -m pytest -q tests/test_layout.py

e2e: $(dev) ## run the contract, the stories and the chart on a real API server and real schedulers (brought, or built with Go)
	@assets=$$(tests/controlplane/build) || { status=$$?; [ $$status -eq 69 ] && echo "e2e: skipped: there is no real API server here" && exit 0; exit $$status; }; \
	schedulers=$$(tests/controlplane/schedulers/build) || { status=$$?; [ $$status -eq 69 ] || exit $$status; echo "e2e: skipped: the tests that need real schedulers"; }; \
	helm=$$(tests/controlplane/helm/build) || { status=$$?; [ $$status -eq 69 ] || exit $$status; echo "e2e: skipped: the tests that need helm"; }; \
	promtool=$$(tests/prometheus/build) || { status=$$?; [ $$status -eq 69 ] || exit $$status; echo "e2e: skipped: the tests that need promtool"; }; \
	KUBEBUILDER_ASSETS="$$assets" SCHEDULERS_ASSETS="$$schedulers" HELM_ASSETS="$$helm" PROMTOOL="$$promtool" $(bin)/python -m pytest -n $(E2E_WORKERS) --dist loadfile -rs -m e2e $(ARGS)

coverage: $(dev) ## measure which branches of engine/ and resources/ the tests of `make test` take; pages in build/coverage/html
	@$(install) --quiet -e '.[coverage]'
	@rm -rf build/coverage && mkdir -p build/coverage
	$(bin)/python -m coverage run -m pytest -q -n $(WORKERS) --dist worksteal -m 'not e2e' $(ARGS)
	@$(bin)/python -m coverage combine --quiet
	@$(bin)/python -m coverage html --quiet
	@$(bin)/python -m coverage report

laws: $(dev) ## test the laws with cases that are generated anew
	@CASES=new $(bin)/python -m pytest -n $(WORKERS) --dist worksteal tests/laws

bench: $(runtime) ## run every benchmark; prints one JSON line per figure
	@for file in $(filter-out benchmarks/soak.py, $(wildcard benchmarks/[a-z]*.py)); do $(bin)/python -m benchmarks.$$(basename $$file .py) || exit 1; done

bench-cluster: $(dev) ## measure workloads on real control planes beside a client that only writes, as in `make bench-cluster ARGS='b1 b3 --profile'`
	@assets=$$(tests/controlplane/build) && KUBEBUILDER_ASSETS="$$assets" $(bin)/python -m benchmarks.cluster $(ARGS)

memory: $(dev) ## bring up the largest set that is admitted by default; fails if the engine needs more memory than it counts
	$(bin)/python -m benchmarks.memory --pods $(PODS) --sets 1 --of-replica 10 --churn 0 --check

soak: $(dev) ## churn on a real API server for ten minutes, and an hour of it in memory: what `engine run` leaves behind
	@assets=$$(tests/controlplane/build) && KUBEBUILDER_ASSETS="$$assets" $(bin)/python -m benchmarks.soak $(ARGS)
	SOAK_MINUTES=60 $(bin)/python -m pytest -q tests/reliability/test_soak.py

pod-spec: $(dev) ## record types and defaults of pod specs from a real API server, and write the CRDs that contain them
	@assets=$$(tests/controlplane/build) && KUBEBUILDER_ASSETS="$$assets" $(bin)/python -m tests.controlplane.pod_spec
	@$(bin)/engine manifests crds --dir deploy/crds
	@$(bin)/python -m tests.chart.generated

chart: $(dev) ## write the parts of the chart that are computed
	$(bin)/python -m tests.chart.generated

lock: $(dev) ## write the locks of the image: the wheels that it is built from, each with its hashes; needs a package index
	$(bin)/python deploy/image/lock.py

docs: $(site) ## build the documentation site into build/site, with a reference of kinds and documents; broken links are errors
	@$(bin)/python -m docs.site.pages build/docs/pages
	@rm -rf build/site
	@$(bin)/python -m sphinx --quiet --fail-on-warning --keep-going --fresh-env -c docs/site -d build/docs/doctrees build/docs/pages build/site
	@rm -f build/site/.buildinfo
	@echo 'docs: build/site/index.html'

workflows: ## check the workflows of the continuous integration with actionlint; needs Go
	go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

clean: ## delete what the other targets created
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
