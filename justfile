# What a contributor runs. `just` alone lists it.

_default:
    @just --list

# Everything that CI checks besides the tests
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --locked -- -D warnings
    cargo clippy --package pgrig --no-default-features --locked -- -D warnings
    cargo deny --locked check bans licenses sources
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

# All tests, on real PostgreSQL servers that they start themselves
test:
    cargo test --workspace --locked
    @cat target/tmp/skipped/* 2>/dev/null | sed 's/^/skipped: /' || true

# Tests for aarch64 in an emulator, on servers of this machine. Arguments: those of cargo test; by default unit tests
test-aarch64 *arguments:
    python3 release/emulate.py {{arguments}}

# Classes and locks of pgrig ddl on all versions of PostgreSQL, of which `just test` takes the oldest and the newest
test-ddl-releases:
    PGRIG_TEST_RELEASES=all cargo test -p pgrig-ddl --locked statements

# All packages, into dist/: reproducible. Arguments: see --help
dist *arguments:
    python3 release/dist.py {{arguments}}

# Makes the packages of dist/ once more, elsewhere by another user, and compares all bytes; needs root and faketime
reproduce *arguments:
    python3 release/reproduce.py {{arguments}}

# Installs each package of dist/ in a clean system, and uses it; needs root. Arguments: see --help
dist-test *arguments:
    python3 release/test.py {{arguments}}

# What rowgen makes in a second, without a server
bench-rowgen:
    cargo bench -p pgrig-rowgen

# How fast pages are built and their checksums made
bench-page:
    cargo bench -p pgrig-page

# pgrig fill against pgbench -i, side by side; needs pgbench and psql. Arguments: see --help
bench-fill *arguments:
    cargo build --release --locked
    python3 bench/fill.py {{arguments}}

# pgrig fill --method direct against the disk itself and pgbench -i; needs pgbench, psql. Arguments: see --help
bench-direct *arguments:
    cargo build --release --locked
    python3 bench/direct.py {{arguments}}

# The levels of the article: by hand and by pgrig fill; needs pgbench and psql. Arguments: see --help
bench-ladder *arguments:
    cargo build --release --locked
    python3 bench/ladder.py {{arguments}}

# Forecasts of pgrig ddl, tried at ten times the largest measured size. Arguments: see --help
bench-ddl *arguments:
    cargo build --release --locked
    python3 bench/ddl.py {{arguments}}

# Forecasts of pgrig backup rehearse, tried at eight times the largest measured size, and its time beside a shell's. Arguments: see --help
bench-backup *arguments:
    cargo build --release --locked
    python3 bench/backup.py {{arguments}}

# The time of a rehearsal of five ways on 1 GB, and the estimate that pgrig prints before it; needs the client programs. Arguments: see --help
bench-backup-five *arguments:
    cargo build --release --locked
    python3 bench/backup_five.py {{arguments}}

# Backups of each kind, damaged at random places, and how many of them pgrig backup check detects; needs pg_dump, pg_basebackup and psql. Arguments: see --help
bench-backup-damage *arguments:
    cargo build --release --locked
    python3 bench/backup_damage.py {{arguments}}

# Backups of copies made from models, beside the original's: are they as large? Needs the client programs; tpchgen-cli. Arguments: see --help
bench-backup-model *arguments:
    cargo build --release --locked
    python3 bench/backup_model.py {{arguments}}

# pgrig ddl beside eugene and pg-blast-radius on the same statements, against the server; needs psql. Arguments: see --help
bench-ddl-peers *arguments:
    cargo build --release --locked
    python3 bench/ddl_peers.py {{arguments}}

# The stalls that pgrig ddl prints, beside those that sessions of psql measure at the same time; needs psql. Arguments: see --help
bench-ddl-stall *arguments:
    cargo build --release --locked
    python3 bench/ddl_stall.py {{arguments}}

# The time of pgrig ddl --quick for ten statements on three tables of 1 GB. Arguments: see --help
bench-ddl-quick *arguments:
    cargo build --release --locked
    python3 bench/ddl_quick.py {{arguments}}

# Damages backups of each kind in random ways, N of each way, and counts those that pgrig backup check notices; needs pg_dump and
# pg_basebackup, which may be those of PostgreSQL 18 in the directory PGRIG_TEST_CLIENTS
bench-damage damages="50":
    PGRIG_DAMAGES={{damages}} cargo test --release -p pgrig-backup --locked --test it -- damage:: --nocapture

# A whole schema, beside pg_restore of the same rows; needs pg_dump, pg_restore and psql. Arguments: see --help
bench-schema *arguments:
    cargo build --release --locked
    python3 bench/schema.py {{arguments}}

# TPC-H's schema, beside tpchgen-cli, COPY and keys; needs tpchgen-cli and psql. Arguments: see --help
bench-tpch *arguments:
    cargo build --release --locked
    python3 bench/tpch.py {{arguments}}

# A table of 40 columns, beside the disk itself; needs psql. Arguments: see --help
bench-columns *arguments:
    cargo build --release --locked
    python3 bench/columns.py {{arguments}}

# Copies made from statistics: their fidelity, and how fast they are filled; needs tpchgen-cli and psql. Arguments: see --help
bench-model *arguments:
    cargo build --release --locked
    python3 bench/model.py {{arguments}}

# Which tables of real schemas are filled; the directory has an .sql file for each. Arguments: see --help
bench-schemas *arguments:
    cargo build --release --locked
    python3 bench/schemas.py {{arguments}}

# How much smaller zstd makes a dump: pgrig fill's sample against pg_dump | zstd -3; needs both. Arguments: see --help
bench-dump *arguments:
    cargo build --release --locked
    python3 bench/dump.py {{arguments}}

# pgrig blockio --compat against the same statements through psql; needs psql. Arguments: see --help
bench-blockio *arguments:
    cargo build --release --locked
    python3 bench/blockio.py {{arguments}}

# How often pgrig micro is right: nothing against itself, 1 % more work, few rows and many. Arguments: see --help
bench-micro *arguments:
    cargo build --release --locked
    python3 bench/micro.py {{arguments}}

# How often verdicts between runs are right; goes on where it ended. Arguments: see --help
bench-compare *arguments:
    cargo build --release --locked
    python3 bench/compare.py {{arguments}}

# pgrig testdb beside createdb -T, pg_tmp and sed; needs createdb, pg_dump and psql. Arguments: see --help
bench-testdb *arguments:
    cargo build --release --locked
    python3 bench/testdb.py {{arguments}}

# pgrig tps against pgbench on the same server, in turn; needs pgbench and psql. Arguments: see --help
bench-tps *arguments:
    cargo build --release --locked
    python3 bench/tps.py {{arguments}}

# Schedule lag of pgrig tps -R and of pgbench -R, in turn; needs pgbench and psql. Arguments: see --help
bench-lag *arguments:
    cargo build --release --locked
    python3 bench/lag.py {{arguments}}

# pgrig tps in parts: common start, counts, kills, against the server; needs psql and libfaketime. Arguments: see --help
bench-parts *arguments:
    cargo build --release --locked
    python3 bench/parts.py {{arguments}}

# pgrig fill in parts against one process: rows/s, with the same sum over all rows; needs psql. Arguments: see --help
bench-fill-parts *arguments:
    cargo build --release --locked
    python3 bench/fill_parts.py {{arguments}}

# pgrig fill in parts, of which one is killed at a random moment, or the server; needs psql. Arguments: see --help
bench-fill-kills *arguments:
    cargo build --release --locked
    python3 bench/fill_kills.py {{arguments}}

# pgrig fill in parts, each over a slow link of its own, against one process over one; needs psql. Arguments: see --help
bench-fill-links *arguments:
    cargo build --release --locked
    python3 bench/fill_links.py {{arguments}}

# Time, memory and bytes of pgrig report for real documents, and pgrig runs list; needs psql. Arguments: see --help
bench-report *arguments:
    cargo build --release --locked
    python3 bench/report.py {{arguments}}

# Kills, full disks and network faults at random moments; needs psql, root for disks. Arguments: see --help
torture *arguments:
    cargo build --release --locked
    python3 torture {{arguments}}

# Random schemas, each filled by pages and by COPY and judged by the server; needs psql. Arguments: see --help
torture-schemas *arguments:
    cargo build --release --locked
    python3 torture/schemas.py {{arguments}}

# The API documentation
doc:
    cargo doc --workspace --no-deps --open

# The book, with mdBook (cargo install mdbook); `just book --open` shows it
book *arguments:
    mdbook build docs {{arguments}}

# Draw the picture of the README anew, from real runs
picture:
    cargo build --release --locked
    python3 docs/picture.py

# Draw the plots of README and the book anew, from the run documents in crates/report/tests/documents; a test compares them
pictures:
    DOCS=overwrite cargo test --package pgrig-report --locked pictures
