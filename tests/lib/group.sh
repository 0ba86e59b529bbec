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
