# Hawser. Targets:
#
#   all        installs what is missing (deps), then builds the programs and libraries
#   build      the same without deps
#   demo       real files through a real broker, on this machine (examples/demo.sh); then a broker
#              and a receiver that are killed and lose nothing (examples/restart.sh)
#   check      layers, list of behaviours, unit and process tests; last line "N passed, N failed"
#   unit e2e   one half of it each; ONLY=WORD runs the test programs whose name has it
#   sim        SEEDS simulated networks from seed FIRST on (tests/README.md, "The simulation")
#   sim-planted  shows that the simulation finds the bugs of tests/sim/planted
#   layers     shows that pure files are pure and that includes point downward
#   asan tsan  check under AddressSanitizer and UBSan; under ThreadSanitizer
#   fuzz       each fuzzer for FUZZ_SECONDS (20)
#   count      instructions per record against their limits
#   soak       what takes long: full sizes, valgrind, minutes of load
#   bench      how fast, beside its peers (bench/README.md); bench-deps installs those
#   install    DESTDIR= PREFIX=/usr/local
#   format     clang-format over everything; format-check only looks
#   clean help
#
# Variables:
#
#   CC=clang        another compiler
#   BUILD=DIR       where everything is built (default build)
#   SANITIZE=LIST   -fsanitize=LIST, e.g. address,undefined
#   SCALE=N         counts of the long tests are divided by N (default 1)
#   SEEDS=N FIRST=n OFF=LIST TRACE=1   what sim runs
#   JOBS=N          test programs that run at a time (default 2)
#   WORKLOADS=w1,w3 PEERS=router,push_pull ROUNDS=3 SECONDS=2   what bench runs (default all)
#   V=1             shows whole commands

VERSION := $(shell sed -n 's/^\#define HWS_VERSION *"\(.*\)"/\1/p' lib/base/version.h)
CC      ?= cc
BUILD   ?= build
PREFIX  ?= /usr/local
SCALE   ?= 1
JOBS    ?= 2
SEEDS   ?= 2000
FIRST   ?= 1
FUZZ_SECONDS ?= 20
ROUNDS  ?= 3
SECONDS ?= 2

WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
            -Wswitch-enum -Wvla -Wformat=2 -Werror
ifneq ($(findstring clang,$(shell $(CC) --version 2>/dev/null)),)
WARNINGS += -Wmissing-variable-declarations
endif

CFLAGS   ?= -O2 -g
CPPFLAGS += -D_GNU_SOURCE -Ilib -I.
SANITIZE_FLAGS = $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer)
ALL_CFLAGS = -std=c11 -fPIC $(WARNINGS) $(CFLAGS) $(SANITIZE_FLAGS)
ALL_LDFLAGS = $(LDFLAGS) $(SANITIZE_FLAGS)
LIBS     := -Wl,--as-needed -lczmq -lzmq -lcjson -lsodium -lpthread

