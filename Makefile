# Parshall: everything a person types. Each target installs what it needs first (scripts/setup.sh
# says what and why).

SHELL   := /bin/sh
TARGET  := $(or $(CARGO_TARGET_DIR),target)
PROGRAM := $(TARGET)/release/parshall
# Built as the user, with the user's toolchain; only what is built is run as root.
SUDO    := $(if $(filter 0,$(shell id -u)),,sudo)
ARGS    ?=

.PHONY: help build lab run test test-kernels bench lint deep install clean

help: ## this text
	@echo "make TARGET [ARGS='...']"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1|\2/p' Makefile | awk -F'|' '{ printf "%-13s %s\n", $$1, $$2 }'

build: ## the release binary, target/release/parshall
	@scripts/setup.sh build
	cargo build --release --package app

lab: ## build, then compare kernel and router on this machine (root by sudo); ARGS="--quick", "--full", "-o report.html"
	@scripts/setup.sh lab
	cargo build --release --package app
	$(SUDO) $(PROGRAM) lab $(ARGS)

run: build ## build, then run the router: make run ARGS="-c router.yaml"
	$(SUDO) $(PROGRAM) run $(ARGS)

test: ## every test, those that make namespaces as root by sudo, or they say SKIP; ARGS="xdp app/system" for some programs
	@scripts/setup.sh test
	scripts/test.sh $(ARGS)

test-kernels: ## the tests inside other kernels and on their cards, emulated (half an hour each); ARGS=quick, "6.12 xdp", "cards vmxnet3"
	@scripts/setup.sh test
	scripts/test-kernels.sh $(ARGS)

bench: ## cycles a packet, per node and in all; a million routes from the kernel (root by sudo)
	@scripts/setup.sh lab
	cargo build --release --package app
	$(PROGRAM) bench dataplane $(ARGS)
	scripts/routes.sh

lint: ## formatting, clippy, documentation and its examples
	@scripts/setup.sh build
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- --deny warnings
	RUSTDOCFLAGS="--deny warnings" cargo doc --workspace --no-deps
	scripts/doc-tests.sh

deep: ## miri, sanitizers and fuzzers; each says SKIP where its tool is missing
	scripts/deep.sh

install: build ## binary and systemd unit into the system
	$(SUDO) install -m 0755 $(PROGRAM) /usr/local/sbin/parshall
	$(SUDO) install -m 0644 dist/parshall.service /etc/systemd/system/parshall.service
	@echo "Write /etc/parshall/router.yaml, then: systemctl enable --now parshall"

clean: ## what was built
	cargo clean
