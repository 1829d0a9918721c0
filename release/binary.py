"""The static program: the same bytes from any directory, by any user."""

import os
import subprocess
from pathlib import Path

from common import NAME, ROOT, epoch, output, target


# Name of a profile's directory, where it is another one.
DIRECTORIES = {"dev": "debug"}


def environment(machine):
    """No path of this machine gets into the program: neither from Rust nor from C."""
    environment = dict(os.environ)
    home = Path(environment.get("CARGO_HOME") or Path.home() / ".cargo")
    sysroot = Path(output("rustc", "--print", "sysroot"))
    commit = dict(line.split(": ", 1) for line in output("rustc", "-vV").splitlines()[1:])["commit-hash"]
    # The last one that fits counts.
    places = {ROOT: "/pgrig", home: "/cargo", sysroot / "lib/rustlib/src/rust": f"/rustc/{commit}"}
    # Named after the registry, which may be a mirror.
    places |= {sources: "/cargo" for sources in sorted(home.glob("registry/src/*"))}
    target_directory = environment.get("CARGO_TARGET_DIR")
    if target_directory:
        places[Path(target_directory).resolve()] = "/pgrig/target"
    rust = [f"--remap-path-prefix={place}={name}" for place, name in places.items()] + ["--codegen=strip=symbols"]
    c = [f"-ffile-prefix-map={place}={name}" for place, name in places.items()]
    environment.pop("RUSTFLAGS", None)
    # Separated by a character that no path has.
    environment["CARGO_ENCODED_RUSTFLAGS"] = "\x1f".join(rust)
    environment[f"CFLAGS_{target(machine).replace('-', '_')}"] = " ".join(c)
    environment |= {"CARGO_INCREMENTAL": "0", "SOURCE_DATE_EPOCH": str(epoch()), "LC_ALL": "C", "TZ": "UTC"}
    return environment


def build(machine, profile="dist"):
    """Compiles it; 10 minutes on 2 cores by the profile `dist`. x86-64 needs musl-gcc, another machine cargo-zigbuild and zig."""
    # The sources of the crates are there before their places are asked for.
    subprocess.run(["cargo", "fetch", "--locked", "--quiet", "--target", target(machine)], check=True, cwd=ROOT)
    command = "build" if machine == "x86_64" else "zigbuild"
    subprocess.run(
        ["cargo", command, "--profile", profile, "--locked", "--package", NAME, "--bin", NAME, "--target", target(machine)],
        check=True, cwd=ROOT, env=environment(machine), umask=0o022,
    )
    return Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / target(machine) / DIRECTORIES.get(profile, profile) / NAME
