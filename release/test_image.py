"""The container image and the Compose file, by Podman: the engine that runs without a service."""

import gzip
import os
import shutil
import time
from pathlib import Path

from common import NAME, ROOT, version
from roots import check, run

TOOLS = ["podman", "podman-compose", "mmdebstrap"]
COMPOSE = ROOT / "release/container/compose.yaml"
SERVER = "docker.io/library/postgres:18"
# In place of the server's image, where no registry of images is reached: it has the same account, variable and programs.
STANDS_IN = """\
FROM localhost/debian
COPY start /start
ENV PATH=/usr/lib/postgresql/15/bin:/usr/sbin:/usr/bin:/sbin:/bin
USER postgres
CMD ["bash", "/start"]
"""
START = """\
set -e
initdb --pgdata /tmp/data --auth scram-sha-256 --pwfile <(echo "$POSTGRES_PASSWORD") --no-sync
echo 'host all all all scram-sha-256' >> /tmp/data/pg_hba.conf
exec postgres -D /tmp/data -c 'listen_addresses=*' -c unix_socket_directories=/tmp
"""


def compose_file(*_):
    """Compose files are as their specification has it."""
    run(["check-jsonschema", "--builtin-schema", "vendor.compose-spec", COMPOSE, ROOT / "deploy/compose/compose.yaml"])
    check(f"image: localhost/{NAME}:{version()}" in COMPOSE.read_text(), f"{COMPOSE} names another version")


def in_an_engine(dist, directory):
    """The image's user, its PostgreSQL without a network, and PID 1; then beside a server, by the Compose file."""
    podman = Engine(directory)
    archive = directory / "image.tar"
    with gzip.open(next(dist.glob("pgrig_*.image.tar.gz"))) as packed, open(archive, "wb") as unpacked:
        shutil.copyfileobj(packed, unpacked)
    podman("load", "--quiet", "--input", archive)
    image = f"localhost/{NAME}:{version()}"
    alone = ["run", "--init", "--rm", "--network", "none", "--volume", f"{NAME}:/var/lib/pgrig"]
    check("uid=999(pgrig)" in podman(*alone, "--entrypoint", "id", image), "another user")
    check(f"{NAME} {version()}" in podman(*alone, image, "--version"), "another version")
    podman(*alone, image, "fill", "100MB")
    # The volume keeps the instance and its runs.
    check("tps" in podman(*alone, image, "tps", "-c", "2", "-T", "1"), "no result of tps")
    listed = podman(*alone, image, "runs", "list")
    check(" fill " in listed and " tps " in listed, listed)
    podman.give(SERVER, directory)
    try:
        # Without systemd, Podman runs no check of health by itself.
        podman.compose("up", "--detach", "postgres")
        deadline = time.monotonic() + 60
        while not podman.succeeds("healthcheck", "run", "container_postgres_1"):
            check(time.monotonic() < deadline, podman("logs", "container_postgres_1"))
            time.sleep(0.2)
        run_it = ["run", "--rm", "-T", *podman.address_if_names_are_unsafe(), NAME]
        check("100 MB in " in podman.compose(*run_it, "fill", "100MB"), "no result of fill")
        check(" tps: " in podman.compose(*run_it, "tps", "-c", "2", "-T", "1"), "no result of tps")
    finally:
        podman.compose("down", "--volumes")


class Engine:
    """Podman with images, containers and networks of its own."""

    def __init__(self, directory):
        settings = '[network]\nnetwork_backend = "netavark"\n'
        # A machine may allow no more than its own limits, and crun not every layout of cgroups.
        settings += '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]\n'
        if shutil.which("runc"):
            settings += '[engine]\nruntime = "runc"\n'
        storage = f'[storage]\ndriver = "vfs"\ngraphroot = "{directory}/graph"\nrunroot = "{directory}/run"\n'
        self.environment = dict(os.environ)
        for name, text in {"CONTAINERS_CONF": settings, "CONTAINERS_STORAGE_CONF": storage}.items():
            path = Path(directory) / name.lower()
            path.write_text(text)
            self.environment[name] = str(path)

    def __call__(self, *arguments, timeout=300):
        return run(["podman", *arguments], timeout=timeout, env=self.environment, cwd="/")

    def succeeds(self, *arguments):
        try:
            self(*arguments)
        except SystemExit:
            return False
        return True

    def compose(self, *arguments):
        return run(["podman-compose", "--file", COMPOSE, *arguments], timeout=300, env=self.environment, cwd="/")

    def address_if_names_are_unsafe(self):
        """musl takes the first answer of all nameservers. Podman 4.3 lists the machine's own too, which do not know containers."""
        served = self("exec", "container_postgres_1", "cat", "/etc/resolv.conf").count("nameserver ")
        if served < 2:
            return []
        address = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
        return ["-e", f"PGHOSTADDR={self('inspect', '--format', address, 'container_postgres_1').strip()}"]

    def give(self, image, directory):
        """The image from its registry, or what stands in for it."""
        if self.succeeds("pull", "--quiet", image):
            return
        print(f"         {image} is not reached: PostgreSQL 15 of Debian stands in", flush=True)
        base, context = directory / "debian.tar", directory / "context"
        run(["mmdebstrap", "--quiet", "--variant=minbase", "--include=postgresql-15", "bookworm", base], timeout=400)
        self("import", "--quiet", base, "localhost/debian")
        context.mkdir(exist_ok=True)
        (context / "Containerfile").write_text(STANDS_IN)
        (context / "start").write_text(START)
        self("build", "--quiet", "--format", "docker", "--tag", image, context)
