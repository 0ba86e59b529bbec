# A thin front door; Meson does the work (see meson.build).

BUILD := build
JOBS := $(shell nproc)

.DEFAULT_GOAL := all
.PHONY: all bench clean help install lint serve soak test

all: $(BUILD)/build.ninja ## build the program and the library, optimised, in build/ (installs what is missing)
	@meson compile -C $(BUILD) -j $(JOBS)

# Meson reruns itself when a meson.build changes; this is for the first time only.
$(BUILD)/build.ninja:
	@scripts/install-deps build
	@meson setup $(BUILD) --buildtype=release -Dtests=disabled -Dwerror=false

serve: all ## build and serve on port 2024, or the next free one; its address is that of the chat page
	@exec $(BUILD)/heddle serve $(ARGS)

test: ## build with two compilers and sanitizers, run every test, sum up
	@scripts/test

soak: ## long series: fuzzing from new seeds, kills, faults, tests under load (an hour)
	@scripts/soak

bench: all ## measure side by side with the peers
	@scripts/bench

lint: ## format, static analysis, function and file length, layering, width of documents
	@scripts/install-deps test
	@scripts/lint

install: all ## install the library, heddle.h and heddle.pc (DESTDIR is honoured)
	@meson install -C $(BUILD) --no-rebuild

clean: ## remove everything that was built
	rm -rf build build-* web/node_modules/.heddle-pages

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18
