# Everything lands in .venv and .cache; a second call downloads nothing.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup classes demo test test-fast faults attack brokers chaos check bench cluster fuzz mutants soak soak-alerts soak-verdicts soak-hurried histories package package-test lock clean
# Stages depend on each other's stamps, not on their order in the file; jars and packages are fetched one after the other.
.NOTPARALLEL:
# Some environments set it: each of the thousands of processes that tests start would compile what it imports again.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
CACHE := .cache

# A stamp carries the checksum of what it answers to: content decides, not the time at which git wrote a file.
checksum = $(shell cat $(1) | cksum | tr ' ' -)
PACKAGES := $(VENV)/.packages-$(call checksum,requirements.lock)
JARS_SUM := $(call checksum,conf/ivy.xml conf/ivysettings.xml)
JARS := $(CACHE)/jars/.kafka-$(JARS_SUM)
SPARK_JARS := $(CACHE)/jars/.spark-$(JARS_SUM)
# The JVM checks whatever else an archive of classes depends on.
KAFKA_CLASSES := $(CACHE)/jars/.kafka-classes-$(JARS_SUM)
CLASSES := $(CACHE)/classes/.made-$(call checksum,requirements.lock conf/ivy.xml)
JUDGE_JARS := $(CACHE)/jars/.judge-$(JARS_SUM)
BENCH_JARS := $(CACHE)/jars/.bench-$(JARS_SUM)
HDFS_JARS := $(CACHE)/jars/.hdfs-$(JARS_SUM)
S3_JARS := $(CACHE)/jars/.s3-$(JARS_SUM)
CONSOLE := $(BIN)/group-monitor

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(PACKAGES) $(CONSOLE) $(SPARK_JARS) $(JARS) $(JUDGE_JARS) ## virtual environment, pinned packages, jars
	@:

classes: setup $(CLASSES) $(KAFKA_CLASSES) ## the classes of Spark's JVM and of Kafka's ready-made, for shorter starts and less memory (a minute, 220 MB)
	@:

demo: setup ## embedded Kafka, real members, a rolling upgrade, watched (DEMO_SECONDS=n ends it after n seconds, and once all is shown)
	@exec $(CONSOLE) demo

# Two modules run at once: what needs Spark or a broker waits half of its time. All else comes before it, as beside it two
# cores are so busy that monitors stand still. What belongs together, what begins: tests/conftest.py.
# Nothing is installed for it: the last line says what was not tested, and which command brings it.
test: classes ## every test, the slow ones included (PYTEST_ARGS="-k name": those, one after another)
	@rm -f $(CACHE)/left-out; status=0; \
	$(RUNS_OF_TESTS) \
	$(BIN)/python -m tests.left_out $(CACHE)/left-out || [ $$status -ne 0 ] || status=1; \
	exit $$status
ifdef PYTEST_ARGS
test: RUNS_OF_TESTS = $(PYTEST) $(PYTEST_ARGS) || status=$$?;
else
test: RUNS_OF_TESTS = $(PYTEST) -m 'not spark and not broker' $(AT_ONCE) || status=$$?; \
	$(PYTEST) -m 'spark or broker' $(AT_ONCE) $(WITH_BROKERS) || status=$$?;
endif
# All modules with such tests; to load the others would take half a minute. tests/test_makefile.py sees that it is all.
test: WITH_BROKERS = tests/bench tests/demo tests/faults tests/integration tests/test_compose.py tests/test_package.py
test: AT_ONCE = -n 2 --dist loadgroup --no-loadscope-reorder
test: PYTEST = $(BIN)/python -m pytest --left-out=$(CACHE)/left-out

test-fast: setup ## the tests without Spark or a broker
	@exec $(BIN)/python -m pytest -m 'not spark and not broker' $(PYTEST_ARGS)

faults: classes ## put a monitor through faults, and write down what came of it (FAULTS_ARGS="--rounds N --which NAME,…")
	@FAULTS=all $(BIN)/python -m pytest tests/faults/test_ghosts.py tests/faults/test_recreated.py tests/faults/test_catch_up.py tests/faults/test_parts.py
	@exec $(BIN)/python -m tests.faults $(FAULTS_ARGS)

attack: classes ## attack a monitor on loopback in each way that once worked, and look at what it holds (ATTACKS="--which long_names,… --write")
	@exec $(BIN)/python -P -m tests.attack $(ATTACKS)

brokers: classes ## a monitor beside a real broker of each release, compared with its own tools (BROKERS="--which 2.0.1,3.9.2")
	@$(BIN)/python -P -m tests.brokers $(BROKERS)
	@[ -n "$(BROKERS)" ] || exec $(BIN)/python -P -m tests.brokers.loading

