#!/usr/bin/env python3
"""Runs the tests for aarch64 in an emulator, on servers of this machine: `just test-aarch64`.

The program under test is emulated; PostgreSQL, which it starts, is not. Arguments are those of `cargo test`; by default
the unit tests of all crates. With `--workspace --exclude pgrig --test it`, the tests of all engines: those whose time is
limited may fail here, since an emulated program is slower. The tests of the command line start pgrig itself, which this
machine cannot run without binfmt_misc.

Needs qemu-aarch64-static (Debian: qemu-user-static), cargo-zigbuild and ziglang (PyPI), `rustup target add
aarch64-unknown-linux-musl`, and PostgreSQL for this machine, which `just test` has fetched.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from common import ROOT, target

MACHINE = "aarch64"
EMULATOR = f"qemu-{MACHINE}-static"
UNIT_TESTS = ["--workspace", "--lib", "--bins", "--no-fail-fast"]


def main():
    if "--help" in sys.argv[1:]:
        print(__doc__)
        return
    missing = [tool for tool in [EMULATOR, "cargo-zigbuild"] if not shutil.which(tool)]
    if missing:
        sys.exit(f"test-aarch64 needs {', '.join(missing)}")
    built = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    servers = Path(os.environ.get("PGRIG_TEST_CACHE") or built / "tmp/pgrig/postgresql")
    if not servers.is_dir():
        sys.exit(f"test-aarch64 needs the servers of `just test` in {servers}, or another PGRIG_TEST_CACHE")
    # The system that the emulated program sees has a C library for its machine, so that it takes these servers for its own.
    system = built / target(MACHINE) / "system"
    (system / "lib").mkdir(parents=True, exist_ok=True)
    (system / f"lib/ld-linux-{MACHINE}.so.1").touch()
    runner = f"CARGO_TARGET_{target(MACHINE).upper().replace('-', '_')}_RUNNER"
    environment = os.environ | {
        runner: EMULATOR, "QEMU_LD_PREFIX": str(system), "PGRIG_TEST_CACHE": str(servers), "PGRIG_FETCH": "never",
    }
    command = ["cargo-zigbuild", "test", "--locked", "--target", target(MACHINE), *(sys.argv[1:] or UNIT_TESTS)]
    sys.exit(subprocess.run(command, check=False, cwd=ROOT, env=environment).returncode)


if __name__ == "__main__":
    main()
