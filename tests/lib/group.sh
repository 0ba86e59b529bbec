# shellcheck shell=bash
# Functions that the groups share (source it): packages, counts, and repeatable failures. A group
# adds its results to $passed and $failed and ends with `finish`.
passed=0
failed=0

# finish: prints the last line of a group and ends it.
finish() {
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
    exit
}

# fail TEXT…: counts and names one failure.
fail() {
    echo "failed: $*"
    failed=$((failed + 1))
}

# again COUNT ARGUMENT…: `tests/<group>/run ARGUMENT…` repeats COUNT of the failures, and nothing
# else. scripts/test reads these lines; without them it repeats the whole group.
again() {
    local count=$1
    shift
    [ -z "${HEDDLE_TEST_AGAIN:-}" ] || printf '%d\t%s\n' "$count" "${*@Q}" >>"$HEDDLE_TEST_AGAIN"
}

# prepare_venv FOLDER REQUIREMENTS: creates or updates a virtual environment.
prepare_venv() {
    [ -x "$1/bin/pip" ] || python3 -m venv "$1" || return 1
    cmp -s "$2" "$1/requirements.txt" && return 0
    "$1/bin/pip" install --quiet --requirement "$2" && cp "$2" "$1/requirements.txt"
}

# The groups share one virtual environment, with the packages of tests/requirements.txt and the
# Python package of this tree. The lock serves groups that start at the same time.
venv=${HEDDLE_BUILD:-$PWD/build}/test-venv

# locked COMMAND…: runs a command while no other group changes the environment.
locked() {
    mkdir -p "${venv%/*}" && (flock 9 && "$@" 9>&-) 9>"$venv.lock"
}

# prepare_python: the shared environment, without the package of this tree.
prepare_python() { locked prepare_venv "$venv" tests/requirements.txt; }

# copy_package FOLDER: the Python package and the C sources that it compiles. pip writes into a
# source tree, so it gets a copy.
copy_package() {
    mkdir -p "$1/src" && cp -R include python "$1" && cp -R src/base src/store "$1/src" &&
        rm -rf "$1/python/build" "$1"/python/*.egg-info
}

# package_hash FOLDER: the hash of a copy.
package_hash() {
    (cd "$1" && find . -name __pycache__ -prune -o -type f -print0 | LC_ALL=C sort -z |
        xargs -0 sha256sum | sha256sum)
}

# install_package FOLDER: installs a copy. An unchanged package is compiled and installed once, and
# not below a group that runs.
install_package() {
    local hash
    hash=$(package_hash "$1") || return 1
    [ "$hash" != "$(cat "$venv/heddle-sources" 2>/dev/null)" ] || return 0
    rm -f "$venv/heddle-sources"
    "$venv/bin/pip" install --quiet --force-reinstall --no-deps "$1/python" &&
        echo "$hash" >"$venv/heddle-sources"
}

# prepare_heddle: the shared environment with the package of this tree, as a user installs it.
prepare_heddle() {
    local copy status
    prepare_python || return 1
    copy=$(mktemp -d)
    copy_package "$copy" && locked install_package "$copy"
    status=$?
    rm -rf "$copy"
    return $status
}

# prepare_packages FOLDER SOURCE: installs the npm packages that SOURCE/package-lock.json names.
prepare_packages() {
    mkdir -p "$1" || return 1
    cmp -s "$2/package-lock.json" "$1/installed" && return 0
    cp "$2/package.json" "$2/package-lock.json" "$2/.npmrc" "$1/" &&
        (cd "$1" && npm ci --ignore-scripts --loglevel=error) &&
        cp "$2/package-lock.json" "$1/installed"
}

# run_pytest [-w WRAPPER] PREFIX PYTHON ARGUMENT…: runs pytest, with WRAPPER if given. The command
# `run PREFIX X` repeats the test with the node id X; an empty PREFIX is left out.
run_pytest() {
    local wrapper=() prefix python status good=0 bad=1 counts
    if [ "$1" = -w ]; then
        wrapper=("$2")
        shift 2
    fi
    prefix=$1 python=$2
    shift 2
    counts=$(mktemp)
    PYTHONPATH=$PWD/tests/lib${PYTHONPATH:+:$PYTHONPATH} HEDDLE_TEST_COUNTS=$counts \
        "${wrapper[@]}" "$python" -B -m pytest -p pytest_results -q --tb=short "$@"
    status=$?
    { read -r good bad && while read -r node; do again 1 ${prefix:+"$prefix"} "$node"; done; } <"$counts"
    rm -f "$counts"
    # Without counts pytest did not finish.
    bad=${bad:-1}
    passed=$((passed + ${good:-0}))
    failed=$((failed + bad))
    if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then
        fail "pytest ended with status $status"
    fi
}

# part COMMAND…: runs a program that prints its own "N passed, N failed" in its last line.
part() {
    local output last
    output=$(mktemp)
    "$@" 2>&1 | tee "$output"
    last=$(tail -n 1 "$output")
    rm -f "$output"
    if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
        passed=$((passed + BASH_REMATCH[1]))
        failed=$((failed + BASH_REMATCH[2]))
    else
        fail "${2##*/} did not finish: $*"
    fi
}