chaos: classes ## three brokers, real groups and a monitor in chaos, compared with Kafka's Admin client (MINUTES=60 SEED=1)
	@exec $(BIN)/python -P -m tests.chaos --minutes $(or $(MINUTES),60) $(if $(SEED),--seed $(SEED))

check: setup ## lint, types, layering, generated files up to date
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy
	@$(BIN)/python -m pytest -q tests/test_layering.py tests/dashboards/test_names.py
	@$(BIN)/python -m dashboards.build --check
	@$(BIN)/python -m dashboards.pages --check
	@$(BIN)/python -m streaming.config.reference --check
	@$(BIN)/python -m streaming.web.openapi --check
	@$(BIN)/python -m tests.doc_tables --check
	@$(BIN)/python -m release.helm_schema --check
	@$(BIN)/python -m bench.pages --check

bench: classes $(BENCH_JARS) ## how fast it is on this machine, into bench/results.json (PARTS="catch-up latency" runs these only, PARTS=millionwhat takes long)
	@exec $(BIN)/python -m bench $(PARTS)

cluster: setup $(HDFS_JARS) $(S3_JARS) ## the job by spark-submit on a standalone cluster, and on local-cluster[2,1,1024]; a checkpoint on HDFS and S3
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --upgrade --target $(CACHE)/moto -r tests/integration/moto.lock
	@CLUSTERS=all exec $(BIN)/python -m pytest tests/integration/test_cluster.py

fuzz: setup ## damaged input for every decoder (FUZZ="--minutes 30"; more in tests/fuzz)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r tests/fuzz/requirements.lock
	@exec $(BIN)/python -m tests.fuzz $(FUZZ)

soak: classes ## a steady load of commits on the real job (MINUTES=30 RATE=10000; WRITE=1 keeps the figures for the docs)
	@exec $(BIN)/python -m tests.soak --minutes $(or $(MINUTES),30) --rate $(or $(RATE),10000) $(if $(WRITE),--write)

soak-alerts: setup ## the healthy demo under a real Prometheus: exactly the alerts that are expected (MINUTES=30; WRITE=1 keeps its samples for the tests)
	@exec $(BIN)/python -P -m tests.soak.demo_alerts --minutes $(or $(MINUTES),30) $(if $(WRITE),--write)

soak-verdicts: setup ## fifty real groups, rolled one after another: no alarm in all that time (MINUTES=60)
	@exec $(BIN)/python -P -m tests.soak.verdicts --minutes $(or $(MINUTES),60)

soak-hurried: setup ## fifty real groups migrated with kill -9, some of whose members never come back: what each lost is named
	@exec $(BIN)/python -P -m tests.soak.hurried

histories: setup ## lawful histories by Kafka's own coordinator, on a clock of its own: no alarm without a cause (HISTORIES=2000 SEED=0)
	@exec $(BIN)/python -P -m tests.simulator.kafka --histories $(or $(HISTORIES),2000) --seed $(or $(SEED),0)

mutants: setup ## break the rules in 400 places, one at a time: does a test find it? (MUTANTS="--seed 16 --only settling"; hours, at the lowest priority)
	@exec $(BIN)/python -P -m tests.mutation $(MUTANTS)

package: setup ## the wheel with page, dashboards and configuration, and the source archive, in dist/
	@exec $(BIN)/python release/build.py

package-test: setup ## the wheel installed by pip with all it asks for, away from the checkout, and run against a broker
	@INSTALL=fresh exec $(BIN)/python -m pytest tests/integration/test_installed.py

.PHONY: sbom audit
sbom: setup ## the bill of materials (CycloneDX) of packages and jars, into .cache/sbom.cdx.json
	@$(BIN)/python -m supply.sbom

audit: sbom ## ask osv.dev whether anything of it is known to be vulnerable ("Error 3": it is out of reach)
	@$(BIN)/python -m supply.audit

lock: ## pin the packages of pyproject.toml again; needs uv
	uv pip compile --universal --extra test --extra audit --generate-hashes --no-emit-index-url --no-header pyproject.toml -o requirements.lock
	uv pip compile --universal --generate-hashes --no-emit-index-url --no-header -c requirements.lock pyproject.toml -o requirements.run.lock
	uv pip compile --universal --extra msk --extra otlp --generate-hashes --no-emit-index-url --no-header -c requirements.lock pyproject.toml -o requirements.extras.lock
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header tests/fuzz/requirements.in -o tests/fuzz/requirements.lock
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header tests/integration/moto.in -o tests/integration/moto.lock
	uv pip compile --generate-hashes --no-emit-index-url --no-header tests/brokers/java.in -o tests/brokers/java.lock

clean: ## remove what set-up and tests have left
	rm -rf $(VENV) $(CACHE) dist build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis spark-warehouse
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- set-up -------------------------------------------------------------------------------------------------------------

