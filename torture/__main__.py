"""pgrig under torture: kills, full disks and failing networks, at random moments, and then a hard look.

Each case follows from the seed and its number alone, so that `--seed S --only N` repeats it (what is
random in the machine's timing remains). Results are appended to a file; a run that is given again goes on after the
last case there. Needs psql; as root everything, else without full disks.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import disks
import kills
import network
from kinds import KINDS
from rig import Broken, Rig

REPO = Path(__file__).resolve().parent.parent
# Of each 17 cases: the proportions of 200 kills, 40 full disks and 100 network faults.
FAMILIES = ("kill " * 10 + "disk " * 2 + "network " * 5).split()
MODULES = {"kill": kills, "disk": disks, "network": network}


def parsed():
    parser = argparse.ArgumentParser(prog="torture", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, help="begin no case after so long [default: no limit]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=340, help="how many there are [default: 340, of them 200 kills]")
    parser.add_argument("--only", type=int, help="this case alone, and what was said in it")
    parser.add_argument("--family", choices=MODULES, help="cases of this family alone")
    parser.add_argument("--kind", choices=[kind.name for kind in KINDS], help="kills of this kind alone")
    parser.add_argument("--pgrig", default=str(REPO / "target/release/pgrig"))
    parser.add_argument("--pg-version", default="18")
    parser.add_argument("--results", help="file [default: target/torture/pgVERSION-SEED.jsonl]")
    parser.add_argument("--undisturbed", action="store_true", help="each kind once without any fault, and how long it takes")
    parser.add_argument("--stop", action="store_true", help="end at the first fault")
    return parser.parse_args()


def planned(options):
    """Family and number within it of each case, in the order of the run."""
    order = FAMILIES * (options.cases // len(FAMILIES) + 1)
    random.Random(options.seed).shuffle(order)
    if options.kind or options.family:
        order = [options.family or "kill"] * options.cases
    if os.getuid() != 0:
        order = [family if family != "disk" else "kill" for family in order]
    counts = dict.fromkeys(MODULES, 0)
    for index, family in enumerate(order[: options.cases]):
        number, counts[family] = counts[family], counts[family] + 1
        if options.kind:
            number = [kind.name for kind in KINDS].index(options.kind)
        yield index, family, number


def carry_out(rig, family, number, index, options, unit):
    rng = random.Random(f"{options.seed}-{index}")
    result = {"case": index, "family": family, "what": f"{family} {number}", "fault": None}
    started = time.monotonic()
    try:
        result["what"], play = MODULES[family].case(rig, rng, number, unit)
        if family == "disk":
            rig.log = []
            play()
        else:
            with rig.fresh():
                play()
    except Broken as broken:
        result["fault"] = str(broken)
    except Exception:
        result["fault"] = traceback.format_exc()
    if result["fault"]:
        log = rig.home / "instances" / "torture" / "log"
        result["log"] = "".join(rig.log)
        result["server"] = log.read_text(errors="replace")[-4000:] if log.exists() else ""
    result["seconds"] = round(time.monotonic() - started, 1)
    return result


def main():
    options = parsed()
    file = Path(options.results or REPO / f"target/torture/pg{options.pg_version}-{options.seed}.jsonl")
    file.parent.mkdir(parents=True, exist_ok=True)
    done = {}
    if file.exists() and options.only is None:
        done = {result["case"]: result for result in map(json.loads, file.read_text().splitlines())}
    shared = file.parent / "postgresql"
    shared.mkdir(exist_ok=True)
    shared.chmod(0o755)
    root = Path(tempfile.mkdtemp(prefix="pgrig-torture-"))
    rig = Rig(str(Path(options.pgrig).resolve()), options.pg_version, root, shared.resolve())
    began = time.monotonic()
    try:
        rig.prepare()
        if options.undisturbed:
            return undisturbed(options, rig)
        run(options, rig, file, done, began)
    finally:
        rig.end()
        subprocess.run(["rm", "-rf", str(root)], check=False)
    return summary(options, done)


def run(options, rig, file, done, began):
    unit = kills.measure(rig)
    for index, family, number in planned(options):
        if index in done or options.only not in (None, index):
            continue
        if options.minutes and time.monotonic() - began > options.minutes * 60:
            break
        result = carry_out(rig, family, number, index, options, unit)
        done[index] = result
        print(f"{index:4} {result['seconds']:6.1f} s  {'FAULT' if result['fault'] else 'right'}  {result['what']}", flush=True)
        if result["fault"]:
            print("     " + "\n     ".join(result["fault"].splitlines()[:30]), flush=True)
        if options.only is not None:
            print("".join(rig.log))
        else:
            with file.open("a") as results:
                results.write(json.dumps(result) + "\n")
        if options.stop and result["fault"]:
            break


def undisturbed(options, rig):
    unit = kills.measure(rig)
    for kind in KINDS:
        if options.kind in (None, kind.name):
            print(f"{kind.name:26} {kills.undisturbed(rig, kind) / unit:6.2f} times copy", flush=True)
    return 0


def summary(options, done):
    print(f"\nseed {options.seed}, PostgreSQL {options.pg_version}")
    for family in MODULES:
        cases = [result for result in done.values() if result["family"] == family]
        faults = sum(1 for result in cases if result["fault"])
        print(f"  {family:8} {len(cases):4} cases, {faults} with faults")
    for result in done.values():
        if result["fault"]:
            print(f"  --seed {options.seed} --only {result['case']}: {result['what']}: {result['fault'].splitlines()[0][:150]}")
    return 1 if any(result["fault"] for result in done.values()) else 0


def alone():
    """As root in namespaces of its own: mounts, processes and shared memory end with it, however it ends."""
    if os.getuid() != 0 or os.environ.get("PGRIG_TORTURE_ALONE"):
        return
    os.environ["PGRIG_TORTURE_ALONE"] = "1"
    os.execvp("unshare", ["unshare", "--mount", "--pid", "--ipc", "--fork", "--kill-child=TERM", "--mount-proc",
                          sys.executable, *sys.argv])


def as_init():
    """Process 1 of its namespace buries orphans; the work is done by a child."""
    if os.getpid() != 1:
        return
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/dev/shm"], check=True)
    worker = os.fork()
    if worker == 0:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os.kill(worker, signal.SIGTERM))
    while True:
        pid, status = os.wait()
        if pid == worker:
            os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


if __name__ == "__main__":
    alone()
    as_init()
    sys.exit(main())
