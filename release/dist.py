#!/usr/bin/env python3
"""Makes all packages of pgrig, into dist/: `just dist`.

For each machine: a static program as .tar.gz, a Python wheel, a Debian package, and a software bill of materials. Then
a container image for this machine, SHA256SUMS, and its signature if there is a key. Built from the same commit, the
packages are the same bytes, wherever, by whomever and whenever.

x86-64 needs musl-gcc (Debian: musl-tools). aarch64 needs cargo-zigbuild and ziglang (PyPI, or cargo install
cargo-zigbuild). Both need `rustup target add MACHINE-unknown-linux-musl`. The image needs root, mmdebstrap and buildah.
"""

import argparse
import os
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import archives
import binary
import image
from common import MACHINES, ROOT, base_name, under
from contents import contents
from deb import deb
from third_party import bill_of_materials
from wheel import wheel


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machine", action="append", choices=list(MACHINES), help="only for these; by default for all")
    parser.add_argument("--binary", action="append", default=[], metavar="MACHINE=FILE", help="a program that is built already")
    parser.add_argument("--profile", default="dist", help="Cargo's profile of the program; by default dist. dev: built in a third of the time, slow")
    parser.add_argument("--no-image", action="store_true", help="leave out the container image")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="by default dist/")
    parser.add_argument("--key", default=os.environ.get("PGRIG_SIGNING_KEY"),
                        help="private SSH key that signs SHA256SUMS; by default PGRIG_SIGNING_KEY")
    options = parser.parse_args()
    machines = options.machine or list(MACHINES)
    built = {machine: Path(path).resolve() for machine, path in (text.split("=", 1) for text in options.binary)}
    need(machines, built, options)
    programs = {machine: built.get(machine) or binary.build(machine, options.profile) for machine in machines}
    # Man pages and completions are the same for all machines.
    here = os.uname().machine
    runnable = [programs[here]] if here in programs else [emulator(machines[0]), programs[machines[0]]]
    options.out.mkdir(parents=True, exist_ok=True)
    written = []
    for machine, program in programs.items():
        files = contents(program, runnable, machine)
        written += write(options.out, packages(files, machine, program))
    if not options.no_image:
        machine = os.uname().machine
        package = next(name for name in written if name.endswith(f"_{MACHINES[machine]}.deb"))
        written += write(options.out, [image.image(options.out / package)])
    seal(options.out, written, options.key)


def emulator(machine):
    """Runs programs of another machine."""
    return f"qemu-{machine}-static"


def need(machines, built, options):
    """Ends at once if a tool is missing, with its name, and not after a build of minutes."""
    missing = []
    compiled = [machine for machine in machines if machine not in built]
    if "x86_64" in compiled and not shutil.which("musl-gcc"):
        missing.append("musl-gcc (Debian: musl-tools), or leave out x86-64: --machine aarch64")
    if set(compiled) - {"x86_64"} and not shutil.which("cargo-zigbuild"):
        missing.append("cargo-zigbuild and zig (pip install cargo-zigbuild ziglang), or leave out aarch64: --machine x86_64")
    if os.uname().machine not in machines and not shutil.which(emulator(machines[0])):
        missing.append(f"{emulator(machines[0])} (Debian: qemu-user-static) for the man pages, or this machine's package")
    if not options.no_image:
        missing += [f"{tool}, or leave out the image: --no-image" for tool in image.TOOLS if not shutil.which(tool)]
        if os.getuid() != 0:
            missing.append("root for the image, or leave it out: --no-image")
        if os.uname().machine not in machines:
            missing.append("a package for this machine for the image, or leave it out: --no-image")
    if missing:
        sys.exit("\n".join(f"dist needs {what}" for what in missing))


def packages(files, machine, program):
    """Each package of a machine: its name and its bytes."""
    name = base_name(machine)
    yield f"{name}.tar.gz", archives.gzip(archives.tar(under(name, files)))
    yield wheel(files, machine)
    yield deb(files, machine)
    yield f"{name}.cdx.json", bill_of_materials(machine, program)


def write(directory, packages):
    names = []
    for name, content in packages:
        # As a whole or not at all, and readable whatever the umask is.
        part = directory / f".{name}.part"
        part.write_bytes(content)
        part.chmod(0o644)
        part.replace(directory / name)
        print(f"{len(content) / 1e6:8.2f} MB  {name}", flush=True)
        names.append(name)
    return names


def seal(directory, names, key):
    """SHA256SUMS of these files, in the form of sha256sum, and its signature."""
    sums = "".join(f"{sha256((directory / name).read_bytes()).hexdigest()}  {name}\n" for name in sorted(names))
    write(directory, [("SHA256SUMS", sums.encode())])
    (directory / "SHA256SUMS.sig").unlink(missing_ok=True)
    if key:
        sign(directory, key)


def sign(directory, key):
    command = ["ssh-keygen", "-Y", "sign", "-q", "-n", "pgrig-release", "-f", key, directory / "SHA256SUMS"]
    subprocess.run(command, check=True, umask=0o022)


if __name__ == "__main__":
    main()
