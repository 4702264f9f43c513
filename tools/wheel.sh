#!/usr/bin/env bash
# What a release consists of, checked: `make wheel` calls this.
#   tools/wheel.sh BIN KERNELS PACKAGE...
# BIN: the programs of the environment that the package was built in, in build/env; KERNELS: the library of kernels there;
# PACKAGE: what packages are built with. STABLE names a Python of 3.12 or later, for the wheel on the stable ABI.
set -euo pipefail
bin=$(realpath "$1") kernels=$(realpath "$2")
shift 2
export PATH="$bin:$PATH" PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_QUIET=1
unset PYTHONPATH
raw=build/wheels
rm -rf "$raw" dist build/bare build/stable
mkdir -p "$raw"

# Every instruction set, as the package of the tests has it.
python -m pip wheel --no-deps --no-build-isolation --config-settings build-dir=build/env \
  --config-settings cmake.define.ANYDML_FOR_THIS_MACHINE=OFF --wheel-dir "$raw" .
python -m build --sdist --no-isolation --outdir dist . > /dev/null
python tools/check_wheel.py dist/*.tar.gz

# Pythons that can build for the stable ABI, one of each version: those on the path, and those that pyenv or uv keeps beside
# this one. The first builds the wheel; it is tried with the first and the last.
beside=$(python -c "import os, sys; print(os.path.dirname(sys.base_prefix))")
can_build="import ensurepip, os, sys, sysconfig, venv
assert sys.version_info >= (3, 12) and os.path.exists(sysconfig.get_path('include') + '/Python.h')
assert not sysconfig.get_config_var('Py_GIL_DISABLED')
print(sys.version_info.minor)"
stable=() versions=" "
for each in ${STABLE:-} python3.{12..19} "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[2-9]*/bin/python \
  "$beside"/*3.1[2-9]*/bin/python3; do
  version=$("$each" -c "$can_build" 2> /dev/null) || continue
  if [ "${versions/ $version /}" = "$versions" ]; then stable+=("$each") versions+="$version "; fi
done

# The sdist gives a wheel where there is no network, but what packages are built with. The kernels were compiled from the
# same files: the wheel on the stable ABI has them, too.
builder=python
if [ ${#stable[@]} -gt 0 ]; then
  "${stable[0]}" -m venv build/stable
  builder=build/stable/bin/python
  "$builder" -m pip install "$@"
else
  echo "abi3: not built and not audited, there is no Python 3.12 here"
fi
PATH="$(dirname "$builder"):$PATH" "$builder" -m pip wheel --no-deps --no-index --no-build-isolation \
  --config-settings "cmake.define.ANYDML_KERNELS=$kernels" --wheel-dir "$raw/sdist" dist/*.tar.gz
if [ ${#stable[@]} -gt 0 ]; then mv "$raw"/sdist/*.whl "$raw"; fi

for wheel in "$raw"/*.whl; do
  auditwheel repair --wheel-dir dist "$wheel"
done
python tools/pack_wheel.py dist/*.whl
for wheel in dist/*.whl; do
  auditwheel show "$wheel"
done
for wheel in dist/*abi3*.whl; do
  if [ -e "$wheel" ]; then abi3audit --strict --report "$wheel" > build/abi3.json && echo "$(basename "$wheel"): abi3audit"; fi
done
python tools/check_wheel.py dist/*.whl

# In environments with NumPy alone the README's examples run.
bare() {
  rm -rf build/bare
  "$1" -m venv build/bare
  build/bare/bin/python -m pip install "$2"
  build/bare/bin/python -V
  PIP_QUIET=0 build/bare/bin/python -m pip list | tr -s ' \n' ' ' && echo
  build/bare/bin/python -I tools/examples.py README.md
  build/bare/bin/python -I -c "import anydml, importlib.metadata as installed
assert anydml.__version__ == installed.version('anydml'), anydml.__version__"
  test "$(build/bare/bin/anydml --version)" = "anydml $(build/bare/bin/python -I -c 'import anydml; print(anydml.__version__)')"
}
for wheel in dist/*.whl; do
  case $wheel in
  *abi3*)
    bare "${stable[0]}" "$wheel"
    if [ ${#stable[@]} -gt 1 ]; then bare "${stable[-1]}" "$wheel"; fi
    ;;
  *) bare python "$wheel" ;;
  esac
done