# The first Python that is new enough; PYTHON=… takes another.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$python" && break; done)

define check_python
	found=$$("$(or $(PYTHON),python3)" -c 'import sys; print(*sys.version_info[:3], sep=".")' 2>/dev/null) || found=none; \
	if ! "$(or $(PYTHON),python3)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
		echo "error: PYTHON: found $$found, accepted: Python 3.11 or newer; install it and let PATH lead to it, or say make PYTHON=/path/to/python3" >&2; \
		exit 2; \
	fi; \
	if ! "$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null; then \
		echo "error: PYTHON: found $(PYTHON) $$found without ensurepip and venv; install them (Debian: apt install python3-venv)" >&2; \
		exit 2; \
	fi
endef

$(PACKAGES):
	@$(check_python)
	@"$(PYTHON)" -m streaming.spark.java >/dev/null
	@[ -x $(BIN)/python ] && $(BIN)/python -m pip --version >/dev/null 2>&1 || "$(PYTHON)" -m venv --clear $(VENV)
	@echo "Installing packages into $(VENV) (minutes, once)"
	@# The cache lets an interrupted set-up go on where it was; once all is installed it is of no use.
	@PIP_CACHE_DIR="$(CURDIR)/$(CACHE)/pip" PIP_DISABLE_PIP_VERSION_CHECK=1 \
		$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	@rm -rf $(CACHE)/pip $(VENV)/.packages-*
	@touch $@

# An installation of the checkout itself would have to fetch a build backend; a line in a .pth file does the same.
$(CONSOLE): $(PACKAGES)
	@# In ASCII: in some locales Python reads nothing else there, and does not start.
	@$(BIN)/python -c 'import os, pathlib, sysconfig; pathlib.Path(sysconfig.get_path("purelib"), "group-monitor.pth").write_text(f"import sys; sys.path.append({os.getcwd()!a})\n", "ascii")'
	@printf '#!/bin/sh\n# -P: a directory of the same name where the user stands must not come first.\nexec "%s" -P -m streaming "$$@"\n' \
		"$(CURDIR)/$(BIN)/python" > $@
	@chmod +x $@

# A stamp for each configuration of conf/ivy.xml: what Spark's JVM has besides its own, the broker's jars, which demo and
# tests need, compiler and axe-core, which only tests need, and what only `make bench` and `make cluster` need.
$(CACHE)/jars/.%-$(JARS_SUM): | $(PACKAGES)
	@rm -f $(CACHE)/jars/.$*-*
	@java=$$($(BIN)/python -m streaming.spark.java) && mkdir -p $(CACHE) && \
	echo "Fetching jars into $(CACHE)/jars/$* (once)" && \
	if ! LC_ALL=C.UTF-8 "$$java" -jar $(VENV)/lib/python3.*/site-packages/pyspark/jars/ivy-*.jar -warn \
			-settings conf/ivysettings.xml -ivy conf/ivy.xml -confs $* \
			-retrieve '$(CACHE)/jars/$*/[artifact]-[revision].[ext]' -sync > $(CACHE)/ivy.log 2>&1; then \
		grep -iE 'unresolved dependency|download failed|not found|unknownhost|refused|timed out' $(CACHE)/ivy.log | head -3 >&2 || true; \
		echo "error: jars: not all of conf/ivy.xml could be fetched (see $(CACHE)/ivy.log); is the registry within reach?" >&2; \
		exit 2; \
	fi
	@# Only jars that were tried are used, wherever they come from.
	@cd $(CACHE)/jars && if ! { ! sums=$$(grep ' $*/' ../../conf/jars.sha256) || \
			$$(command -v sha256sum || echo shasum -a 256) -c - <<< "$$sums" > ../jars.log 2>&1; }; then \
		grep -v ': OK$$' ../jars.log | head -3 >&2 || true; \
		echo "error: jars: not those of conf/jars.sha256 (see $(CACHE)/jars.log), accepted: the ones that are" >&2; \
		exit 2; \
	fi
	@touch $@

# Without it everything works as well.
$(CLASSES): | $(PACKAGES) $(CONSOLE) $(SPARK_JARS)
	@echo "Starting Spark once for its classes, into $(CACHE)/classes (a minute, once)"
	@rm -f $(CACHE)/classes/.made-*
	@$(BIN)/python -m streaming.monitor.cds_training >/dev/null && touch $@ || echo "warning: no archive of Spark's classes: starts take longer" >&2

$(KAFKA_CLASSES): | $(CONSOLE) $(JARS)
	@$(BIN)/python -m lab.kafka_classes && touch $@ || echo "warning: no archive of Kafka's classes: brokers start later" >&2
