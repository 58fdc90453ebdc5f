# Everything a developer types. `make help` lists it.
.DEFAULT_GOAL := help
.PHONY: help setup setup-build setup-bench build run test bench lint format fuzz simulate simulations floods floods-h2 autobahn soak nights leniency replay stream deb clean

help: ## list these targets
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

setup: ## install the Debian and Python packages that building and testing need
	@scripts/setup.sh build test

setup-build:
	@scripts/setup.sh build

setup-bench:
	@scripts/setup.sh build test bench

build: ## build .build/release/portcullis with the Swift runtime inside
	swift build -c release --static-swift-stdlib --product portcullis
	@scripts/seam.sh .build/release/portcullis

run: setup-build build ## build and start the demo: backend, issuer and proxy in one process
	.build/release/portcullis demo

test: setup ## build and run every test
	@scripts/test.sh

bench: setup-bench build ## measure against nginx, HAProxy and Envoy
	bench/run.sh

lint: setup ## check formatting
	@scripts/lint.sh

format: ## format the Swift sources
	@scripts/lint.sh --fix

fuzz: setup-build ## fuzz the parsers, time-boxed
	Fuzz/run.sh

simulate: setup-build ## hours of a simulated world in minutes: SEED=… MINUTES=… TRACE=file, or a new seed
	swift build --build-tests
	SIMULATION_SEED="$(SEED)" SIMULATION_MINUTES="$(MINUTES)" SIMULATION_TRACE="$(TRACE)" SWIFT_BACKTRACE=enable=no \
		swift test --skip-build --filter 'SimulationTests/chosen'

simulations: setup-build ## twenty seeds of an hour each, each in two processes that must agree
	swift build --build-tests
	scripts/simulations.sh $${MINUTES:-60} $${FIRST:-1} $${LAST:-20}

leniency: setup ## 100,000 malformed requests beside nginx and HAProxy, and longer floods, with the optimised build
	swift build -c release --static-swift-stdlib --product portcullis
	PORTCULLIS=.build/release/portcullis LENIENCY_CASES=$${LENIENCY_CASES:-100000} FLOOD_SECONDS=$${FLOOD_SECONDS:-5} \
		.venv/bin/python -m pytest Tests/Integration/test_leniency.py Tests/Integration/test_hostile_http2.py -s

floods: setup-bench build ## 20,000 silent and slow connections beside one client that behaves, and the same for nginx
	bench/floods

floods-h2: setup ## what hostile HTTP/2 clients do to the waiting times of others, as a table, with the optimised build
	swift build -c release --static-swift-stdlib --product portcullis
	PORTCULLIS=.build/release/portcullis FLOOD_SECONDS=$${FLOOD_SECONDS:-5} \
		.venv/bin/python -m pytest Tests/Integration/test_hostile_http2.py -s --timeout 600

autobahn: setup ## every case of the Autobahn suite, those about limits and compression too, with the optimised build
	swift build -c release --static-swift-stdlib --product portcullis
	PORTCULLIS=.build/release/portcullis AUTOBAHN=1 .venv/bin/python -m pytest Tests/Integration/test_autobahn.py -s

soak: setup ## ten minutes of mixed traffic; memory and descriptors must stay flat
	swift build -c release --static-swift-stdlib --product portcullis
	PORTCULLIS=.build/release/portcullis SOAK_SECONDS=$${SOAK_SECONDS:-600} \
		.venv/bin/python -m pytest Tests/Integration/test_soak.py -s --timeout 1200

nights: setup ## reloads, upgrades, backends that die, certificates and a lying resolver under load, three times
	swift build -c release --static-swift-stdlib --product portcullis
	PORTCULLIS=.build/release/portcullis NIGHTS=$${NIGHTS:-3} \
		.venv/bin/python -m pytest Tests/Integration/test_nights.py -s

replay: setup ## a thousand copies of one token at once, a hundred times, on each store
	swift build -c release --static-swift-stdlib --product portcullis
	PORTCULLIS=.build/release/portcullis REPLAY_ROUNDS=$${REPLAY_ROUNDS:-100} \
		.venv/bin/python -m pytest Tests/Integration/test_replay.py Tests/Integration/test_replay_google.py \
		-k thousand --timeout 3600

stream: setup ## stream 10 GiB in each direction; memory must stay flat
	swift build -c release --static-swift-stdlib --product portcullis
	PORTCULLIS=.build/release/portcullis STREAM_MIB=$${STREAM_MIB:-10240} \
		.venv/bin/python -m pytest Tests/Integration/test_streaming.py -s

deb: setup-build build ## make a Debian package in .build/
	@scripts/deb.sh .build/release/portcullis .build

clean: ## remove what was built
	rm -rf .build .venv .test
