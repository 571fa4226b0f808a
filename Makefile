# Hawser. `make help` names the targets.
#
#   CC=clang        another compiler
#   BUILD=DIR       where everything is built (default build)
#   SANITIZE=LIST   -fsanitize=LIST, e.g. address,undefined
#   SCALE=N         counts of the long tests are divided by N (default 1)

VERSION := 0.1.0
CC      ?= cc
BUILD   ?= build
PREFIX  ?= /usr/local
SCALE   ?= 1

WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
            -Wswitch-enum -Wvla -Wformat=2 -Werror
ifneq ($(findstring clang,$(shell $(CC) --version 2>/dev/null)),)
WARNINGS += -Wmissing-variable-declarations
endif

CFLAGS   ?= -O2 -g
CPPFLAGS += -D_GNU_SOURCE -Ilib -I.
ALL_CFLAGS = -std=c11 -fPIC $(WARNINGS) $(CFLAGS) $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer)
ALL_LDFLAGS = $(LDFLAGS) $(if $(SANITIZE),-fsanitize=$(SANITIZE))
LIBS     := -lczmq -lzmq -lcjson -lpthread

# A name that ends in _io touches the world; every other file is pure.
LIB_SOURCES    := $(wildcard lib/base/*.c lib/proto/*.c lib/conf/*.c lib/cancel/*.c lib/client/*.c lib/io/*.c)
ENGINE_SOURCES := $(filter-out broker/main.c,$(wildcard broker/*.c))
PROGRAM_SOURCES := $(wildcard sender/*.c receiver/*.c broker/main.c)
UNIT_SOURCES   := $(wildcard tests/unit/*.c)
E2E_SOURCES    := $(wildcard tests/e2e/*.c)
SUPPORT_SOURCES := $(wildcard tests/support/*.c)
FUZZ_SOURCES   := $(wildcard tests/fuzz/*.c)
PURE_SOURCES   := $(filter-out %_io.c,$(LIB_SOURCES) $(ENGINE_SOURCES))

objects = $(patsubst %.c,$(BUILD)/%.o,$(1))

PROGRAMS := $(BUILD)/hawser-broker $(BUILD)/hawser-send $(BUILD)/hawser-recv
LIBRARIES := $(BUILD)/libhawser.a $(BUILD)/libhawser.so.0
UNIT_TESTS := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(UNIT_SOURCES))
E2E_TESTS  := $(patsubst tests/e2e/%.c,$(BUILD)/tests/e2e/%,$(E2E_SOURCES))

.PHONY: all deps build check unit e2e asan tsan layers fuzz soak demo install format clean help
all: deps
	@$(MAKE) --no-print-directory build

deps:
	@tools/install-deps.sh

build: $(PROGRAMS) $(LIBRARIES)

$(BUILD)/libhawser.a: $(call objects,$(LIB_SOURCES))
	@rm -f $@
	$(AR) rcs $@ $^

$(BUILD)/libhawser.so.0: $(call objects,$(LIB_SOURCES)) lib/hawser.map
	$(CC) -shared -Wl,-soname,libhawser.so.0 -Wl,--version-script=lib/hawser.map \
	    $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(LIBS)
	@ln -sf libhawser.so.0 $(BUILD)/libhawser.so

$(BUILD)/hawser-broker: $(call objects,broker/main.c $(ENGINE_SOURCES)) $(BUILD)/libhawser.a
$(BUILD)/hawser-send: $(call objects,$(wildcard sender/*.c)) $(BUILD)/libhawser.a
$(BUILD)/hawser-recv: $(call objects,$(wildcard receiver/*.c)) $(BUILD)/libhawser.a
$(PROGRAMS):
	$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

$(UNIT_TESTS) $(E2E_TESTS): $(BUILD)/%: $(BUILD)/%.o $(call objects,$(SUPPORT_SOURCES) $(ENGINE_SOURCES)) $(BUILD)/libhawser.a
	@mkdir -p $(@D)
	$(CC) $(ALL_LDFLAGS) -o $@ $^ -lcmocka $(LIBS)

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)

help:
	@sed -n '1,8s/^# \{0,1\}//p' Makefile
clean:
	rm -rf $(BUILD)
