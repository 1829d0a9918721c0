"""The time of pgrig backup rehearse for five ways on --size of data, and the estimate that it prints before it starts.

The time is that of the whole command: five ways, --trials each (default 3), each restored and compared. It is measured from outside of
pgrig. The database is filled before, by pgrig fill: with pgbench's tables, or those of --model. The estimate is what --explain prints.
Rounds of the same options on the same day are added to the same record. Needs the client programs and the server of one version of
PostgreSQL (--pg-bin).
"""

import argparse
import contextlib
import datetime
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import cpu, memory, output, spread

REPO = Path(__file__).resolve().parent.parent
# Seconds.
TARGET = 300


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pgrig", default=str(REPO / "target/release/pgrig"))
    parser.add_argument("--pg-bin", default="/usr/lib/postgresql/15/bin", help="directory of the programs, client and server")
    parser.add_argument("--size", default="1GB", help="of all tables, with their indexes")
    parser.add_argument("--model", help="file of a model, in place of pgbench's tables")
    parser.add_argument("--trials", type=int, default=3, help="of each way in a round")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--record", default=str(REPO / "records"), help="directory; empty for none")
    options = parser.parse_args()
    path = Path(options.record, f"{datetime.date.today()}-backup-five-{options.size}{'-model' if options.model else ''}.json")
    rounds = json.loads(path.read_text())["rounds"] if options.record and path.exists() else []
    for _ in range(options.rounds):
        rounds.append(rehearsed(options))
        print(f"{rounds[-1]['seconds']:.0f} s; estimate {rounds[-1]['estimate']}", flush=True)
    low, middle, high = spread(each["seconds"] for each in rounds)
    results = {"rounds": len(rounds), "seconds": [low, middle, high], "target": TARGET, "is_reached": high <= TARGET}
    print(f"{middle:.0f} s ({low:.0f} to {high:.0f}) in {len(rounds)} rounds; the target is {TARGET} s")
    if options.record:
        record = {"benchmark": "backup-five", "options": {"size": options.size, "trials": options.trials, "model": options.model},
                  "machine": {"cpu": cpu(), "cores": os.cpu_count(), "memory": memory(), "system": platform.platform()},
                  "pgrig": output([options.pgrig, "--version"]), "results": results, "rounds": rounds}
        path.write_text(json.dumps(record, indent=1) + "\n")


def rehearsed(options):
    """A rehearsal of the five ways that pgrig chooses, on a new server: seconds, the estimate, and the medians of each way."""
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "PGRIG_HOME": home}
        server = ["--pg-bin", options.pg_bin, "--profile", "stock"]
        data = ["--model", options.model] if options.model else []
        rehearse = [options.pgrig, "backup", "rehearse", "--profile", "stock", "--bin", options.pg_bin, "--trials", str(options.trials)]
        try:
            run([options.pgrig, "fill", options.size, *data, *server], environment)
            plan = run([*rehearse, "--explain"], environment)
            began = time.monotonic()
            document = json.loads(run([*rehearse, "--json", "-"], environment).stdout)
            seconds = time.monotonic() - began
        finally:
            subprocess.run([options.pgrig, "server", "destroy"], env=environment, check=False, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
    ways = sorted({each["config"] for each in document["trials"]})
    if len(ways) != 5:
        sys.exit(f"five ways were expected, not {ways}")
    return {"seconds": seconds, "estimate": estimate(plan.stdout + plan.stderr), "load": os.getloadavg()[0], "ways": ways}


def estimate(text):
    """The line of the plan that announces the time."""
    found = re.search(r"^\s*time\s+(about [^,]+)", text, re.MULTILINE)
    if not found:
        sys.exit(f"the plan announces no time:\n{text}")
    return found.group(1)


def run(command, environment):
    ran = subprocess.run(command, env=environment, capture_output=True, text=True)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{ran.stderr}")
    return ran


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
