"""A command for experiments, in plain Python: it leaves the capture that was made for this run.

`python -I -S experiment_arm.py SCRIPTED [OPTIONS...]`: SCRIPTED holds `<run>.xplane.pb` for each
run, by the name of its folder without the attempt, and gets a line in `times` when it begins and
when it ends.
"""

import os
import pathlib
import shutil
import sys
import time

scripted, options = pathlib.Path(sys.argv[1]), sys.argv[2:]
out = pathlib.Path(os.environ["MARIN_PROFILE_OUT"])
run = out.name if out.name != "out" else out.parent.name
number, arm = run.split("-")[:2]


def tell(what):
    with open(scripted / "times", "a") as times:
        times.write(f"{time.monotonic()} {what} {run}\n")


tell("begins")
print("token", os.environ.get("TOKEN"), flush=True)
if "--fail" in options or f"--fail-in={number}" in options:
    sys.exit("ValueError: no such flag")
if "--hang" in options:
    time.sleep(600)
if "--wait" in options:
    while not (scripted / "go_on").exists():
        time.sleep(0.02)
folder = out / "plugins" / "profile" / "2026_01_02_03_04_05"
if "--nothing" not in options:
    folder.mkdir(parents=True)
    source = scripted / f"{number}-{arm}.xplane.pb"
    if "--read" in options:  # how long its steps are, from a file in its folder
        source = scripted / f"{number}-{pathlib.Path('which').read_text().strip()}.xplane.pb"
    shutil.copy(source, folder / "h.xplane.pb")
if "--torn" in options:
    os.truncate(folder / "h.xplane.pb", 100)
tell("ends")
