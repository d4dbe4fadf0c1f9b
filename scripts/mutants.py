"""Do the tests notice when the numeric core is changed? Mutate it, and run its tests.

Usage: python scripts/mutants.py [MODULE ...] [--sample 50] [--seed 1] [--jobs 2]

Each mutant is one small change (an operator, a comparison, a number, a condition) that cosmic-ray
makes to one module. The sample is drawn with the seed, in an order that does not depend on its
size: a small round is the beginning of a large one. A mutant is killed if a test fails or the time
runs out. Mutants that mean the same as the code are listed, each with the reason, in
`tests/equivalent_mutants.toml`, or known by their kind (`_same_by_its_kind`); they are drawn,
printed and not counted. Exit status 1: less than LEAST_KILLED of a module's other mutants died, or
of all modules' where the sample is smaller than LEAST_SAMPLE.

Left out: annotations, decorators (jit, dataclass), messages of errors, `is` for `==`, and what does
not compile.

The tests run without compiled loops: a compiled caller would keep the unchanged callee.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import os
import random
import re
import signal
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path

os.environ["MARIN_PROFILE_LOOPS"] = "plain"
os.environ["NUMBA_DISABLE_JIT"] = "1"

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "marin_profile"
LEAST_KILLED = 0.95
LEAST_SAMPLE = 50
# A mutant may loop for ever: it is killed after so many times what the tests take without one.
PATIENCE = 10
LEAST_TIMEOUT_SECONDS = 20.0
EQUIVALENT = ROOT / "tests" / "equivalent_mutants.toml"
KILLED, SURVIVED = "killed", "survived"
# The `*` and `/` between the parameters of a signature, which cosmic-ray takes for operators.
_SIGNATURES = ("parameters", "lambdef")
_LEFT_OUT = ("RemoveDecorator", "VariableReplacer", "VariableInserter", "ExceptionReplacer")

# What is mutated, and the tests that must notice; the narrowest come first, for they end a run.
_WHOLE = ("tests/analysis", "tests/pipeline", "tests/assemble", "tests/test_snapshots.py")
MODULES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "intervals": (("base/intervals.py",), ("tests/base/test_intervals.py",)),
    "host_account": (("analysis/host_account.py",), ("tests/analysis/test_host_account.py",)),
    "ledger": (
        ("analysis/ledger.py", "analysis/ownership.py"),
        ("tests/analysis/test_ledger.py", "tests/analysis/test_ownership.py"),
    ),
    "gaps": (
        ("analysis/gaps.py", "analysis/transfers.py"),
        ("tests/analysis/test_gaps.py", "tests/analysis/test_transfers.py"),
    ),
    "classify": (
        ("events/classify.py", "events/shapes.py"),
        ("tests/events/test_classify.py", "tests/events/test_shapes.py", "tests/analysis"),
    ),
    "steps": (
        ("analysis/steps/*.py", "analysis/host_activity.py"),
        ("tests/analysis/steps", *_WHOLE),
    ),
    "collectives": (
        ("analysis/collectives*",),
        (
            "tests/analysis/test_collectives.py",
            "tests/analysis/test_collectives_over_hosts.py",
            "tests/analysis/test_collectives_oracle.py",
            "tests/analysis/test_alignment.py",
            "tests/analysis/test_stragglers.py",
        ),
    ),
    "costs": (("analysis/costs.py",), ("tests/analysis/test_costs.py",)),
    "roofline": (("analysis/roofline*",), ("tests/analysis/test_roofline.py",)),
    "verdict": (
        (
            "verdict/patterns.py",
            "verdict/memory.py",
            "verdict/series.py",
            "verdict/estimate.py",
            "verdict/rules.py",
            "verdict/quantities.py",
        ),
        (
            "tests/verdict/test_patterns.py",
            "tests/verdict/test_memory.py",
            "tests/verdict/test_series.py",
            "tests/verdict/test_quantities.py",
            "tests/verdict/test_rules.py",
            "tests/verdict/test_estimate.py",
            "tests/verdict/test_checks.py",
        ),
    ),
    "assemble": (("assemble/*.py",), ("tests/assemble", "tests/pipeline", *_WHOLE)),
}


@dataclass(frozen=True)
class Mutant:
    """The n-th place (`occurrence`) where an operator of cosmic-ray can change a file."""

    path: Path
    operator: str
    occurrence: int
    line: int

    def code(self) -> str:
        changed = mutate_code(self.path.read_text(), get_operator(self.operator)(), self.occurrence)
        if changed is None:
            raise RuntimeError(f"{self} changes nothing")
        return str(changed)

    def change(self) -> tuple[str, str]:
        """The lines that were there, and those that take their place."""
        lines = list(
            difflib.unified_diff(
                self.path.read_text().splitlines(), self.code().splitlines(), n=0, lineterm=""
            )
        )[2:]
        was, becomes = (
            "\n".join(line[1:].strip() for line in lines if line.startswith(sign)) for sign in "-+"
        )
        return was, becomes

    def __str__(self) -> str:
        was, becomes = self.change()
        where = f"{self.path.relative_to(ROOT)}:{self.line}"
        return f"{where} ({self.operator.removeprefix('core/')})\n- {was}\n+ {becomes}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=", ".join(MODULES))
    parser.add_argument("--sample", type=int, default=50, help="mutants per module")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    unknown = set(options.modules) - MODULES.keys()
    if unknown:
        parser.error(f"no module {', '.join(sorted(unknown))}; choose from {', '.join(MODULES)}")
    _load_test_tools()
    rounds = [
        _round(name, options.sample, options.seed, options.jobs)
        for name in options.modules or MODULES
    ]
    whole = tuple(sum(counts) for counts in zip(*rounds, strict=True))
    print(f"all: {whole[0]} of {whole[1]} killed")
    judged = rounds if options.sample >= LEAST_SAMPLE else [whole]
    return 0 if all(killed >= LEAST_KILLED * tried for killed, tried in judged) else 1


def _round(name: str, size: int, seed: int, jobs: int) -> tuple[int, int]:
    """How many mutants died, of how many."""
    patterns, tests = MODULES[name]
    files = [
        file
        for pattern in patterns
        for path in sorted(SOURCE.glob(pattern))
        for file in ([path] if path.suffix == ".py" else sorted(path.glob("*.py")))
    ]
    tests = tuple(dict.fromkeys(test for test in tests if (ROOT / test).exists()))
    begin = time.monotonic()
    if _run_tests(tests, None, timeout=float("inf")) == KILLED:
        raise SystemExit(f"{name}: its tests fail without a mutation")
    timeout = max(PATIENCE * (time.monotonic() - begin), LEAST_TIMEOUT_SECONDS)
    every = [mutant for file in files for mutant in find_mutants(file)]
    random.Random(f"{seed} {name}").shuffle(every)
    chosen, same = _draw(every, size)
    begin = time.monotonic()
    with ThreadPoolExecutor(jobs) as pool:
        outcomes = list(pool.map(lambda mutant: _run_tests(tests, mutant, timeout), chosen))
    survivors = [
        mutant for mutant, outcome in zip(chosen, outcomes, strict=True) if outcome == SURVIVED
    ]
    killed = len(chosen) - len(survivors)
    share = killed / len(chosen) if chosen else 1.0
    print(
        f"{name}: {killed} of {len(chosen)} killed ({100 * share:.1f} %), {len(same)} equivalent; "
        f"{len(every)} mutants in {len(files)} files; {time.monotonic() - begin:.0f} s"
    )
    for mutant, reason in same:
        print(f"  equivalent, {reason}: {mutant}".replace("\n", "\n    "))
    for mutant in survivors:
        print(f"  survived: {mutant}".replace("\n", "\n    "))
    sys.stdout.flush()
    return killed, len(chosen)


def _draw(every: Sequence[Mutant], size: int) -> tuple[list[Mutant], list[tuple[Mutant, str]]]:
    """The first mutants to be tried, and the equivalent ones among them with the reason."""
    reasons = _known_equivalents()
    chosen: list[Mutant] = []
    same: list[tuple[Mutant, str]] = []
    for mutant in every:
        if len(chosen) == size:
            break
        if not _compiles(mutant.code()):
            continue
        change = mutant.change()
        reason = reasons.get((mutant.path.relative_to(SOURCE).as_posix(), *change))
        reason = reason or _same_by_its_kind(mutant.operator, *change)
        if reason is None:
            chosen.append(mutant)
        else:
            same.append((mutant, reason))
    return chosen, same


def _compiles(code: str) -> bool:
    try:
        compile(code, "", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


def _same_by_its_kind(operator: str, was: str, becomes: str) -> str | None:
    """Why all such mutants mean the same as the code."""
    if operator.endswith(("_BitAnd_Mul", "_BitOr_Add")):
        return "of conditions, and the code has & and | for these and for sets only"
    if operator.endswith("_USub_Invert") and re.search(r"key=lambda .*~[a-z]", becomes):
        return "a key to sort by: of whole numbers ~n is -n - 1, the same order"
    if was.replace("strict=True", "strict=False") == becomes.replace("strict=True", "strict=False"):
        return "zip's check of lengths that are equal"
    return None


def _known_equivalents() -> dict[tuple[str, str, str], str]:
    """(file, lines, lines in their place) -> the reason."""
    if not EQUIVALENT.exists():
        return {}
    listed = tomllib.loads(EQUIVALENT.read_text())["mutant"]
    return {(row["file"], row["was"], row["becomes"]): row["reason"] for row in listed}


def find_mutants(path: Path) -> Iterator[Mutant]:
    """Every mutant of a file that a test could tell from it."""
    source = path.read_text()
    tree = get_ast(source)
    hidden = list(_untestable(ast.parse(source)))
    for name in operator_names():
        if _is_left_out(name.rpartition("/")[2]):
            continue
        operator = get_operator(name)()
        places = (
            (start, node.parent is not None and node.parent.type in _SIGNATURES)
            for node in ast_nodes(tree)
            for start, _ in operator.mutation_positions(node)
        )
        for occurrence, (start, is_of_signature) in enumerate(places):
            is_hidden = any(first <= start < last for first, last in hidden)
            if not is_hidden and not is_of_signature:
                yield Mutant(path, name, occurrence, start[0])


def _is_left_out(operator: str) -> bool:
    return operator in _LEFT_OUT or operator.endswith(("_Is", "_IsNot"))


def _untestable(tree: ast.Module) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """(start, end) of what no test reads: annotations, decorators, messages of errors."""
    for node in ast.walk(tree):
        for part in _parts_not_run(node):
            if part is not None:
                end = (part.end_lineno or 0, part.end_col_offset or 0)
                yield (part.lineno, part.col_offset), end


def _parts_not_run(node: ast.AST) -> Sequence[ast.expr | ast.stmt | None]:
    match node:
        case ast.AnnAssign() | ast.arg():
            return [node.annotation]
        case ast.FunctionDef():
            return [node.returns, *node.decorator_list]
        case ast.ClassDef():
            return node.decorator_list
        case ast.Raise() | ast.Assert():
            return [node]
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return [node]
        # A type alias such as `Window = tuple[int, int]`.
        case ast.Assign(value=ast.Subscript(value=ast.Name(id="tuple" | "list" | "dict"))):
            return [node]
        case ast.Assign(value=ast.Subscript(value=ast.Name(id="Callable" | "NDArray"))):
            return [node]
        case _:
            return []


# --- one run, in a process of its own ------------------------------------------------------------


def _load_test_tools() -> None:
    """Imported once, so that each run starts with a fork; nothing of ours among it."""
    import hypothesis  # noqa: F401
    import msgspec  # noqa: F401
    import numba  # noqa: F401
    import pydantic  # noqa: F401
    import pytest  # noqa: F401
    import syrupy  # noqa: F401


def _run_tests(tests: Sequence[str], mutant: Mutant | None, timeout: float) -> str:
    code = mutant.code() if mutant else None
    pid = os.fork()
    if not pid:
        os._exit(_in_child(tests, mutant.path if mutant else None, code))
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return SURVIVED if status == 0 else KILLED
        time.sleep(0.05)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return KILLED


def _in_child(tests: Sequence[str], path: Path | None, code: str | None) -> int:
    try:
        os.setpgid(0, 0)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nowhere, stream)
        os.chdir(ROOT)
        sys.dont_write_bytecode = True
        sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
        if path is not None and code is not None:
            sys.meta_path.insert(0, _Mutated(path, code))
        import pytest

        quiet = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header"]
        seeded = ["--hypothesis-profile=no_shrinking"]
        return int(pytest.main([*quiet, *seeded, "-m", "not slow and not long", *tests]))
    except BaseException:
        return 1


class _Mutated(MetaPathFinder):
    """Gives one module a changed source; all others come from where they lie."""

    def __init__(self, path: Path, code: str) -> None:
        self._path = path
        self._code = code

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if not name.startswith("marin_profile"):
            return None
        spec = PathFinder.find_spec(name, path)  # type: ignore[arg-type]
        if spec is None or spec.origin is None or Path(spec.origin) != self._path:
            return None
        spec.loader = _FromText(name, spec.origin, self._code)
        return spec


class _FromText(SourceFileLoader):
    def __init__(self, name: str, path: str, code: str) -> None:
        super().__init__(name, path)
        self._code = code

    def get_code(self, fullname: str) -> object:  # type: ignore[override]
        return compile(self._code, self.path, "exec", dont_inherit=True)


if __name__ == "__main__":
    sys.exit(main())
