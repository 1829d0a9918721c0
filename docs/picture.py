#!/usr/bin/env python3
"""Draws a real run of pgrig as an SVG that is readable on light and dark pages.

Runs `pgrig fill 1GB` and `pgrig micro` on pgrig's own server, in a home of their own, and writes docs/src/picture.svg.
"""

import argparse
import os
import subprocess
import tempfile
import textwrap
from html import escape
from pathlib import Path

# Commands, and how many lines of each result are drawn.
COMMANDS = {"pgrig fill 1GB": 20, "pgrig micro 'gen_random_uuid()' 'md5(i::text)' --budget 5s": 4}
# Characters; the width of one, and the height of a line, in pixels.
COLUMNS, WIDTH, LINE = 104, 7.8, 18
# Of no renderer but a browser is it certain that it keeps ordinary spaces.
SPACE = "\N{NO-BREAK SPACE}"
STYLE = """
  rect { fill: #f6f8fa; stroke: #d0d7de } text { font: 13px ui-monospace, Menlo, Consolas, monospace; fill: #1f2328 }
  .command { fill: #0550ae; font-weight: bold } .headline { fill: #116329; font-weight: bold }
  @media (prefers-color-scheme: dark) {
    rect { fill: #161b22; stroke: #30363d } text { fill: #e6edf3 }
    .command { fill: #79c0ff } .headline { fill: #7ee787 }
  }
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pgrig", default="target/release/pgrig", help="the program [target/release/pgrig]")
    pgrig = Path(parser.parse_args().pgrig).resolve()
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "PGRIG_HOME": home, "PATH": f"{pgrig.parent}:{os.environ['PATH']}"}
        lines = []
        for command, most in COMMANDS.items():
            # The first run fetches PostgreSQL.
            subprocess.run("pgrig server start -q; pgrig server stop -q", shell=True, env=environment, check=True,
                           capture_output=True)
            ran = subprocess.run(command, shell=True, env=environment, check=True, capture_output=True, text=True)
            lines += [("command", f"$ {command}"), *list(results(ran.stdout))[:most], ("", "")]
    Path(__file__).with_name("src").joinpath("picture.svg").write_text(svg(lines[:-1]))


def results(output):
    """The result: what comes after the plan; the line with the headline stands out."""
    text = output.split("\n\n", 1)[1] if output.startswith("plan") else output
    for line in text.strip("\n").splitlines():
        if not line.startswith(("run document", "the server is stopped", "whole command")):
            kind = "headline" if "all steps" in line else ""
            yield from ((kind, part) for part in textwrap.wrap(line, COLUMNS, drop_whitespace=False) or [""])


def svg(lines):
    height = LINE * (len(lines) + 2)
    width = round(COLUMNS * WIDTH + 2 * LINE)
    rows = (f'<text class="{kind}" x="{LINE}" y="{LINE * (number + 2)}">{escape(line).replace(" ", SPACE)}</text>'
            for number, (kind, line) in enumerate(lines) if line)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
            f'aria-label="pgrig in a terminal">\n<style>{STYLE}</style>\n'
            f'<rect width="{width - 1}" height="{height - 1}" x="0.5" y="0.5" rx="8"/>\n' + "\n".join(rows) + "\n</svg>\n")


if __name__ == "__main__":
    main()
