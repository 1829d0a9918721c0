"""The files that every package installs, below its prefix: the program, man pages, completions, licences."""

import gzip
import subprocess
import tempfile
from pathlib import Path

from common import NAME, ROOT, File
from third_party import licences

# Completions, where each shell looks for them.
COMPLETIONS = {
    "bash": f"share/bash-completion/completions/{NAME}",
    "zsh": f"share/zsh/site-functions/_{NAME}",
    "fish": f"share/fish/vendor_completions.d/{NAME}.fish",
}


def packed(content):
    return gzip.compress(content, 9, mtime=0)


def contents(binary, runnable, machine):
    """`runnable` is the command that runs the same program here: it writes its man pages and completions."""
    files = {f"bin/{NAME}": File(binary.read_bytes(), 0o755)}
    for shell, place in COMPLETIONS.items():
        files[place] = File(subprocess.run([*runnable, "completions", shell], check=True, stdout=subprocess.PIPE).stdout)
    with tempfile.TemporaryDirectory() as pages:
        subprocess.run([*runnable, "man", pages], check=True, stdout=subprocess.DEVNULL)
        for page in sorted(Path(pages).iterdir()):
            files[f"share/man/man1/{page.name}.gz"] = File(packed(page.read_bytes()))
    documents = f"share/doc/{NAME}"
    for name in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"]:
        files[f"{documents}/{name}"] = File((ROOT / name).read_bytes())
    files[f"{documents}/THIRD-PARTY"] = File(licences(machine))
    return files
