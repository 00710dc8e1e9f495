# Tasks for developers: `just` lists them. https://just.systems

# List all tasks
default:
    @just --list

# Check formatting, lints and documentation of the whole workspace
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --locked -- -D warnings
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

# Run the fast tests, in about a minute once built (needs cargo-nextest)
quick:
    cargo nextest run --workspace --locked --profile quick

# Run all tests that do not need the lab
test:
    cargo test --workspace --locked

# Accept changed screen snapshots after you have reviewed them
accept:
    INSTA_UPDATE=always cargo test --workspace --locked --test e2e screens::

# Run a suite of the lab (CONTRIBUTING.md lists them)
lab suite="protocols":
    cargo test --workspace --locked --no-fail-fast --test lab {{ suite }}:: -- --ignored

# Compare file operations with find, rsync and fio (tests/bench/README.md names the other benchmarks)
bench folder="/tmp":
    cargo build --release --locked
    LONGHAUL=target/release/longhaul tests/bench/peers.sh {{ folder }}

# Build the book into target/book
docs:
    mdbook build

# Run everything that must pass before a change lands
ci:
    .ci/run
