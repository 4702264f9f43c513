# A machine with Python 3.11 or later, make and a C++ compiler needs nothing else: `make run`, `make test`.

PYTHON ?= python3
CXX ?= g++
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find src CMakeLists.txt pyproject.toml README.md -type f -not -path '*/__pycache__/*')
SANITIZED := build/sanitized
NATIVE_SOURCES := $(shell find src/native -name '*.cpp' -o -name '*.h')

# With a GPU, Triton is the one that PyTorch brings. Its interpreter works with today's NumPy from 3.9 on, whatever a build
# of PyTorch for GPUs asks for.
TORCH ?= torch==2.13.0
INTERPRETER ?= 'triton>=3.9'

.PHONY: help env tools run test test-quick test-gpu lint generate format wheel bench fuzz sanitize sanitize-threads neon exhaustive docs test-docs clean

help: ## This list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12

env: $(VENV)/installed ## The package, built and installed into a virtual environment

# Modules are compiled when they are imported, as most of what comes with packages is never read.
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

# What builds the package stays in the environment, so that its folder in build/ is there for the next time, and only
# what changed is compiled again. Instruction sets that this machine does not use come with what tests need.
BUILDS_WITH := cmake ninja nanobind numpy scikit-build-core setuptools-scm
install = $(PIP_INSTALL) --no-build-isolation \
	--config-settings build-dir=build/env --config-settings cmake.define.ANYDML_FOR_THIS_MACHINE=$(1) '.[cli]'
NEED_EVERY_SET := tools test test-quick test-gpu lint format wheel sanitize neon
FOR_THIS_MACHINE = $(if $(or $(wildcard $(VENV)/every-set),$(filter $(NEED_EVERY_SET),$(MAKECMDGOALS))),OFF,ON)
$(VENV)/installed: $(SOURCES)
	@echo "Building anydml in $(VENV), which takes a minute or two ..."
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) $(BUILDS_WITH)
	$(call install,$(FOR_THIS_MACHINE))
	@touch $@ $(if $(filter OFF,$(FOR_THIS_MACHINE)),$(VENV)/every-set)

KERNELS := build/env/libanydml_kernels.a
$(VENV)/every-set: $(VENV)/installed
	test -e $@ || $(call install,OFF)
	@touch $@

$(KERNELS): $(VENV)/every-set
	test -e $@ || $(call install,OFF)

# What an extra of pyproject.toml asks for, which has no spaces, without the package itself.
extra = $$($(BIN)/python -c "import tomllib; \
	print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['$(1)'])")

tools: $(VENV)/every-set $(VENV)/tools ## What tests and lint need beside it

$(VENV)/tools: pyproject.toml
	$(PIP_INSTALL) $(call extra,dev)
	@touch $@

