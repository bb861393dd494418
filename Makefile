# Snarkline. `make help` lists the targets.
GO        ?= go
FUZZTIME  ?= 60s
TOOLS     := $(CURDIR)/.tools
LINT      := $(TOOLS)/golangci-lint
LINT_VER  := v2.15.0
SNARKJS   ?= $(TOOLS)/node_modules/snarkjs/build/cli.cjs
export CGO_ENABLED = 0

.DEFAULT_GOAL := help
.PHONY: demo test emulated race lint fuzz interop bench bench-peers bench-cpu bench-gpu bench-plan bench-filecoin bench-recording generate generated build clean help

demo: ## prove and verify a batch of SHA-256 partitions under a budget; writes demo-report.json
	$(GO) run ./cmd/snarkline demo --report demo-report.json

test: ## every test; needs Go alone (those of the GPU part run where a C++ compiler is found)
	$(GO) test -timeout 30m ./...

emulated: ## the tests of the GPU part on the emulator; fails where there is no C++ compiler
	SNARKLINE_NEED_EMULATOR=1 $(GO) test -timeout 15m ./gpu/... ./cuda/... ./stages/... ./cmd/...

race: ## every test under the race detector (needs a C compiler), with alloc's debug mode on
	CGO_ENABLED=1 $(GO) test -race -timeout 30m ./...

lint: $(LINT) ## golangci-lint
	$(LINT) run ./...

fuzz: ## each fuzz target for FUZZTIME (60s)
	GO="$(GO)" FUZZTIME="$(FUZZTIME)" sh scripts/fuzz.sh

interop: $(SNARKJS) ## proofs exchanged with snarkjs, both ways, both curves (needs node and npm)
	SNARKJS="$(SNARKJS)" $(GO) test -count=1 -tags interop -run Interop ./...

bench: ## the micro-benchmarks, and a batch within a budget
	$(GO) test -run '^$$' -bench . -benchtime 1s ./...
	$(GO) run ./benchmarks/budget

bench-peers: $(SNARKJS) ## gnark, snarkjs and Snarkline side by side: time and peak RSS
	SNARKJS="$(SNARKJS)" $(GO) run ./benchmarks/peers

bench-cpu: ## the CPU's arithmetic beside gnark-crypto's, and whole proofs beside gnark's
	$(GO) run ./benchmarks/arithmetic

bench-plan: ## settings simulated from one recording, then run: predicted beside measured
	$(GO) run ./benchmarks/plan

bench-filecoin: ## the published runs of a Filecoin prover beside what the model says of them
	$(GO) run ./benchmarks/filecoin

bench-recording: ## what recording a run costs
	$(GO) run ./benchmarks/recording

bench-gpu: ## on a card: transforms, sorts and sums by size, then whole partitions
	SNARKLINE_TEST_DEVICE=cuda:0 $(GO) test ./cuda/kernels -run '^$$' -bench 'NTT|Sort|Sums|Matrix' -benchtime 1x
	$(GO) run ./benchmarks/partition

generate: ## rewrite generated code: the second curve's, the assembly, the GPU's kernels (needs clang-19)
	$(GO) generate ./...

generated: ## whether assembly and PTX are what their sources give (PTX needs clang-19; make test does the rest)
	cd cpu/internal/ifma/gen && $(GO) test -count=1 ./...
	$(GO) run ./cuda/internal/kgen -check

build: ## the command, as bin/snarkline
	$(GO) build -trimpath -o bin/snarkline ./cmd/snarkline

clean: ## what make made
	rm -rf bin $(TOOLS) demo-report.json

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-16s %s\n", $$1, $$2}'

$(LINT):
	GOBIN=$(TOOLS) GOFLAGS= $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VER)

$(TOOLS)/node_modules/snarkjs/build/cli.cjs:
	mkdir -p $(TOOLS) && npm install --silent --no-audit --no-fund --prefix $(TOOLS) snarkjs@0.7.6
