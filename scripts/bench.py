"""Speed and memory, the verdict's operating curve and false alarms, the callback's cost.

Usage: python scripts/bench.py ratios [--events 3000000] [--xprof-python P] [--peer-python P]
       python scripts/bench.py events [--sizes 100000 300000 1000000 3000000 10000000]
       python scripts/bench.py cold [--events 3000000] [--repeat 3] [--beside SRC]
       python scripts/bench.py verdict [--runs 20000] [--seed 1]
       python scripts/bench.py sequential [--runs 100000] [--seed 1]
       python scripts/bench.py sweeps [--runs 2000] [--seed 1]
       python scripts/bench.py bisects [--runs 200] [--seed 1]
       python scripts/bench.py hosts [--hosts 8 16 32 64] [--events 1000000]
       python scripts/bench.py pod [--hosts 1024] [--jobs 2]
       python scripts/bench.py callback [--captures 4] [--end]
       python scripts/bench.py step
       python scripts/bench.py page [--rows 5000] [--devices 1000]
       python scripts/bench.py soak [--captures 1000] [--ingest-in {subprocess,thread,off}]
       python scripts/bench.py repeats [--only {same,changed}] [--pairs 20] [--size 4] [--keep DIR]

`verdict` is described in bench_verdict.py, and so on; the files that speed is measured on in
bench_inputs.py.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import bench_bisects
import bench_callback
import bench_cold
import bench_events
import bench_hosts
import bench_page
import bench_ratios
import bench_repeats
import bench_sequential
import bench_soak
import bench_step
import bench_sweeps
import bench_verdict

Arguments = Callable[[argparse.ArgumentParser], None]
Bench = Callable[[argparse.Namespace], None]

VERBS: dict[str, tuple[str, Arguments, Bench]] = {
    "ratios": (
        "beside XProf, marin.profiling and floors",
        bench_ratios.add_arguments,
        bench_ratios.bench_ratios,
    ),
    "events": (
        "time per event by the number of events",
        bench_events.add_arguments,
        bench_events.bench_events,
    ),
    "cold": (
        "the first run on a machine, and the next",
        bench_cold.add_arguments,
        bench_cold.bench_cold,
    ),
    "verdict": (
        "simulated false alarms, power and coverage",
        bench_verdict.add_arguments,
        bench_verdict.bench_verdict,
    ),
    "sequential": (
        "simulated looks after every pair",
        bench_sequential.add_arguments,
        bench_sequential.bench_sequential,
    ),
    "sweeps": (
        "simulated experiments with several arms",
        bench_sweeps.add_arguments,
        bench_sweeps.bench_sweeps,
    ),
    "bisects": (
        "simulated searches for a slower commit",
        bench_bisects.add_arguments,
        bench_bisects.bench_bisects,
    ),
    "hosts": (
        "speed and memory by hosts and processes",
        bench_hosts.add_arguments,
        bench_hosts.bench_hosts,
    ),
    "pod": (
        "a summary and a page of 1,024 hosts",
        bench_hosts.add_pod_arguments,
        bench_hosts.bench_pod,
    ),
    "callback": (
        "what a training notices of its callback",
        bench_callback.add_arguments,
        bench_callback.bench_callback,
    ),
    "step": (
        "what a step outside all windows costs",
        bench_step.add_arguments,
        bench_step.bench_step,
    ),
    "page": (
        "how fast pages with many rows are",
        bench_page.add_arguments,
        bench_page.bench_page,
    ),
    "soak": (
        "whether anything grows over many captures",
        bench_soak.add_arguments,
        bench_soak.bench_soak,
    ),
    "repeats": (
        "the verdict on real captures",
        bench_repeats.add_arguments,
        bench_repeats.bench_repeats,
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name, (says, add_arguments, bench) in VERBS.items():
        verb = verbs.add_parser(name, help=says)
        add_arguments(verb)
        verb.set_defaults(run=bench)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
