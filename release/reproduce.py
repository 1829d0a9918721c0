#!/usr/bin/env python3
"""Makes the packages of dist/ once more, and compares all bytes: `just reproduce`, after `just dist`.

The second time they are made from the same commit by another user (nobody), in another directory, with sources that
Cargo unpacks anew, another umask, time zone and clock. A file that differs is shown with its two places.

Needs root, to become another user, and Debian's faketime; else what `just dist` needs. The container image is compared
only if Debian's archive has not changed between the two builds.
"""

import argparse
import hashlib
import os
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path

import image
from common import MACHINES, NAME, ROOT, base_name, output
from roots import run

NOBODY = 65534
# Directories of Python and of Cargo, and some files in them, may be only for the user who installed them.
READS_ALL = "--inh-caps=+dac_read_search --ambient-caps=+dac_read_search"
TOOLS = ["faketime", "setpriv", "unshare", "git", "tar"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="directory of the packages; by default dist/")
    options = parser.parse_args()
    if os.getuid() != 0:
        sys.exit("reproduce needs root: it becomes another user")
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        sys.exit(f"reproduce needs {', '.join(missing)}")
    dist = options.dist.resolve()
    machines = [machine for machine in MACHINES if (dist / f"{base_name(machine)}.tar.gz").exists()]
    if not machines:
        sys.exit(f"{dist} has no packages of this version: run `just dist` first")
    directory = Path(tempfile.mkdtemp(prefix="pgrig-again-"))
    directory.chmod(0o711)
    packages = make_again(directory, machines)
    for name in [path.name for path in dist.glob(f"{NAME}_*.image.tar.gz")]:
        os.umask(0o077)
        made, content = image.image(packages / name.replace(".image.tar.gz", ".deb"))
        (packages / made).write_bytes(content)
    differing = compare(dist, packages)
    if differing:
        sys.exit(f"{differing} files differ; they stay in {packages} (diffoscope shows where two files differ)")
    shutil.rmtree(directory)
    print("all bytes are the same")


def make_again(directory, machines, programs=None):
    """The directory of the packages, made elsewhere by nobody; `programs` are not compiled again."""
    copy, home = directory / "elsewhere", directory / "home"
    home.mkdir()
    run(["git", "clone", "--quiet", "--no-hardlinks", ROOT, copy], cwd="/")
    changed = f"git ls-files -z | tar --null --files-from - --ignore-failed-read --create | tar --extract --directory '{copy}'"
    run(["sh", "-c", changed], cwd=ROOT)
    arguments = ["--no-image", "--out", "packages"]
    for machine in machines:
        arguments += ["--machine", machine]
    for machine, program in (programs or {}).items():
        shutil.copyfile(program, copy / f"{NAME}-{machine}")
        (copy / f"{NAME}-{machine}").chmod(0o755)
        arguments += ["--binary", f"{machine}=./{NAME}-{machine}"]
    # A false clock stops the threads of these. They have the true one: later than at the first time.
    for name in ["cargo", "rustc"]:
        shim = home / name
        shim.write_text(f"#!/bin/sh\nunset LD_PRELOAD\nexec '{home}/toolchain/bin/{name}' \"$@\"\n")
        shim.chmod(0o755)
    cargo_home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    if not programs:
        cargo_home = downloads_alone(cargo_home, home / "crates")
        if set(machines) - {"x86_64"}:
            copy_zig(home)
    (home / "toolchain").mkdir()
    run(["chown", "--recursive", f"{NOBODY}:{NOBODY}", copy, home])
    variables = {name: value for name, value in os.environ.items() if name != "CARGO_TARGET_DIR"} | {
        "HOME": str(home), "PATH": f"{home}:{home}/zig:{os.environ['PATH']}", "TZ": "Asia/Kathmandu", "LC_ALL": "C.UTF-8",
        "CARGO_HOME": str(cargo_home), "CARGO_NET_OFFLINE": "true", "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": "/tmp",
    }
    # The compiler, too, is in another place: a linker finds it only where the user may read without a privilege.
    place = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"',
             output("rustc", "--print", "sysroot"), home / "toolchain"]
    user = f"setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups {READS_ALL}".split()
    command = ["sh", "-c", 'umask 077; exec "$@"', "sh", sys.executable, "release/dist.py", *arguments]
    run([*place, *user, "faketime", "2031-05-04 03:02:01", *command], timeout=3600, env=variables, cwd=copy)
    return copy / "packages"


def copy_zig(home):
    """cargo-zigbuild and zig for another user: who may not read their directories does not find them.

    cargo-zigbuild looks for zig with access(2), which does not count the privilege to read all.
    """
    installed = Path(sysconfig.get_path("scripts")) / "cargo-zigbuild"
    shutil.copy(installed if installed.exists() else shutil.which("cargo-zigbuild"), home)
    find = "import ziglang, os; print(os.path.dirname(ziglang.__file__))"
    zig = shutil.which("zig")
    place = Path(zig).resolve().parent if zig else output(sys.executable, "-c", find)
    run(["cp", "--recursive", "--reflink=auto", place, home / "zig"])


def downloads_alone(old, new):
    """A home of Cargo that has the downloaded crates and the settings, and no unpacked source."""
    for part in ["registry/cache", "registry/index"]:
        shutil.copytree(old / part, new / part)
    for name in ["config.toml", "config"]:
        if (old / name).exists():
            shutil.copyfile(old / name, new / name)
    return new


def compare(dist, packages):
    """How many files differ from those of the same name in dist/. The sums themselves list more machines there."""
    differing = 0
    for path in sorted(packages.iterdir()):
        if path.name == "SHA256SUMS":
            continue
        first, second = digest(dist / path.name), digest(path)
        differing += first != second
        print(f"{first}  {'same' if first == second else f'{second} instead'}  {path.name}", flush=True)
    return differing


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    main()
