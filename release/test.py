#!/usr/bin/env python3
"""Installs each package in a clean system, and uses pgrig there: `just dist-test`.

In each: pgrig --version, a fill of 100 MB on the embedded server, `man pgrig`, a completion. The tarball runs in Debian
and in a system with musl alone; the wheel in a new venv; the Debian package passes lintian. Then the packages are made
once more from the same program, by another user, in another directory, with another umask and clock: the same bytes.

Needs root, and from Debian: mmdebstrap, lintian, busybox-static, musl, faketime, man-db. From PyPI: check-jsonschema,
twine. With --image also podman, runc and (PyPI) podman-compose.
"""

import argparse
import os
import re
import shutil
import sys
import tarfile
import tempfile
import time
import tomllib
from pathlib import Path

from common import MACHINES, NAME, ROOT, base_name, version
from dist import sign
from reproduce import compare, make_again
from roots import check, debian, musl, run
from test_image import TOOLS, compose_file, in_an_engine

MACHINE = "x86_64"
NEEDED = ["mmdebstrap", "lintian", "busybox", "faketime", "man", "unshare", "setpriv", "ssh-keygen",
          "check-jsonschema", "twine"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="directory of the packages; by default dist/")
    parser.add_argument("--image", action="store_true", help="also run the container image")
    parser.add_argument("--any-size", action="store_true", help="do not check the size: the program has the profile dev")
    options = parser.parse_args()
    if os.getuid() != 0:
        sys.exit("dist-test needs root: it installs packages in systems of their own")
    tools = NEEDED + (TOOLS if options.image else [])
    missing = [tool for tool in tools if not shutil.which(tool)]
    if missing:
        sys.exit(f"dist-test needs {', '.join(missing)}")
    dist = options.dist.resolve()
    passed = 0
    for test in [sums, *([] if options.any_size else [sizes]), program, binstall, package_for_debian, tarball_with_musl, wheel,
                 same_bytes, signature, compose_file]:
        passed += step(test, dist)
    if options.image:
        passed += step(in_an_engine, dist)
    print(f"{passed} passed, 0 failed")


def step(test, dist):
    start = time.monotonic()
    # The server's account enters it.
    with tempfile.TemporaryDirectory(prefix="pgrig-dist-") as directory:
        os.chmod(directory, 0o711)
        test(dist, Path(directory))
    print(f"{time.monotonic() - start:6.1f} s  {test.__name__}", flush=True)
    return 1


def tarball(dist):
    return dist / f"{base_name(MACHINE)}.tar.gz"


def debian_package(dist):
    return dist / f"{NAME}_{version()}-1_{MACHINES[MACHINE]}.deb"


def wheel_file(dist):
    return next(dist.glob(f"{NAME}-{version()}-*_{MACHINE}.whl"))


def sums(dist, _):
    run(["sha256sum", "--check", "--quiet", "--strict", "SHA256SUMS"], cwd=dist)


def sizes(dist, _):
    size = tarball(dist).stat().st_size
    check(size <= 12_000_000, f"{tarball(dist).name} has {size} bytes; at most 12 MB")


def program(dist, directory):
    """Static, without symbols and without a path of the machine that built it."""
    run(["tar", "-xf", tarball(dist), "-C", directory, "--strip-components=1"])
    place = directory / "bin" / NAME
    kind = run(["readelf", "--wide", "--program-headers", "--sections", "--dynamic", place])
    check("INTERP" not in kind and "NEEDED" not in kind and ".symtab" not in kind, kind)
    content = place.read_bytes()
    for path in [ROOT, Path.home() / ".cargo", Path.home() / ".rustup"]:
        check(str(path).encode() not in content, f"{place} contains the path {path}")


def used(say, shown=None):
    """pgrig works there: `say` runs a command."""
    check(f"{NAME} {version()} (commit " in say(NAME, "--version"), "another version")
    say(NAME, "fill", "100MB", timeout=300)
    check(" fill " in say(NAME, "runs", "list"), "the fill is not among the runs")
    manual = (shown or say)("man", "-P", "cat", NAME)
    check("SYNOPSIS" in manual and "fill" in manual, manual)


def completes(say, script):
    """bash takes the script from its place, and completes a verb with it."""
    complete = "COMP_WORDS=(pgrig fil); COMP_CWORD=1; _pgrig pgrig fil pgrig; echo ${COMPREPLY[@]}"
    found = say("bash", "-c", f"{script}; {complete}")
    check(found.split() == ["fill"], found)


LOADER = ". /usr/share/bash-completion/bash_completion; _completion_loader pgrig"


