"""Does the bundle find a real change? `python scripts/real_change.py [--runs 4] [--keep DIR]`.

Trains the demo model on the CPU, each run in a process of its own: as it is, with one region made
slow (`mlp_up` of block_0), and with all-reduces more (`extra_psums`). The command line then makes a
bundle of each change against the plain runs, as a user would. Prints the head of each report, and
exits 1 unless each bundle fails, confirmed, and names that region (that collective) first.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo_captures import take_capture

HEAD = "## Checks"


@dataclass(frozen=True)
class Change:
    """`flag` makes the change as large as `size`; `region` and `collective` are to come first."""

    name: str
    flag: str
    size: int
    region: str
    collective: str | None = None


CHANGES = (
    Change("slow_region", "--model.slow_region_repeats", 300, "block_0=>mlp_up"),
    Change("extra_psums", "--model.extra_psums", 200, "extra_psums", "all-reduce"),
)


def main() -> None:
    names = [change.name for change in CHANGES]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=4, help="trainings of each program")
    parser.add_argument("--kept-steps", type=int, default=12)
    parser.add_argument("--only", choices=names, help="this change only")
    parser.add_argument("--size", type=int, help="how large the change is")
    parser.add_argument("--keep", type=Path, help="keep everything here; go on with what is there")
    options = parser.parse_args()
    changes = [change for change in CHANGES if options.only in (None, change.name)]
    with tempfile.TemporaryDirectory() as made:
        folder = options.keep or Path(made)
        missed = [
            f"{change.name}: {what}"
            for change in changes
            for what in show(folder, change, options.size or change.size, options)
        ]
    if missed:
        sys.exit("\n".join(missed))


def show(folder: Path, change: Change, size: int, options: argparse.Namespace) -> list[str]:
    """Print what the bundle says about a change; return what it should say and does not."""

    def train(name: str, *flags: str) -> list[Path]:
        runs = [folder / f"{name}_{at + 1}" for at in range(options.runs)]
        return [take_capture(run, *flags, kept_steps=options.kept_steps) for run in runs]

    before, after = train("plain"), train(change.name, change.flag, str(size))
    output = folder / f"bundle_{change.name}"
    shutil.rmtree(output, ignore_errors=True)  # an old one would be taken for the new one
    code = bundle(before, after, output, folder / "history.jsonl", change.name)
    if not output.exists():
        return [f"no bundle, exit code {code}"]
    report = (output / "compare_report.md").read_text()
    print(f"== {change.name}\n\n{report.partition(HEAD)[0].rstrip()}\n", flush=True)
    compared, judged = (
        json.loads((output / f"{n}.json").read_text()) for n in ("compare", "track")
    )
    return [what for what, holds in checks(change, compared, judged, code) if not holds]


def bundle(before: list[Path], after: list[Path], output: Path, history: Path, label: str) -> int:
    """`marin-profile bundle`; its exit code."""
    command = [sys.executable, "-m", "marin_profile", "bundle"]
    for side, runs in (("before", before), ("after", after)):
        for run in runs:
            command += [f"--{side}-profile-dir", str(run)]
    command += ["--output-dir", str(output), "--history", str(history), "--label", label]
    return subprocess.run(command).returncode


def checks(
    change: Change, compared: dict[str, Any], judged: dict[str, Any], code: int
) -> list[tuple[str, bool]]:
    """What must hold of compare.json, track.json and the exit code."""
    split = compared["attribution"]
    region, op = (split[name]["rows"][0] for name in ("regions", "ops"))
    lines = [
        (f"exit code {code} instead of 1", code == 1),
        (f"verdict {judged['status']} instead of fail", judged["status"] == "fail"),
        (f"{judged['confidence']} instead of confirmed", judged["confidence"] == "confirmed"),
        (f"region {region['name']} comes first", change.region in region["name"]),
        ("the region takes less time than before", region["delta"] > 0),
    ]
    if change.collective is not None:
        collective = max(compared["collectives"], key=lambda row: abs(row["exposed"]["delta"]))
        added = op["after_op"] or {"category": None, "scope": ""}
        lines += [
            (f"op {op['name']} comes first", added["category"] == change.collective),
            (f"its scope is {added['scope']}", change.region in added["scope"]),
            (f"{collective['collective']} leads", collective["collective"] == change.collective),
        ]
    return lines


if __name__ == "__main__":
    main()
