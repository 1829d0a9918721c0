"""What all packages share: version, commit, time, and the files that a package installs."""

import os
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAME = "pgrig"
SUMMARY = "test rig for PostgreSQL: fill, measure, compare"
DESCRIPTION = (
    "pgrig fills a PostgreSQL server with test data as fast as the hardware allows, measures the server (storage, "
    "transactions, single expressions, migrations), and compares runs. It downloads and runs a PostgreSQL of its own, or "
    "connects to yours."
)
# Rust's name of each machine, and Debian's.
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class File:
    """A file in a package. Owner and time are the same for all: root, and the time of the commit."""

    content: bytes
    mode: int = 0o644


def output(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT, **options).stdout.strip()


def version():
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def epoch():
    """The time that every file in every package has: that of the commit."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or output("git", "log", "-1", "--format=%ct"))


def target(machine):
    return f"{machine}-unknown-linux-musl"


def base_name(machine):
    return f"{NAME}-{version()}-{target(machine)}"


def under(prefix, files):
    """The same files below a directory."""
    return {f"{prefix}/{path}": file for path, file in files.items()}
