# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
DEMO := demo
TRAINERS := kohya diffusers ai-toolkit onetrainer simpletuner huggingface webdataset open-clip

.PHONY: help setup demo run test nightly lint format clean

help: ## Show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

setup: .venv/.ready ## Make .venv with all that is needed

.venv/.ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

demo: setup ## Make a small archive of scan-like PDFs and run everything on it
	$(BIN)/python -m tests.resources.make_demo $(DEMO)/archive
	$(BIN)/python -m flows.pipeline --source $(DEMO)/archive --output $(DEMO)/dataset \
		--clip.model print --captions.trigger intaglio $(TRAINERS:%=--trainers %)
	@echo
	@echo "Look at $(DEMO)/dataset/report/index.html, contact-sheet.jpg and images/;"
	@echo "the PDFs are in $(DEMO)/archive/. Your own: make run SOURCE=folder OUTPUT=dataset"
	@echo "On a GPU: $(BIN)/python -m flows.train --bundle $(DEMO)/dataset/bundles/kohya"

run: setup ## make run SOURCE=... OUTPUT=...: the same on your own PDFs
	@test -n "$(SOURCE)" -a -n "$(OUTPUT)" || { echo "Say: make run SOURCE=folder OUTPUT=dataset"; exit 2; }
	$(BIN)/python -m flows.extract --source "$(SOURCE)" --output "$(OUTPUT)"

test: setup lint ## Check style and types and run all tests, two files at a time
	$(BIN)/python -m pytest -n 2 --dist loadfile

nightly: setup ## Run the long tests: every fault in turn, fuzzing
	$(BIN)/python -m pytest -m nightly

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## Remove what setup and demo made
	rm -rf .venv $(DEMO)