def package_for_debian(dist, directory):
    package = debian_package(dist)
    found = run(["lintian", "--allow-root", "--fail-on", "error,warning", "--info", package])
    check("E:" not in found and "W:" not in found, found)
    root = debian(directory / "root")
    root.add("tmp/pgrig.deb", package.read_bytes())
    root.run("dpkg", "--install", "/tmp/pgrig.deb")
    used(root.run)
    completes(root.run, LOADER)
    for path in ["zsh/vendor-completions/_pgrig", "fish/vendor_completions.d/pgrig.fish", "doc/pgrig/copyright"]:
        check((root.directory / "usr/share" / path).is_file(), path)
    root.run("dpkg", "--verify", NAME)
    # The server's files stay.
    root.run("dpkg", "--purge", NAME)
    check(not (root.directory / "usr/bin/pgrig").exists(), "pgrig is still there")
    check((root.directory / "var/lib/pgrig/instances").is_dir(), "the instances are gone")
    # The tarball in the same system, with the same home.
    root.add("tmp/pgrig.tar.gz", tarball(dist).read_bytes())
    root.run("tar", "-xf", "/tmp/pgrig.tar.gz", "-C", "/usr/local", "--strip-components=1", "--no-same-owner")
    check("18.6.0" in os.listdir(root.directory / "var/lib/pgrig/postgresql"), "another PostgreSQL than for glibc")
    root.run(NAME, "fill", "100MB", "--drop", timeout=300)
    check("SYNOPSIS" in root.run("man", "-P", "cat", "pgrig-fill"), "no man page of fill")
    completes(root.run, LOADER)


def tarball_with_musl(dist, directory):
    """A system without glibc: its PostgreSQL is the one for musl."""
    root = musl(directory / "root")
    run(["tar", "-xf", tarball(dist), "-C", root.directory, "--strip-components=1"])
    used(root.run, shown=lambda *_: "SYNOPSIS fill")
    fetched = os.listdir(root.directory / "var/lib/pgrig/postgresql")
    check("18.6.0-musl" in fetched and "18.6.0" not in fetched, fetched)
    # Without a C library there is none, and the way out is named.
    (root.directory / "lib/ld-musl-x86_64.so.1").unlink()
    refused = root.run("sh", "-c", "rm -r /var/lib/pgrig; pgrig fill 1MB 2>&1; echo status $?")
    check("--pg-bin" in refused and "status 1" in refused, refused)


def wheel(dist, directory):
    run(["twine", "check", "--strict", wheel_file(dist)])
    environment = directory / "venv"
    run([sys.executable, "-m", "venv", environment])
    run([environment / "bin/pip", "install", "--quiet", "--no-index", wheel_file(dist)])
    variables = {**os.environ, "PATH": f"{environment}/bin:/usr/bin:/bin", "PGRIG_HOME": str(directory / "home")}
    variables.pop("MANPATH", None)

    def say(*command, timeout=120):
        return run(command, timeout=timeout, env=variables, cwd="/")

    used(say)
    completes(say, f". {environment}/share/bash-completion/completions/pgrig")
    check(NAME in run([environment / "bin/pip", "list"]), "pip does not list it")
    run([environment / "bin/pip", "check"])
    run([environment / "bin/pip", "uninstall", "--yes", "--quiet", NAME])
    check(not list(environment.rglob("*pgrig*")), "the wheel leaves files behind")


def same_bytes(dist, directory):
    """Another user, directory, umask and clock: from the same program, since compiling takes minutes (`just reproduce`)."""
    run(["tar", "-xf", tarball(dist), "-C", directory, "--strip-components=1", f"{base_name(MACHINE)}/bin/{NAME}"])
    packages = make_again(directory, [MACHINE], {MACHINE: directory / "bin" / NAME})
    check(compare(dist, packages) == 0, "the packages have other bytes")


def signature(dist, directory):
    """With a key, the sums are signed, and ssh-keygen verifies them as the documentation says."""
    key = directory / "key"
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "release", "-f", key])
    shutil.copyfile(dist / "SHA256SUMS", directory / "SHA256SUMS")
    sign(directory, key)
    signers = directory / "signers"
    signers.write_text(f"pgrig {key.with_suffix('.pub').read_text()}")
    command = ["ssh-keygen", "-Y", "verify", "-f", signers, "-I", "pgrig", "-n", "pgrig-release", "-s",
               directory / "SHA256SUMS.sig"]
    with open(directory / "SHA256SUMS") as text:
        run(command, stdin=text)


def binstall(dist, _):
    """cargo-binstall finds each archive, and the program in it, by the crate's metadata."""
    metadata = tomllib.loads((ROOT / "crates/cli/Cargo.toml").read_text())["package"]["metadata"]["binstall"]
    check(metadata["pkg-fmt"] == "tgz", metadata)
    for archive in dist.glob(f"{NAME}-{version()}-*.tar.gz"):
        values = {"repo": "https://host/owner/pgrig", "name": NAME, "version": version(), "bin": NAME,
                  "target": archive.name.removeprefix(f"{NAME}-{version()}-").removesuffix(".tar.gz"), "archive-suffix": ".tar.gz"}

        def expanded(template):
            return re.sub(r"\{ ([a-z-]+) \}", lambda found: values[found[1]], metadata[template])

        check(expanded("pkg-url") == f"https://host/owner/pgrig/releases/download/v{version()}/{archive.name}", metadata)
        with tarfile.open(archive) as tar:
            check(tar.getmember(expanded("bin-dir")).mode == 0o755, metadata)


if __name__ == "__main__":
    main()
