# Everything sets itself up: Python 3.11 or newer, make and git are all that is needed.
# `make run` and `make test` are the two commands that matter; `make check` is what a change has to pass.

UV := scripts/uv
BIN := .venv/bin
DENIZEN_HOME ?= $(HOME)/.denizen
export DENIZEN_HOME

.PHONY: run chat test check fix shape bench tables chaos docs docs-site screenshots release lock clean

run: .venv/.run  ## an agent on the built-in model, on the chat page and in a Discord server to try
	$(BIN)/denizen models pull --if-needed --uv scripts/uv
	$(BIN)/denizen setup --non-interactive --if-missing
	@echo "In another terminal: make chat"
	$(BIN)/denizen run --simulate

chat: .venv/.run  ## talk to the agent in the terminal
	$(BIN)/denizen chat

test: .venv/.dev  ## all tests
	$(BIN)/pytest -n auto --dist loadgroup

check: .venv/.dev  ## format, lint, types, import contracts, conventions, docs, tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m scripts.conventions
	$(BIN)/python -m scripts.docs --check
	$(MAKE) --no-print-directory test

fix: .venv/.dev  ## format and repair what can be repaired
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python -m scripts.docs

shape: .venv/.dev  ## long modules, long functions, many parameters
	$(BIN)/python -m scripts.shape

bench: .venv/.dev  ## figures beside the aims; nothing is asserted
	$(BIN)/python -m benchmarks size start turns growth retrieval retrieval_large

tables: .venv/.dev  ## docs/explanation/measured.md from runs: security, performance and quality; half an hour
	$(BIN)/python -m scripts.tables

chaos: .venv/.dev  ## faults of Discord, model, database and disk, and kills; half an hour
	$(BIN)/python -m tests.chaos

docs-site: .venv/.dev  ## the documentation as a site with search, each version below dist/site; broken links fail
	$(BIN)/python -m scripts.docs_site

screenshots: .venv/.dev  ## the pictures of docs/images, from a running Denizen and Chromium
	scripts/browser
	$(BIN)/python -m scripts.screenshots

release: .venv/.dev  ## wheel, sdist, list of parts and licences in dist/release, signed if SIGNING_KEY names a key
	$(BIN)/python -m scripts.release

docs: .venv/.dev  ## write the generated reference
	$(BIN)/python -m scripts.docs

lock:  ## resolve the dependencies anew
	scripts/lock

clean:
	rm -rf .venv .tools

.venv/.run: pyproject.toml locks/run.txt scripts/install
	scripts/install run
	@touch $@

.venv/.dev: pyproject.toml locks/dev.txt locks/weights-small.txt locks/bench.txt scripts/install
	scripts/install dev
	@touch $@