# A name that ends in _io touches the world; every other file is pure.
LIB_SOURCES     := $(wildcard $(foreach dir,base proto conf framing cancel client io,lib/$(dir)/*.c))
ENGINE_SOURCES  := $(filter-out broker/main.c,$(wildcard broker/*.c))
# What the programs are made of, beside their main; the tests may use it.
PART_SOURCES    := $(filter-out %/main.c,$(wildcard sender/*.c receiver/*.c ctl/*.c))
UNIT_SOURCES    := $(wildcard tests/unit/*.c tests/sim/*.c)
E2E_SOURCES     := $(wildcard tests/e2e/*.c)
SOAK_SOURCES    := $(wildcard tests/soak/*.c)
COUNT_SOURCES   := $(wildcard tests/count/*.c)
FUZZ_SOURCES    := $(wildcard tests/fuzz/*.c)
SUPPORT_SOURCES := $(wildcard tests/support/*.c)
BENCH_SOURCES   := $(wildcard bench/*.c)
BENCH_PARTS     := bench/record.c bench/statistics.c
PURE_SOURCES    := $(filter-out %_io.c,$(LIB_SOURCES) $(ENGINE_SOURCES) $(PART_SOURCES))
C_FILES          = $(shell git ls-files '*.c' '*.h')

comma  := ,
say     = $(if $(V),,@echo "  $(1) $@";)
objects = $(patsubst %.c,$(BUILD)/%.o,$(1))
program = $(patsubst %.c,$(BUILD)/%,$(1))

PROGRAMS   := $(addprefix $(BUILD)/,hawser-broker hawser-send hawser-recv hawser-ctl)
LIBRARIES  := $(BUILD)/libhawser.a $(BUILD)/libhawser.so.0
UNIT_TESTS := $(call program,$(UNIT_SOURCES))
E2E_TESTS  := $(call program,$(E2E_SOURCES))
SOAK_TESTS := $(call program,$(SOAK_SOURCES))
COUNTED    := $(call program,$(COUNT_SOURCES))
FUZZERS    := $(call program,$(FUZZ_SOURCES))
BENCH      := $(BUILD)/bench/bench

RUN_TESTS = HAWSER_BUILD=$(BUILD) SCALE=$(SCALE) JOBS=$(JOBS) tests/run.sh
chosen    = $(if $(ONLY),$(foreach test,$(1),$(if $(findstring $(ONLY),$(test)),$(test))),$(1))

.PHONY: all deps deps-dev build tests check unit e2e sim sim-planted layers asan tsan fuzz fuzz-build count soak bench bench-deps \
        demo install format format-check clean help
.SECONDARY:

all: deps
	@$(MAKE) --no-print-directory build
deps:
	@tools/install-deps.sh
deps-dev:
	@tools/install-deps.sh --dev

build: $(PROGRAMS) $(LIBRARIES)
	@:
tests: $(UNIT_TESTS) $(E2E_TESTS)
	@:

$(BUILD)/libhawser.a: $(call objects,$(LIB_SOURCES))
	@rm -f $@
	$(call say,AR)$(AR) rcs $@ $^

$(BUILD)/libhawser.so.0: $(call objects,$(LIB_SOURCES)) lib/hawser.map
	$(call say,LD)$(CC) -shared -Wl,-soname,libhawser.so.0 -Wl,--version-script=lib/hawser.map \
	    $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(LIBS)
	@ln -sf libhawser.so.0 $(BUILD)/libhawser.so

$(BUILD)/hawser-broker: $(call objects,broker/main.c $(ENGINE_SOURCES)) $(BUILD)/libhawser.a
$(BUILD)/hawser-send: $(call objects,$(wildcard sender/*.c)) $(BUILD)/libhawser.a
$(BUILD)/hawser-recv: $(call objects,$(wildcard receiver/*.c)) $(BUILD)/libhawser.a
$(BUILD)/hawser-ctl: $(call objects,$(wildcard ctl/*.c)) $(BUILD)/libhawser.a
$(PROGRAMS):
	$(call say,LD)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# Everything of ours that a test may use beside the library; as an archive, so that each
# test links only what it needs.
$(BUILD)/libtest.a: $(call objects,$(SUPPORT_SOURCES) $(ENGINE_SOURCES) $(PART_SOURCES) $(BENCH_PARTS))
	@rm -f $@
	$(call say,AR)$(AR) rcs $@ $^

$(UNIT_TESTS) $(E2E_TESTS) $(SOAK_TESTS) $(COUNTED): $(BUILD)/%: $(BUILD)/%.o $(BUILD)/libtest.a $(BUILD)/libhawser.a
	$(call say,LD)$(CC) $(ALL_LDFLAGS) -o $@ $^ -lcmocka $(LIBS)

$(BUILD)/tests/unit/engine_memory_test $(BUILD)/tests/unit/engine_resume_memory_test: \
    LDFLAGS += $(addprefix -Wl$(comma)--wrap=, \
        malloc calloc realloc strdup strndup hws_engine_recv hws_engine_peer_gone \
        hws_engine_refused hws_engine_expire hws_engine_flush hws_engine_pop hws_engine_drain \
        hws_engine_bound)
$(BUILD)/tests/unit/engine_cost_test: LDFLAGS += $(addprefix -Wl$(comma)--wrap=, \
    malloc calloc realloc hws_engine_recv hws_engine_flush hws_engine_pop hws_attach_try)
$(BUILD)/tests/e2e/lone_test: LDFLAGS += -Wl,--wrap=hws_dealer_send
$(BUILD)/tests/sim/sim: LDFLAGS += $(addprefix -Wl$(comma)--wrap=,malloc calloc realloc strdup \
        strndup)
$(BUILD)/tests/unit/rx_memory_test: LDFLAGS += $(addprefix -Wl$(comma)--wrap=,malloc strndup)
$(BUILD)/tests/unit/session_open_test $(BUILD)/tests/unit/session_ended_test: \
    LDFLAGS += -Wl,--wrap=malloc

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)

# ---- Tests. A target that needs packages or another build calls make again.

check: deps
	@$(MAKE) --no-print-directory build tests $(BENCH)
	@$(RUN_TESTS) $(call chosen,tools/layers.sh tests/list.sh bench/check.sh $(UNIT_TESTS) $(E2E_TESTS))
unit: $(UNIT_TESTS)
	@$(RUN_TESTS) $(call chosen,$^)
e2e: build $(E2E_TESTS)
	@$(RUN_TESTS) $(call chosen,$(E2E_TESTS))
sim: $(BUILD)/tests/sim/sim
	@$< --seeds $(SEEDS) --first $(FIRST) $(if $(OFF),--off $(OFF)) $(if $(TRACE),--trace)
sim-planted: $(BUILD)/tests/sim/sim
	@HAWSER_BUILD=$(BUILD) tests/sim/planted.sh
layers: $(call objects,$(PURE_SOURCES))
	@HAWSER_BUILD=$(BUILD) tools/layers.sh

asan: deps-dev
	@$(MAKE) --no-print-directory BUILD=build/asan SANITIZE=address,undefined CFLAGS='-O1 -g' unit-and-e2e
tsan: deps-dev
	@$(MAKE) --no-print-directory BUILD=build/tsan SANITIZE=thread CFLAGS='-O1 -g' unit-and-e2e
unit-and-e2e: build tests
	@$(RUN_TESTS) $(call chosen,$(UNIT_TESTS) $(E2E_TESTS))

fuzz: deps-dev
	@$(MAKE) --no-print-directory BUILD=build/fuzz CC=clang CFLAGS='-O1 -g' \
	    SANITIZE=fuzzer-no-link,address,undefined fuzz-build
	@FUZZ_SECONDS=$(FUZZ_SECONDS) tests/fuzz/run.sh $(patsubst %.c,build/fuzz/%,$(FUZZ_SOURCES))
fuzz-build: $(FUZZERS)
	@:
$(FUZZERS): $(BUILD)/%: $(BUILD)/%.o $(BUILD)/libtest.a $(BUILD)/libhawser.a
	$(call say,LD)$(CC) $(ALL_LDFLAGS) -fsanitize=fuzzer -o $@ $^ -lcmocka $(LIBS)

count: deps-dev
	@$(MAKE) --no-print-directory build $(COUNTED)
	@HAWSER_BUILD=$(BUILD) tests/count/run.sh

soak: deps-dev
	@$(MAKE) --no-print-directory build tests $(SOAK_TESTS)
	@HAWSER_BUILD=$(BUILD) tests/soak/run.sh $(UNIT_TESTS)

# A peer whose library is not here is left out (bench/peer_*.c), until bench-deps.
$(BENCH): $(call objects,$(BENCH_SOURCES)) $(BUILD)/libhawser.a
	$(call say,LD)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS) \
	    -Wl,--wrap=hws_dealer_send,--wrap=hws_dealer_recv \
	    $(shell for name in libmosquitto hiredis; do pkg-config --silence-errors --libs $$name; done)
bench: deps
	@$(MAKE) --no-print-directory build $(BENCH)
	@$(BENCH) --programs $(BUILD) --output $(BUILD)/bench --workloads '$(WORKLOADS)' \
	    --peers '$(PEERS)' --rounds $(ROUNDS) --seconds $(SECONDS)
bench-deps:
	@tools/install-deps.sh --bench
	@rm -f $(BUILD)/bench/peer*.o

demo: all
	@HAWSER_BUILD=$(BUILD) examples/demo.sh
	@HAWSER_BUILD=$(BUILD) examples/restart.sh

# ---- Installation

install: build
	install -d $(addprefix $(DESTDIR)$(PREFIX)/,bin lib/pkgconfig include/hawser/base \
	    share/doc/hawser share/doc/hawser/examples)
	install -m 755 $(PROGRAMS) $(DESTDIR)$(PREFIX)/bin
	install -m 644 $(LIBRARIES) $(DESTDIR)$(PREFIX)/lib
	ln -sf libhawser.so.0 $(DESTDIR)$(PREFIX)/lib/libhawser.so
	install -m 644 lib/hawser.h $(DESTDIR)$(PREFIX)/include/hawser
	install -m 644 lib/base/error.h lib/base/version.h $(DESTDIR)$(PREFIX)/include/hawser/base
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' lib/hawser.pc.in \
	    >$(DESTDIR)$(PREFIX)/lib/pkgconfig/hawser.pc
	install -m 644 $(wildcard README.md docs/*.md docs/*.svg) $(DESTDIR)$(PREFIX)/share/doc/hawser
	install -m 644 $(wildcard config/*.json config/*.service) $(DESTDIR)$(PREFIX)/share/doc/hawser/examples

# ---- The rest

format: deps-dev
	clang-format-16 -i $(C_FILES)
format-check:
	clang-format-16 --dry-run --Werror $(C_FILES)
help:
	@sed -n '1,/^$$/s/^# \{0,1\}//p' Makefile
clean:
	rm -rf $(BUILD)
