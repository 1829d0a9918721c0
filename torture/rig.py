"""The ground that all cases stand on: a PGRIG_HOME of their own, its server, and processes with a deadline."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

# Seconds after which a command counts as hanging.
DEADLINE = 150
INSTANCE = "torture"
# What a server says that starts, or recovers from a crash.
NOT_READY = r"the database system is (in recovery|starting up|not yet accepting)|server closed the connection"


class Broken(Exception):
    """A promise that pgrig did not keep."""


@dataclass
class Ran:
    """A process that ended."""

    command: list
    code: int
    out: str
    err: str
    seconds: float

    def __str__(self):
        text = f"$ {' '.join(self.command)}\n[exit {self.code}, {self.seconds:.2f} s]\n"
        return text + "".join(f"  {line}\n" for line in (self.out + self.err).splitlines())


@dataclass
class Rig:
    """One PGRIG_HOME. Each case begins with a copy of the same one."""

    pgrig: str
    version: str
    root: Path
    shared: Path
    log: list = field(default_factory=list)
    pg_bin: Path | None = None
    settings: list = field(default_factory=list)
    children: list = field(default_factory=list)

    @property
    def home(self):
        return self.root / "home"

    @property
    def data(self):
        return self.home / "instances" / INSTANCE / "data"

    def environment(self):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "DATABASE_URL"))}
        # Of a terminal's width, so that messages are as people see them.
        return kept | {"PGRIG_HOME": str(self.home), "COLUMNS": "120", "RUST_BACKTRACE": "1"}

    def own(self, with_settings=True):
        """The options that name this server as pgrig's own."""
        sets = [word for setting in self.settings if with_settings for word in ("--set", setting)]
        binaries = ["--pg-bin", str(self.pg_bin)] if self.pg_bin else ["--pg-version", self.version]
        return ["--instance", INSTANCE, *binaries, *sets]

    def note(self, text):
        self.log.append(text if text.endswith("\n") else text + "\n")

    def begin(self, command):
        """Starts a process without waiting for it."""
        files = [tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")]
        process = subprocess.Popen(
            command, env=self.environment(), stdin=subprocess.DEVNULL, stdout=files[0], stderr=files[1],
            start_new_session=True,
        )
        process.files, process.started, process.words = files, time.monotonic(), command
        self.children.append(process)
        return process

    def finish(self, process, deadline=DEADLINE):
        """Waits for its end, which must come."""
        try:
            process.wait(timeout=deadline)
        except subprocess.TimeoutExpired:
            stacks = waits_of(process.pid)
            process.kill()
            process.wait()
            ran = self._ran(process)
            raise Broken(f"did not end within {deadline} s ({stacks}):\n{ran}") from None
        return self._ran(process)

    def _ran(self, process):
        texts = []
        for file in process.files:
            file.seek(0)
            texts.append(file.read().replace("\r", "\n"))
        seconds = time.monotonic() - process.started
        ran = Ran([str(word) for word in process.words], process.returncode, *texts, seconds)
        self.note(str(ran))
        check_manners(ran)
        return ran

    def run(self, command, deadline=DEADLINE):
        return self.finish(self.begin(command), deadline)

    def verb(self, *words, deadline=DEADLINE):
        return self.run([self.pgrig, *map(str, words)], deadline)

    def must(self, *words):
        ran = self.verb(*words)
        if ran.code != 0:
            raise Broken(f"should have worked:\n{ran}")
        return ran

    # The server

    def start(self):
        return self.must("server", "start", *self.own()).out.strip()

    def stop(self):
        return self.must("server", "stop", "--instance", INSTANCE)

    def url(self):
        return self.must("server", "url", "--instance", INSTANCE).out.strip()

    @property
    def socket(self):
        return self.home / "instances" / INSTANCE / "socket"

    def postmaster(self):
        """Its process id, if it runs."""
        try:
            pid = int((self.data / "postmaster.pid").read_text().split()[0])
        except (OSError, ValueError, IndexError):
            return None
        return pid if "postgres" in name_of(pid) and is_alive(pid) else None

    def sql(self, sql, database="postgres", check=True, seconds=120):
        """What psql prints, without headers."""
        command = ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-h", str(self.socket), "-U", "postgres", "-d", database]
        for _ in range(300):
            ran = subprocess.run(
                command, input=f"SET statement_timeout = '{seconds}s';\n{sql}", env=self.environment(),
                capture_output=True, text=True, timeout=seconds + 30,
            )
            # A server that recovers from a crash is ready in a moment.
            if ran.returncode == 0 or not check or not re.search(NOT_READY, ran.stderr):
                break
            time.sleep(0.1)
        if check and ran.returncode != 0:
            raise Broken(f"{sql}\n  {ran.stderr.strip()}")
        return ran.stdout.strip() if check else ran

    # Cases

    def prepare(self):
        """Makes the home that every case copies."""
        shutil.rmtree(self.root, ignore_errors=True)
        self.home.mkdir(parents=True)
        for path in (self.root, self.home):
            path.chmod(0o755)
        (self.home / "postgresql").symlink_to(self.shared)
        self.settings = ["shared_buffers=32MB", "max_wal_size=256MB"]
        self.start()
        self.sql("CREATE EXTENSION amcheck; CREATE EXTENSION pg_visibility; CREATE SCHEMA theirs;"
                 "CREATE TABLE theirs.things AS SELECT g id, md5(g::text) t FROM generate_series(1, 1000) g; CHECKPOINT")
        self.stop()
        copy(self.home, self.root / "template")

    @contextlib.contextmanager
    def fresh(self, at=None):
        """A home as `prepare` made it; everything that runs in it ends with it."""
        self.log, self.children = [], []
        if at is None:
            shutil.rmtree(self.home, ignore_errors=True)
        copy(self.root / "template", self.home)
        try:
            yield
        finally:
            self.end()

    def end(self):
        for process in self.children:
            if process.poll() is None:
                process.kill()
                process.wait()
        for pid in self.processes():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not self.processes(), 20)

    def processes(self):
        """Processes that belong to this home."""
        mine, found = os.getpid(), []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == mine:
                continue
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes() + b"\0" + (entry / "environ").read_bytes()
                if str(self.root).encode() in words and is_alive(int(entry.name)):
                    found.append(int(entry.name))
        # A backend's command line has no path, but its postmaster has.
        return sorted(set(found) | {child for pid in found for child in descendants(pid)} - {mine})


