# Commands of the house; `just --list` shows them. Each also runs without just: see CONTRIBUTING.md.

# Format and lints.
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --locked -- -D warnings

# Every test.
test:
    cargo test --workspace

# Rules of the source tree, then its figures.
tidy:
    cargo test -p holotype-tidy
    cargo run --quiet -p holotype-tidy

# The Python package and its tests, in the environment that is active.
python:
    pip install './python[test,adapters]'
    pytest python

# One bench, such as `just bench smoke`.
bench name *arguments:
    cargo run --release -p holotype-bench -- {{name}} {{arguments}}

# One fuzz target, such as `just fuzz log_open 60`.
fuzz target seconds="20":
    cargo fuzz run {{target}} --features libfuzzer -s none -- -max_total_time={{seconds}}

# All that must hold of a commit.
ci:
    .ci/run

# The same, and soaks of some hours.
full:
    .ci/run
    .ci/full

# Checks before a release; the steps are in RELEASING.md.
release:
    cargo semver-checks -p holotype --baseline-rev "$(git describe --tags --abbrev=0)"
    .ci/run
    .ci/full
