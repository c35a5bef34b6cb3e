# What can be done here; each target is a line or two, the work is in scripts/. `make help` lists them.
.DEFAULT_GOAL := help
.PHONY: help setup run test lint fmt deny test-long torture fuzz loom miri memcheck golden bench peers dropin capi header mariadb mariadb-shell test-mariadb test-mariadb-long

SECONDS_PER_TARGET ?= 60

help: ## this list
	@sed -n 's/^\([a-z -]*\):[^#]*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

setup: ## install what this machine lacks for run, test and lint
	@scripts/setup.sh build lint browser peers

run: ## the flash benchmark against RocksDB and LevelDB; opens as report/index.html
	@scripts/run.sh

test: ## every test that takes seconds, and the MariaDB plugin's short ones
	@scripts/setup.sh build browser
	@$(MAKE) --no-print-directory test-mariadb
	@scripts/test.sh

lint: ## formatting, clippy, documentation, licences and advisories; warnings are errors
	@scripts/setup.sh build lint
	@scripts/lint.sh

fmt: ## format the tree
	cargo fmt --all
	cd fuzz && cargo fmt

deny: ## licences, sources and advisories of the dependencies
	@scripts/setup.sh build lint
	@scripts/deny.sh

test-long torture: loom miri fuzz test-mariadb-long ## long property runs, 50 kills, loom, Miri, fuzzing, MariaDB servers
	@scripts/torture.sh

fuzz: ## every fuzz target for SECONDS_PER_TARGET (60) seconds
	@scripts/setup.sh build deep
	@scripts/fuzz-all.sh $(SECONDS_PER_TARGET)

loom: ## the concurrent structures under every interleaving
	@scripts/setup.sh build
	@scripts/loom.sh

miri: ## the modules with unsafe code under Miri
	@scripts/setup.sh build deep
	@scripts/miri.sh

memcheck: ## the C programs of the drop-in libraries and the C interface under valgrind
	@scripts/setup.sh build
	@scripts/memcheck.sh

golden: ## write the golden database of the current format, if there is none yet
	ESKER_WRITE_GOLDEN=1 cargo test -p esker --test golden --locked

bench: ## the flash benchmark at a scale of seconds, Esker alone
	cargo run --release --locked --bin esker-lab -- run flash --engines esker --scale smoke

peers: ## fetch RocksDB and LevelDB for the lab
	@scripts/setup.sh peers
	@scripts/fetch-peers.sh

dropin: ## the libraries for programs of LevelDB and RocksDB, into target/dropin
	@scripts/setup.sh build
	@scripts/dropin.sh

capi: ## the C library with its header, into target/capi
	@scripts/setup.sh build
	@scripts/capi.sh

header: ## write esker.h anew from the sources of the C interface
	@scripts/setup.sh build
	@scripts/header.sh

mariadb: ## fetch MariaDB and build its plugin ha_esker.so, into target/mariadb
	@scripts/setup.sh build mariadb
	@scripts/mariadb/build.sh

mariadb-shell: ## a private MariaDB server with the plugin, and a client
	@scripts/mariadb/shell.sh

test-mariadb: mariadb ## the plugin's short tests, in MariaDB servers
	@scripts/mariadb/test.sh
	@scripts/mariadb/stock.sh storage_engine
	@scripts/mariadb/kill.sh 1

test-mariadb-long: mariadb ## the plugin's long tests: the server's other suites, kills, replication, sharding, sysbench, copies under load
	@scripts/setup.sh sql
	@scripts/mariadb/stock.sh engines
	@scripts/mariadb/kill.sh 20
	@scripts/mariadb/replicate.sh 5
	@scripts/mariadb/shard.sh
	@scripts/mariadb/checkpoint.sh 5
	@scripts/mariadb/limits.sh
	@scripts/mariadb/sysbench-kill.sh 60
	@ESKER_REQUIRE_MARIADB=1 ESKER_COMPARE_SEEDS=120-2000 cargo test --locked -p esker-lab-sql --test same_answers
