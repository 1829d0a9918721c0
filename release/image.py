"""The container image: Debian by mmdebstrap, then the steps of container/Containerfile, by buildah without an engine."""

import os
import subprocess
import tempfile
from pathlib import Path

from archives import gzip
from common import NAME, ROOT, epoch, version

TOOLS = ["mmdebstrap", "buildah"]
SUITE = "bookworm"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"


def image(package):
    """The name of the file, an archive for `podman load` and `docker load`, and its bytes."""
    with tempfile.TemporaryDirectory(prefix="pgrig-image-") as directory:
        directory = Path(directory)
        base, archive = directory / "base.tar", directory / "image.tar"
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch())}
        bootstrap = ["mmdebstrap", "--quiet", "--variant=minbase", "--include=ca-certificates", SUITE, base]
        subprocess.run(bootstrap, check=True, env=environment, umask=0o022)
        storage = ["buildah", "--storage-driver", "vfs", "--root", directory / "root", "--runroot", directory / "run"]

        def buildah(*arguments):
            command = [*storage, *arguments]
            return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, umask=0o022).stdout.strip()

        buildah("from", "--quiet", "--name", "base", "scratch")
        buildah("add", "--quiet", "base", base, "/")
        buildah("commit", "--quiet", "--timestamp", str(epoch()), "base", "localhost/base")
        buildah(
            "build", "--quiet", "--isolation", "chroot", "--timestamp", str(epoch()), "--pull-never",
            # What this machine trusts counts while the image is built; the image keeps Debian's.
            *(["--volume", f"{CERTIFICATES}:{CERTIFICATES}:ro"] if Path(CERTIFICATES).exists() else []),
            "--build-arg", "BASE=localhost/base", "--build-arg", f"PACKAGE={package.name}",
            "--file", ROOT / "release/container/Containerfile", "--tag", f"localhost/{NAME}:{version()}", package.parent,
        )
        buildah("push", "--quiet", f"localhost/{NAME}:{version()}", f"docker-archive:{archive}:localhost/{NAME}:{version()}")
        return f"{package.stem}.image.tar.gz", gzip(archive.read_bytes())
