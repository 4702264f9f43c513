# A machine with Python 3.11 or later, make and a C++ compiler needs nothing else: `make run`, `make test`.

PYTHON ?= python3
CXX ?= g++
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find src CMakeLists.txt pyproject.toml README.md -type f -not -path '*/__pycache__/*')
SANITIZED := build/sanitized

# With a GPU, Triton is the one that PyTorch brings. Its interpreter works with today's NumPy from 3.9 on, whatever a build
# of PyTorch for GPUs asks for.
TORCH ?= torch==2.13.0
INTERPRETER ?= 'triton>=3.9'

# Tests that run on the GPU, whole, beside its cases.
ON_GPU := gpu gpu_bench activation convolution element_wise float_pooling gemm graph movement normalization \
	networks operate recurrent reduce

.PHONY: help env tools run test test-gpu lint format bench fuzz sanitize sanitize-threads neon clean

help: ## This list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12

env: $(VENV)/installed ## The package, built and installed into a virtual environment

$(VENV)/installed: $(SOURCES)
	@echo "Building anydml in $(VENV), which takes a minute or two ..."
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '.[cli]'
	@touch $@

tools: env $(VENV)/tools ## What tests and lint need beside it

$(VENV)/tools: pyproject.toml
	$(BIN)/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['dev'], sep='\n')" > $@.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r $@.txt
	@touch $@

run: env ## The example models, results printed
	@for model in examples/*.json; do echo "# $$model"; $(BIN)/anydml run $$model || exit 1; done

test: tools ## All tests
	$(BIN)/python -m pytest -n auto

test-gpu: tools ## The cases on a GPU, or in Triton's interpreter where there is none
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	$(BIN)/python -c "import torch; raise SystemExit(not torch.cuda.is_available())" || \
		{ $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps $(INTERPRETER) && \
		export TRITON_INTERPRET=1; }; \
		ANYDML_TEST_DEVICE=cuda $(BIN)/python -m pytest -n auto tests/test_cases.py $(ON_GPU:%=tests/test_%.py) \
			-k "cuda$(ON_GPU:%= or test_%)"

lint: tools ## Style of Python and C++, and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror src/native/*.cpp src/native/*.h
	$(BIN)/mypy

format: tools ## Put Python and C++ into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i src/native/*.cpp src/native/*.h

bench: env ## What importing, creating and compiling cost
	$(BIN)/python benchmarks/overhead.py

fuzz: env ## Ten minutes of wrong models, descs, bindings and arrays
	$(BIN)/python tests/fuzz.py --seconds 600

# The module needs the sanitizers' runtime before Python itself. Leaks are not looked for: the interpreter leaves many.
RUNTIME = $(shell $(CXX) -print-file-name=libasan.so) $(shell $(CXX) -print-file-name=libstdc++.so)
sanitize: export PYTHONPATH = $(SANITIZED)
sanitize: tools ## The cases on native code with address and undefined behaviour sanitizers
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target $(SANITIZED) \
		--config-settings cmake.define.ANYDML_SANITIZE=ON .
	LD_PRELOAD="$(RUNTIME)" ASAN_OPTIONS=detect_leaks=0 $(BIN)/python -c \
		"from anydml import _native; assert _native.build_info()['sanitizers'] == 'address,undefined', _native"
	LD_PRELOAD="$(RUNTIME)" ASAN_OPTIONS=detect_leaks=0 $(BIN)/python -m pytest -n auto -q \
		-k "cpu- or in_place_gives or channels_large" tests/test_cases.py tests/test_scans_large.py tests/test_channels_large.py

THREADED := build/threads
NATIVE := $(filter-out src/native/module.cpp,$(wildcard src/native/*.cpp))
sanitize-threads: ## The kernels from several threads at once, under ThreadSanitizer
	@mkdir -p build
	$(CXX) -std=c++20 -O1 -g -fsanitize=thread -ffp-contract=off -Wno-psabi -DANYDML_STD_THREADS -Isrc/native \
		tests/native/threads.cpp $(NATIVE) -o $(THREADED) -pthread
	$(THREADED)

# Digests of the kernels' outputs, here and on an emulated ARM processor. A family's file is compiled once for each
# instruction set, as in CMakeLists.txt; `-r` makes one object of several files.
NEON_CXX ?= aarch64-linux-gnu-g++
QEMU ?= qemu-aarch64
DIGESTS := build/digests
DIGEST_FLAGS := -std=c++20 -O2 -ffp-contract=off -Wall -Wextra -Wno-psabi -DANYDML_STD_THREADS -Isrc/native
COMMON := $(addprefix src/native/,kernels.cpp layout.cpp parallel.cpp)
FAMILIES := $(filter-out $(COMMON),$(NATIVE))
HEADERS := $(wildcard src/native/*.h)
IS_X86 := $(filter x86_64 amd64,$(shell uname -m))
HERE := $(if $(IS_X86),BASELINE AVX2 AVX512,BASELINE)

neon: ## The kernels compiled for ARM give the same bits as here
	@command -v $(NEON_CXX) > /dev/null || { echo "There is no $(NEON_CXX): install g++-aarch64-linux-gnu"; exit 1; }
	$(MAKE) --no-print-directory -j2 $(DIGESTS)/arm $(DIGESTS)/here
	$(DIGESTS)/here > $(DIGESTS)/here.txt
	@if command -v $(QEMU) > /dev/null; then \
		$(QEMU) $(DIGESTS)/arm > $(DIGESTS)/arm.txt && diff $(DIGESTS)/here.txt $(DIGESTS)/arm.txt && \
		echo "NEON: the same bits as here in $$(wc -l < $(DIGESTS)/arm.txt) cases"; \
	else echo "NEON: compiled, but not run: no $(QEMU)"; fi

$(DIGESTS)/arm: tests/native/threads.cpp $(NATIVE) $(HEADERS)
	@mkdir -p $(DIGESTS)
	$(NEON_CXX) $(DIGEST_FLAGS) -static tests/native/threads.cpp $(NATIVE) -o $@ -pthread

$(DIGESTS)/%.o: $(FAMILIES) $(HEADERS)
	@mkdir -p $(DIGESTS)
	$(CXX) $(DIGEST_FLAGS) -DANYDML_ISA_$* -r -nostdlib $(FAMILIES) -o $@

$(DIGESTS)/here: tests/native/threads.cpp $(COMMON) $(HEADERS) $(HERE:%=$(DIGESTS)/%.o)
	$(CXX) $(DIGEST_FLAGS) $(HERE:%=-DANYDML_HAS_%) tests/native/threads.cpp $(COMMON) $(HERE:%=$(DIGESTS)/%.o) \
		-o $@ -pthread

clean: ## Remove what was built
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
