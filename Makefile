# Rollstream: every job has a target that does its own set-up. `make help` lists them.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNS ?= runs
PYTEST := $(BIN)/python -m pytest
ON_REDIS := $(addprefix tests/integration/,edges replay service store weights cli/test_redis.py) tests/cases

.DEFAULT_GOAL := help
.PHONY: help setup train test lint test-redis7 test-envpool test-chart test-learning test-chaos test-compose test-cluster bench images schema docs clean

help: ## list the targets and what each does
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.ready ## make the virtual environment .venv and install everything into it (done by the others when needed)

$(VENV)/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(f"Rollstream needs Python 3.11 or newer, {sys.executable} is {sys.version.split()[0]}; try make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt 'torch>=2.6' numpy
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[torch,minari,dev]'
	@touch $@

train: setup ## solve CartPole-v1 with PPO: separate actor, learner and control processes, live progress, summary
	@$(BIN)/rollstream train ppo --env CartPole-v1 --stop-return 485 --runs-dir $(RUNS)

test: setup lint ## unit, property, parity, house, chart and integration tests: no root, no Docker (15 minutes and more)
	$(PYTEST) -n 3 --dist loadfile -m 'not learning and not chaos and not compose and not cluster and not redis7 and not envpool' tests

lint: setup ## formatting, style, types and the layers of the house
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy

test-redis7: setup ## the tests of what Redis stores and carries, against a redis-server 7 binary (needs redis-server)
	@command -v redis-server >/dev/null || { echo 'redis-server is not installed: apt-get install redis-server'; exit 1; }
	ROLLSTREAM_TEST_REDIS_SERVER=$$(command -v redis-server) $(PYTEST) -n 3 --dist loadfile -m 'not learning and not chaos and not compose and not cluster and not envpool' $(ON_REDIS)

test-envpool: setup ## install EnvPool (700 MB) and test environments in it
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[envpool]'
	$(PYTEST) -m envpool tests/integration/envs

test-chart: setup ## the Helm chart renders valid manifests with each helm that there is (needs helm)
	ROLLSTREAM_REQUIRE_HELM=1 $(PYTEST) -n 2 tests/chart

test-learning: setup ## every algorithm reaches its known return with one seed (minutes); FULL=1: all goals with all seeds (hours)
	$(PYTEST) -m learning --timeout 900 $(if $(FULL),--full) $(ARGS) tests/learning

test-chaos: setup ## kill each role and Redis while PPO and DQN train; prints recovery as JSON (minutes)
	$(PYTEST) -m chaos --timeout 900 -s tests/e2e/test_chaos.py

test-compose: setup ## build the images, train on Docker Compose, scale, take it down (needs Docker with Compose v2)
	$(PYTEST) -m compose --timeout 1200 -s tests/e2e/test_compose.py

test-cluster: setup ## install the chart on a cluster, train, scale, delete pods, uninstall (needs KUBECONFIG, helm; ROLLSTREAM_CLUSTER_PREFIX: a command to reach it through)
	$(PYTEST) -m cluster --timeout 1200 -s tests/e2e/test_cluster.py

bench: setup ## measure training and replay on this machine, JSON on standard output
	@$(BIN)/rollstream bench train --algo ppo --env CartPole-v1 --seconds 20 --json -
	@$(BIN)/rollstream bench replay --payload-bytes 400 --json -

images: ## build the images rollstream-core and rollstream-torch with the chart's version as their tag (needs Docker)
	version=$$(awk -F '"' '/^appVersion:/ {print $$2}' helm/rollstream/Chart.yaml); for name in core torch; do \
	  DOCKER_BUILDKIT=1 docker build --target $$name --tag rollstream-$$name:$$version --build-arg TORCH_INDEX_URL="$(TORCH_INDEX_URL)" . || exit 1; done

schema: setup ## write the generated files of the chart: values.schema.json from the typed values, the dashboard from the metrics
	$(BIN)/python -m rollstream_control.chart helm/rollstream

docs: setup ## write docs/reference.md from the code, and lists, lines, results and curves of docs/algorithms.md
	$(BIN)/python -m rollstream_cli.reference > docs/reference.md
	$(BIN)/python -m rollstream_cli.reference docs

clean: ## remove the virtual environment, caches and built files (runs/ stays)
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis libs/*.egg-info