run: env ## The example models, results printed
	@for model in examples/*.json; do echo "# $$model"; $(BIN)/anydml run $$model || exit 1; done
	@$(PIP_INSTALL) $(call extra,onnx)
	@for model in examples/*.onnx; do echo "# $$model"; \
		$(BIN)/anydml run $$model --random 0 --dim batch=2 || exit 1; done

# Each process has tests that follow each other, which share what they make, until it takes some of another's.
ON_ALL_CORES := -n auto --dist worksteal
# PyTorch's threads, which are as many again, would spin for each other while all cores are taken.
test test-quick test-gpu: export OMP_WAIT_POLICY := passive
test: tools ## All tests
	$(BIN)/python -m pytest $(ON_ALL_CORES)

test-quick: tools ## The tests that take no seconds, cases on the native engine among them
	$(BIN)/python -m pytest $(ON_ALL_CORES) -q -m "not slow" -k "not reference"

test-gpu: tools ## The cases on a GPU, or in Triton's interpreter where there is none
	$(PIP_INSTALL) $(TORCH)
	$(BIN)/python -c "import torch; raise SystemExit(not torch.cuda.is_available())" || \
		{ $(PIP_INSTALL) --no-deps $(INTERPRETER) && \
		export TRITON_INTERPRET=1; }; \
		ANYDML_TEST_DEVICE=cuda $(BIN)/python -m pytest $(ON_ALL_CORES) -m gpu $$(grep -l "mark\.gpu" tests/test_*.py)

generate: env ## What is generated from the table of operators
	$(BIN)/python tools/generate.py

lint: tools ## Style of Python and C++, and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(NATIVE_SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports

format: tools ## Put Python and C++ into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(NATIVE_SOURCES)

# The wheel comes out of the folder that the package of the tests was built in, and nothing is compiled twice but the module
# itself, for the sdist.
wheel: $(VENV)/every-set $(VENV)/release $(KERNELS) ## A release's wheels and sdist, in dist/, checked and tried
	tools/wheel.sh $(BIN) $(KERNELS) $(BUILDS_WITH)

$(VENV)/release: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) $(call extra,release)
	@touch $@

bench: env ## What importing, creating and compiling cost
	PYTHONPATH=tests $(BIN)/python benchmarks/overhead.py

fuzz: env ## Ten minutes of wrong models, descs, bindings and arrays
	$(BIN)/python tests/fuzz.py --seconds 600

# The module needs the sanitizers' runtime before Python itself. Leaks are not looked for: the interpreter leaves many.
RUNTIME = $(shell $(CXX) -print-file-name=libasan.so) $(shell $(CXX) -print-file-name=libstdc++.so)
sanitize: export PYTHONPATH = $(SANITIZED)
sanitize: tools ## The cases on native code with address and undefined behaviour sanitizers
	$(PIP_INSTALL) --no-deps --upgrade --target $(SANITIZED) \
		--config-settings cmake.define.ANYDML_SANITIZE=ON .
	LD_PRELOAD="$(RUNTIME)" ASAN_OPTIONS=detect_leaks=0 $(BIN)/python -c \
		"from anydml import _native; assert _native.build_info()['sanitizers'] == 'address,undefined', _native"
	LD_PRELOAD="$(RUNTIME)" ASAN_OPTIONS=detect_leaks=0 $(BIN)/python -m pytest $(ON_ALL_CORES) -q \
		-k "cpu- or in_place_gives or channels_large or any_layout" tests/test_cases.py tests/test_scans_large.py \
		tests/test_channels_large.py tests/test_movement_large.py

# What follows compiles the kernels in ways of its own, without Python: each file by itself, so that every core has one.
# $(CHECKED)/WAY/file.o is what $(COMPILE_WAY) makes of file.cpp.
CHECKED := build/checked
CORES := $(shell getconf _NPROCESSORS_ONLN)
MAKE_CHECKED := $(MAKE) --no-print-directory -j$(CORES)
DRIVER := tests/native/threads.cpp
# However many processors there are.
RUN := OMP_NUM_THREADS=3
NATIVE := $(filter-out src/native/python/%,$(filter %.cpp,$(NATIVE_SOURCES)))
HEADERS := $(filter %.h,$(NATIVE_SOURCES)) $(wildcard tests/native/cases/*.h)
objects = $(patsubst %.cpp,$(CHECKED)/$(1)/%.o,$(notdir $(2)))

$(CHECKED)/%.o: $(DRIVER) $(NATIVE) $(HEADERS)
	@mkdir -p $(@D)
	$(COMPILE_$(*D)) -std=c++20 -ffp-contract=off -Wall -Wextra -Wno-psabi -Isrc/native \
		-c $(filter %/$(*F).cpp,$^) -o $@

# Lines of what is found, which is all that reports need, take two thirds of the time of what a debugger wants.
COMPILE_threads = $(CXX) -O1 -g1 -fsanitize=thread
sanitize-threads: ## The kernels from several threads at once, under ThreadSanitizer
	$(MAKE_CHECKED) $(CHECKED)/with-threads
	$(RUN) $(CHECKED)/with-threads

$(CHECKED)/with-threads: $(call objects,threads,$(DRIVER) $(NATIVE))
	$(CXX) -fsanitize=thread $^ -o $@ -pthread

# Digests of the kernels' outputs, here and on an emulated ARM processor. Here they are those of the package, as it is
# built for every instruction set.
NEON_CXX ?= aarch64-linux-gnu-g++
QEMU ?= qemu-aarch64

# At -O1 GCC leaves loops of a constant number of rounds, and warns that they might have none.
COMPILE_arm = $(NEON_CXX) -O1 -Wno-maybe-uninitialized -Wno-stringop-overflow
COMPILE_here = $(CXX) -O2
COMPILE_BASELINE = $(CXX) -O2
COMPILE_AVX2 = $(CXX) -O2 -DANYDML_ISA_AVX2
COMPILE_AVX512 = $(CXX) -O2 -DANYDML_ISA_AVX512

neon: $(KERNELS) ## The kernels compiled for ARM give the same bits as here
	@command -v $(NEON_CXX) > /dev/null || { echo "There is no $(NEON_CXX): install g++-aarch64-linux-gnu"; exit 1; }
	$(MAKE_CHECKED) $(CHECKED)/digests-arm $(CHECKED)/digests-here
	$(RUN) $(CHECKED)/digests-here > $(CHECKED)/here.txt
	@if command -v $(QEMU) > /dev/null; then \
		$(RUN) $(QEMU) $(CHECKED)/digests-arm > $(CHECKED)/arm.txt && diff $(CHECKED)/here.txt $(CHECKED)/arm.txt && \
		echo "NEON: the same bits as here in $$(wc -l < $(CHECKED)/arm.txt) cases"; \
	else echo "NEON: compiled, but not run: no $(QEMU)"; fi

$(CHECKED)/digests-arm: $(call objects,arm,$(DRIVER) $(NATIVE))
	$(NEON_CXX) -static $^ -o $@ -pthread

$(CHECKED)/digests-here: $(call objects,here,$(DRIVER)) $(KERNELS)
	$(CXX) $^ -o $@ -pthread -fopenmp

# The functions of pointwise programs for every number: half an hour of two cores, or as many of them as FUNCTIONS names.
SET ?= $(or $(and $(shell grep -o -m1 avx512vl /proc/cpuinfo),AVX512),$(and $(shell grep -o -m1 avx2 /proc/cpuinfo),AVX2),BASELINE)
EXHAUSTIVE := tests/native/exhaustive

exhaustive: $(CHECKED)/exhaustive-$(SET) ## The errors of all exponentials, sines and the like, against the C library
	@$< $(FUNCTIONS) | tee $(CHECKED)/exhaustive.txt
	@$(if $(FUNCTIONS),,diff $(CHECKED)/exhaustive.txt $(EXHAUSTIVE).txt && echo "The same as in $(EXHAUSTIVE).txt")

$(CHECKED)/exhaustive-%: $(EXHAUSTIVE).cpp $(HEADERS)
	@mkdir -p $(@D)
	$(COMPILE_$*) -std=c++20 -ffp-contract=off -Wall -Wextra -Wno-psabi -Isrc/native $< -o $@ -pthread

# The sources of the site are put together in build/docs/source: see tools/reference.
SITE := build/docs
docs: $(VENV)/docs ## The documentation as a site, in build/docs/html
	PYTHONPATH=tools $(BIN)/python -m reference $(SITE)/source
	$(BIN)/python -m sphinx -c docs/site -W --keep-going -q -j $(CORES) -d $(SITE)/doctrees $(SITE)/source $(SITE)/html
	@echo "Open $(SITE)/html/index.html"

$(VENV)/docs: $(VENV)/installed
	$(PIP_INSTALL) $(call extra,docs)
	@touch $@

test-docs: tools docs ## The site: its links, names and examples, and in Chromium where there is one
	$(BIN)/python -m pytest -q --site $(SITE)/html tests/test_site.py

clean: ## Remove what was built
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