def copy(source, target):
    target.mkdir(exist_ok=True)
    subprocess.run(["cp", "-a", f"{source}/.", str(target)], check=True)


def wait_until(holds, seconds, what=None):
    """Polls a condition, with a deadline."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            if what:
                raise Broken(f"waited {seconds} s in vain: {what}")
            return False
        time.sleep(0.02)
    return True


def check_manners(ran):
    """What holds for every end of pgrig, however it was brought about."""
    text = ran.out + ran.err
    if "panicked" in text or ran.code == 101 or ran.code in (-signal.SIGABRT, -signal.SIGSEGV):
        raise Broken(f"a panic:\n{ran}")
    if ran.code > 0 and ran.code != 130 and not re.search(r"error|failed|NOT", ran.err):
        raise Broken(f"ended with {ran.code} and no error message:\n{ran}")
    if ran.code not in (0, 1, 2, 3, 130) and ran.code >= 0:
        raise Broken(f"exit status {ran.code}:\n{ran}")


def name_of(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip() + Path(f"/proc/{pid}/cmdline").read_text()
    return ""


def is_alive(pid):
    """A zombie is not."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    return False


def program_of(pid):
    """The file that it runs."""
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{pid}/exe")
    return None


def children_of(pid):
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) == pid:
                    found.append(int(entry.name))
    return found


def descendants(pid):
    direct = children_of(pid)
    return direct + [pid for child in direct for pid in descendants(child)]


def waits_of(pid):
    """Where each thread of a process waits."""
    waits = []
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError):
            waits.append((task / "wchan").read_text())
    return ", ".join(waits)
