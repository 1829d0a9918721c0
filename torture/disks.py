"""Cases in which a volume fills up."""

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import checks
from rig import Broken, copy, wait_until

MEGABYTES = {"ext4": 700, "tmpfs": 600}
FILLS = [
    ["--brim", "--data-only"],
    ["--brim", "--data-only", "--unlogged"],
    ["--brim"],
    ["--brim", "--unlogged"],
    ["--brim", "--data-only", "--method", "copy"],
    ["--brim", "--method", "copy"],
    ["--brim", "--data-only", "--partitions", "3", "--partition-method", "hash"],
    ["--brim", "--data-only", "--fillfactor", "10", "--unlogged"],
    ["--brim", "--unlogged", "--partitions", "2", "--partition-method", "hash"],
    ["--brim", "--data-only", "--mark", "50%,80%,100MB"],
    ["--scale", "80", "--method", "copy", "--chunk", "4MB"],
    ["--scale", "80"],
]


def case(rig, rng, index, _unit):
    system = rng.choice(["ext4", "tmpfs"])
    apart = rng.random() < 0.4
    words = FILLS[index % len(FILLS)]
    # Somebody else takes what is left, holds it for a while, and gives it back.
    hog = rng.uniform(0.2, 3) if rng.random() < 0.3 or "--scale" in words else None
    hints = rng.choice(["on", "off"])
    what = f"{system}, WAL {'apart' if apart else 'together'}, {' '.join(words)}, wal_log_hints {hints}"
    return f"disk {what}" + (", hog" if hog else ""), lambda: play(rig, system, apart, words, hog, hints)


@contextlib.contextmanager
def volume(system, at, megabytes):
    at.mkdir(parents=True, exist_ok=True)
    image = None
    if system == "tmpfs":
        mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0755", "tmpfs", str(at)]
    else:
        image = tempfile.NamedTemporaryFile(dir=at.parent)
        os.truncate(image.name, megabytes << 20)
        subprocess.run(["mkfs.ext4", "-q", "-m", "5", image.name], check=True)
        mount = ["mount", "-o", "loop", image.name, str(at)]
    subprocess.run(mount, check=True)
    try:
        yield
    finally:
        wait_until(lambda: subprocess.run(["umount", str(at)], capture_output=True).returncode == 0, 20)
        if image:
            image.close()


def play(rig, system, apart, words, hog, hints):
    shutil.rmtree(rig.home, ignore_errors=True)
    with contextlib.ExitStack() as stack:
        stack.enter_context(volume(system, rig.home, MEGABYTES[system]))
        if apart:
            stack.enter_context(volume(system, rig.root / "wal", 300))
        stack.callback(rig.end)
        copy(rig.root / "template", rig.home)
        # The volume is for data; the binaries are a link to elsewhere.
        rig.home.chmod(0o755)
        if apart:
            move_wal(rig)
        was, rig.settings = rig.settings, ["shared_buffers=32MB", "max_wal_size=64MB", f"wal_log_hints={hints}"]
        rig.children = []
        try:
            filled(rig, words, hog)
        finally:
            rig.settings = was


def move_wal(rig):
    wal = rig.data / "pg_wal"
    target = rig.root / "wal" / "pg_wal"
    subprocess.run(["cp", "-a", str(wal), str(target)], check=True)
    shutil.rmtree(wal)
    wal.symlink_to(target)
    (rig.root / "wal").chmod(0o755)
    owner = rig.data.stat()
    os.chown(wal, owner.st_uid, owner.st_gid, follow_symlinks=False)


def filled(rig, words, hog):
    shm = checks.shared_memory()
    rig.start()
    before = checks.state(rig)
    command = ["fill", *words, *rig.own()]
    process = rig.begin([rig.pgrig, *command])
    if hog:
        thread = threading.Thread(target=take_all, args=(rig.home, hog, 3))
        thread.start()
    ran = rig.finish(process, 300)
    if hog:
        thread.join()
    open_ended = "--brim" in words
    if not hog and not open_ended and ran.code == 0:
        raise Broken(f"this much cannot fit:\n{ran}")
    if not hog and open_ended and ran.code != 0:
        raise Broken(f"filling to the brim should end well:\n{ran}")
    if ran.code == 0 and not hog:
        at_the_brim(rig)
    elif not open_ended:
        # Too large for this volume: refused, or ended by it, and nothing is damaged.
        if not re.search(r"room|space|full|free|No space", ran.err):
            raise Broken(f"the error does not name the full disk:\n{ran}")
        if not rig.postmaster():
            rig.start()
    else:
        if not rig.postmaster():
            rig.start()
        # With somebody else's file the brim came sooner: exit 0 then says that the fill is complete.
        again = rig.verb(*command, deadline=300) if ran.code != 0 else ran
        if again.code != 0:
            raise Broken(f"with room again the same command does not go on:\n{again}")
        ids(rig, again)
    if not rig.postmaster():
        rig.start()
    rig.sql("DROP TABLE IF EXISTS pgbench_accounts, pgbench_branches, pgbench_tellers, pgbench_history; "
            "DROP TABLE IF EXISTS pgrig_chunks_pgbench_accounts", check=False)
    checks.left_clean(rig, before, shm=shm)


def at_the_brim(rig):
    """The server goes on: it reads what was loaded, vacuums it and writes checkpoints, with no room to spare."""
    postmaster = rig.postmaster()
    if not postmaster:
        raise Broken("the server did not survive a fill to the brim")
    for statement in ("SELECT count(*), sum(abalance) FROM pgbench_accounts", "CHECKPOINT", "VACUUM", "ANALYZE",
                      "SELECT count(*) FROM pgbench_accounts", "CHECKPOINT"):
        rig.sql(statement)
    if rig.postmaster() != postmaster:
        raise Broken("the server crashed at the brim")
    log = (rig.home / "instances" / "torture" / "log").read_text(errors="replace")
    if "PANIC" in log:
        raise Broken("PANIC in the server's log: " + next(line for line in log.splitlines() if "PANIC" in line))
    ids(rig)


def missing(ran):
    """The ranges of ids that pgrig calls missing: somebody else took the space of a chunk, and a later chunk, which had
    its space already, was committed."""
    ranges = re.findall(r"ids ([\d,]+) to ([\d,]+) are missing", ran.err)
    return [(int(first.replace(",", "")), int(last.replace(",", ""))) for first, last in ranges]


def ids(rig, ran=None):
    """No id is missing but those that pgrig calls missing, of whatever partition."""
    checks.no_traces(rig)
    gaps = missing(ran) if ran else []
    if gaps and "some of the ids" in ran.err:
        # By hash, some leaves have them and others lack them: the ids before them are all there.
        before = f"(SELECT aid FROM pgbench_accounts WHERE aid < {min(gaps)[0]}) earlier"
        checks.ids_once(rig, before, "aid", min(gaps)[0] - 1)
    else:
        checks.ids_once(rig, "pgbench_accounts", "aid", None, missing=gaps)


def take_all(home, delay, hold):
    """Takes every block but a few that is free, and gives them back."""
    time.sleep(delay)
    file = Path(home) / "somebody-else"
    with contextlib.suppress(OSError), file.open("wb") as taken:
        while True:
            os.posix_fallocate(taken.fileno(), taken.seek(0, 2), 4 << 20)
            taken.seek(0, 2)
    time.sleep(hold)
    with contextlib.suppress(OSError):
        file.unlink()
