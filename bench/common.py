"""What the benchmark scripts share: a server of their own, timed processes, records."""

import contextlib
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent


def arguments(parser):
    """The options that every benchmark has."""
    parser.add_argument("--pgrig", default=str(REPO / "target/release/pgrig"))
    parser.add_argument("--pgbench", default="pgbench", help="by default the one in --pg-bin, else in PATH")
    parser.add_argument("--psql", default="psql")
    parser.add_argument("--pg-version", default="18")
    parser.add_argument("--pg-bin", help="an installed server instead, best with its own pgbench")
    parser.add_argument("--profile", default="bulk", choices=["bulk", "stock"])
    parser.add_argument("--trials", type=int, default=6, help="rounds that count")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", default=str(REPO / "records"), help="directory; empty for none")


def parsed(parser):
    """The options, with pgbench where it was found."""
    options = parser.parse_args()
    own = options.pg_bin and Path(options.pg_bin) / "pgbench"
    if own and own.exists() and options.pgbench == "pgbench":
        options.pgbench = str(own)
    return options


class Server:
    """A server that pgrig starts for one benchmark, and the processes that are timed on it."""

    def __init__(self, options, profile=None):
        self.options = options
        self.profile = profile or options.profile
        self.instance = f"bench-{os.getpid()}-{self.profile}"
        server = ["--pg-bin", options.pg_bin] if options.pg_bin else ["--pg-version", options.pg_version]
        self.url = self.pgrig("server", "start", "--profile", self.profile, *server)
        found = json.loads(self.pgrig("server", "status", "--json"))
        directory = Path(found[0]["directory"])
        self.home = str(directory.parent.parent)
        self.postmaster = int((directory / "data/postmaster.pid").read_text().split()[0])
        self.version = self.query("SELECT version()")

    def pgrig(self, *command):
        return output([self.options.pgrig, *command, "--instance", self.instance])

    def destroy(self):
        self.pgrig("server", "destroy")

    def query(self, sql):
        return output([self.options.psql, "-XAtq", "-c", sql, self.url])

    def cpu(self):
        """CPU seconds of all backends that have ended, user and system."""
        fields = Path(f"/proc/{self.postmaster}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")

    def settle(self):
        """Dirty pages are written, so that no trial pays for the one before."""
        self.query("CHECKPOINT")
        os.sync()

    def fill(self, flags):
        """pgrig's command line for a fill of this server."""
        return [self.options.pgrig, "fill", "-q", *flags.split(), "--instance", self.instance]


@contextlib.contextmanager
def serving(options, profile=None):
    server = Server(options, profile)
    try:
        yield server
    finally:
        server.destroy()


def timed(command, environment=None):
    """A process from start to end: wall-clock and its own CPU seconds, its children's with it. Of pgrig
    also the run document, of others the last line that they said."""
    with tempfile.TemporaryDirectory() as scratch:
        document = Path(scratch) / "run.json"
        if command[1] in ("fill", "blockio", "tps"):
            command = [*command, "--json", str(document)]
        started = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment)
        said = process.stderr.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(f"{' '.join(command)} failed:\n{said}")
        result = {"wall": wall, "cpu": usage.ru_utime + usage.ru_stime, "load": os.getloadavg()[0]}
        if document.exists():
            result["run"] = json.loads(document.read_text())
        else:
            result["said"] = (said.strip().splitlines() or [""])[-1]
    return result


def spread(values):
    """Lowest, median, highest."""
    values = list(values)
    return [min(values), statistics.median(values), max(values)]


def shown(low, middle, high):
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def surroundings(options, server):
    """What a record says of where and when it was made."""
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "profile": options.profile,
        "seed": options.seed,
        "server": server.version,
        "pgbench": output([options.pgbench, "--version"]),
        "machine": {"cpu": cpu(), "cores": os.cpu_count(), "memory": memory(), "system": platform.platform()},
    }


def save(options, server, record, size):
    """Writes the record and says where; `size` is what its file name has for the amount."""
    if not options.record:
        return
    major = record["server"].split()[1].split(".")[0]
    name = f"{record['date'][:10]}-{record['benchmark']}-pg{major}-{options.profile}-{size}.json"
    path = Path(options.record) / name
    # Where pgrig lives on the machine that measured is nobody's business.
    path.write_text(json.dumps(record, indent=1).replace(server.home, "PGRIG_HOME").replace(f"{REPO}/", "") + "\n")
    print(f"\nrecord: {path}")


def output(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def cpu():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def memory():
    """Bytes of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
