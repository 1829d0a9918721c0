"""The libraries in the program, from `cargo metadata`: their licences as a text, and a software bill of materials."""

import functools
import hashlib
import json
import tomllib
import uuid
from datetime import datetime, timezone
from pathlib import Path

from common import NAME, ROOT, epoch, output, target, version

LICENCE_FILES = ("LICEN", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE")
# In the program, but not by Cargo.
NOT_CRATES = Path(__file__).with_name("licences")


@functools.cache
def packages(machine):
    """The crates of others that the program is made of, each with the names of those that it uses."""
    metadata = json.loads(
        output("cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target(machine))
    )
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    by_id = {package["id"]: package for package in metadata["packages"]}
    start = next(id for id, package in by_id.items() if package["name"] == NAME)
    found, open_ = {}, [start]
    while open_:
        id = open_.pop()
        if id in found:
            continue
        uses = [use["pkg"] for use in nodes[id]["deps"] if any(kind["kind"] is None for kind in use["dep_kinds"])]
        found[id] = uses
        open_ += uses
    order = sorted(found, key=lambda id: (by_id[id]["name"], by_id[id]["version"]))
    return [(by_id[id], [by_id[use] for use in found[id]]) for id in order]


def title(package):
    return f"{package['name']} {package['version']}"


def licences(machine):
    """Each text once, with the crates that it is for."""
    texts, without = {}, []
    for package, _ in packages(machine):
        if package["source"] is None:
            continue
        directory = Path(package["manifest_path"]).parent
        files = [path for path in sorted(directory.iterdir()) if path.name.upper().startswith(LICENCE_FILES) and path.is_file()]
        if not files:
            without.append(package)
        for path in files:
            text = path.read_text(errors="replace").replace("\r\n", "\n").strip("\n")
            texts.setdefault(text, []).append(f"{title(package)} ({package['license']})")
    for path in sorted(NOT_CRATES.iterdir()):
        texts.setdefault(path.read_text().strip("\n"), []).append(path.stem)
    parts = ["pgrig contains the libraries below. Its own licences are in LICENSE-APACHE and LICENSE-MIT.\n"]
    for package in without:
        parts.append(f"{title(package)}: {package['license']}, {package['repository']} (the package has no file of licence)\n")
    for text, names in sorted(texts.items(), key=lambda item: item[1]):
        line = "-" * 78
        parts.append(f"{line}\n" + "\n".join(names) + f"\n{line}\n\n{text}\n")
    return "\n".join(parts).encode()


def reference(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def bill_of_materials(machine, binary):
    """CycloneDX 1.5: the program, and each crate with its version, licence and checksum."""
    checksums = lock()
    components, dependencies = [], []
    for package, uses in packages(machine):
        dependencies.append({"ref": reference(package), "dependsOn": sorted(reference(use) for use in uses)})
        if package["name"] == NAME:
            continue
        component = {
            "type": "library", "bom-ref": reference(package), "name": package["name"], "version": package["version"],
            "purl": reference(package), "licenses": [{"expression": package["license"].replace("/", " OR ")}],
        }
        checksum = checksums.get((package["name"], package["version"]))
        if checksum:
            component["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        components.append(component)
    of_binary = hashlib.sha256(binary.read_bytes()).hexdigest()
    bill = {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, of_binary)}",
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch(), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "application", "bom-ref": f"pkg:cargo/{NAME}@{version()}", "name": NAME, "version": version(),
                "purl": f"pkg:cargo/{NAME}@{version()}", "hashes": [{"alg": "SHA-256", "content": of_binary}],
                "licenses": [{"expression": "MIT OR Apache-2.0"}],
            },
        },
        "components": components,
        "dependencies": dependencies,
    }
    return (json.dumps(bill, indent=1) + "\n").encode()


def lock():
    entries = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    return {(entry["name"], entry["version"]): entry["checksum"] for entry in entries if "checksum" in entry}
