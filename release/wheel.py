"""A Python wheel whose only content is the program: `pip install FILE` puts pgrig into the environment."""

import base64
import hashlib

from archives import zip
from common import DESCRIPTION, NAME, ROOT, SUMMARY, File, under, version

# The program is static: it runs with any C library.
TAGS = ["manylinux_2_17", "manylinux2014", "musllinux_1_1"]


def wheel(files, machine):
    """The name of the file, and its bytes."""
    platforms = [f"{tag}_{machine}" for tag in TAGS]
    program = under(f"{NAME}-{version()}.data/scripts", {NAME: files[f"bin/{NAME}"]})
    share = {path: file for path, file in files.items() if path.startswith("share/")}
    inner = program | under(f"{NAME}-{version()}.data/data", share)
    information = f"{NAME}-{version()}.dist-info"
    inner |= under(information, {
        "METADATA": File(metadata().encode()),
        "WHEEL": File(about(platforms).encode()),
        "licenses/LICENSE-APACHE": File((ROOT / "LICENSE-APACHE").read_bytes()),
        "licenses/LICENSE-MIT": File((ROOT / "LICENSE-MIT").read_bytes()),
    })
    inner = dict(sorted(inner.items()))
    record = f"{information}/RECORD"
    lines = [f"{path},sha256={digest(file.content)},{len(file.content)}" for path, file in inner.items()]
    inner[record] = File(("\n".join([*lines, f"{record},,"]) + "\n").encode())
    return f"{NAME}-{version()}-py3-none-{'.'.join(platforms)}.whl", zip(inner)


def metadata():
    fields = {
        "Metadata-Version": "2.4", "Name": NAME, "Version": version(), "Summary": f"A {SUMMARY}",
        "Keywords": "postgresql,benchmark,test-data,pgbench,migrations", "License-Expression": "MIT OR Apache-2.0",
    }
    lines = [f"{name}: {value}" for name, value in fields.items()]
    lines += [f"License-File: {name}" for name in ["LICENSE-APACHE", "LICENSE-MIT"]]
    lines += [f"Classifier: {name}" for name in [
        "Development Status :: 4 - Beta", "Environment :: Console", "Intended Audience :: Developers",
        "Operating System :: POSIX :: Linux", "Programming Language :: Rust", "Topic :: Database",
        "Topic :: Software Development :: Testing", "Topic :: System :: Benchmark",
    ]]
    lines += ["Requires-Python: >=3.8", "Description-Content-Type: text/markdown"]
    return "\n".join(lines) + f"\n\n{DESCRIPTION}\n"


def about(platforms):
    lines = ["Wheel-Version: 1.0", "Generator: pgrig", "Root-Is-Purelib: false"]
    return "\n".join(lines + [f"Tag: py3-none-{platform}" for platform in platforms]) + "\n"


def digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
