"""Each kind of difference by the smallest programs that show it."""

from __future__ import annotations

import pytest

from hlo_text import program
from marin_profile.comparison.hlo.components import find_parts
from marin_profile.comparison.hlo.donation import donations
from marin_profile.comparison.hlo.matching import match
from marin_profile.comparison.hlo.opened import open_program
from marin_profile.comparison.hlo.rules import KINDS, kind_of
from marin_profile.comparison.hlo.rules.asked import Asked, Kind

Aliases = tuple[tuple[tuple[int, ...], int, tuple[int, ...]], ...]


def kinds(before: str, after: str, donated: tuple[Aliases, Aliases] = ((), ())) -> list[Kind]:
    one, two = (
        open_program(program(text, donated=own), ())
        for text, own in zip((before, after), donated, strict=True)
    )
    matched = match(one, two)
    moved = donations(matched)
    return [kind_of(Asked(part, one, two, moved)) for part in find_parts(matched)]


def entry(*lines: str, inside: str = "") -> str:
    return f"{inside}\nENTRY {{\n" + "\n".join(lines) + "\n}\n"


X, W = "x = f32[8,8] parameter(0)", "w = f32[8,8] parameter(1)"
DOT = "d = f32[8,8] dot(x, w) scope=jit(f)/mlp/dot_general"
END = "ROOT n = f32[8,8] negate(d)"
PLAIN = entry(X, W, DOT, END)

FUSED = """
both {
  p = f32[8] parameter(0)
  s = f32[8] sine(p)
  ROOT c = f32[8] cosine(s)
}
"""
APART = """
first {
  p = f32[8] parameter(0)
  ROOT s = f32[8] sine(p)
}
second {
  q = f32[8] parameter(0)
  ROOT c = f32[8] cosine(q)
}
"""
IN_ONE = entry("x = f32[8] parameter(0)", "ROOT f = f32[8] fusion(x) calls=both", inside=FUSED)
IN_TWO = entry(
    "x = f32[8] parameter(0)",
    "f = f32[8] fusion(x) calls=first",
    "ROOT g = f32[8] fusion(f) calls=second",
    inside=APART,
)

TURN = """
turn {
  carried = (f32[8]) parameter(0)
  x = f32[8] get-tuple-element(carried, 0)
  BODY
}
on {
  held = (f32[8]) parameter(0)
  y = f32[8] get-tuple-element(held, 0)
  ROOT less = pred[] compare(y, y)
}
ENTRY {
  a = f32[8] parameter(0)
  START
  w = (f32[8]) while(start) calls=on,turn trips=TRIPS
  ROOT out = f32[8] get-tuple-element(w, 0)
}
"""


def loop(
    *body: str, start: str = "start = (f32[8]) tuple(a)", trips: int = 8, last: str = "t1"
) -> str:
    own = "\n".join((*body, f"ROOT r = (f32[8]) tuple({last})"))
    return TURN.replace("BODY", own).replace("START", start).replace("TRIPS", str(trips))


ONCE = "t1 = f32[8] tanh(x) scope=jit(f)/cell/tanh"
TWICE = (ONCE, "t2 = f32[8] tanh(t1) scope=jit(f)/cell/tanh")
KEPT = entry(
    "x = f32[8] parameter(0)",
    "t = f32[8] tanh(x) scope=jit(f)/jvp(mlp)/tanh",
    "u = f32[8] exponential(t) scope=jit(f)/jvp(mlp)/exp",
    "ROOT g = f32[8] multiply(t, u) scope=jit(f)/transpose(jvp(mlp))/mul",
)
AGAIN = entry(
    "x = f32[8] parameter(0)",
    "t = f32[8] tanh(x) scope=jit(f)/jvp(mlp)/tanh",
    "u = f32[8] exponential(t) scope=jit(f)/jvp(mlp)/exp",
    "r = f32[8] tanh(x) scope=jit(f)/transpose(jvp(mlp))/rematted_computation/tanh",
    "ROOT g = f32[8] multiply(r, u) scope=jit(f)/transpose(jvp(mlp))/mul",
)
SUMMED = entry(
    "x = f32[8,8] parameter(0)",
    "s = f32[8,8] sine(x)",
    "r = f32[8,8] all-reduce(s) groups=0-1",
    "ROOT n = f32[8,8] negate(r)",
)
GATHERED = entry(
    "x = f32[8,8] parameter(0)",
    "s = f32[8,8] sine(x)",
    "g = f32[2,8,8] all-gather(s) groups=0-1",
    "r = f32[8,8] reduce(g)",
    "ROOT n = f32[8,8] negate(r)",
)
HALVES = entry(
    "x = f32[8,8] parameter(0)",
    "s = f32[8,8] sine(x)",
    "a = f32[4,8] slice(s) attributes=a",
    "b = f32[4,8] slice(s) attributes=b",
    "p = f32[4,8] all-reduce(a) groups=0-1",
    "q = f32[4,8] all-reduce(b) groups=0-1",
    "r = f32[8,8] concatenate(p, q)",
    "ROOT n = f32[8,8] negate(r)",
)
STARTED = entry(
    "x = f32[8,8] parameter(0)",
    "s = f32[8,8] sine(x)",
    "r = f32[8,8] all-reduce-start(s) groups=0-1",
    "e = f32[8,8] all-reduce-done(r)",
    "ROOT n = f32[8,8] negate(e)",
)
WRITTEN = entry(
    X,
    "i = s32[] parameter(2)",
    "v = f32[1,8] parameter(1)",
    "ROOT u = f32[8,8] dynamic-update-slice(x, v, i)",
)
COPIED = WRITTEN.replace(
    "ROOT u = f32[8,8] dynamic-update-slice(x,",
    "k = f32[8,8] copy(x)\nROOT u = f32[8,8] dynamic-update-slice(k,",
)
SORTED = entry(
    "x = f32[8] parameter(0)",
    "s = f32[8] sine(x)",
    "t = f32[8] sort(s)",
    "ROOT n = f32[8] negate(t)",
)
BY_LIBRARY = SORTED.replace("sort(s)", "custom-call(s) target=TopK")

ANGLE = "s = f32[8] sine(OF) scope=jit(f)/angle/sin"
INSIDE = loop("q = f32[8] constant() literal=1", ANGLE.replace("OF", "q"), "t1 = f32[8] add(x, s)")
OUTSIDE = TURN.replace("(f32[8]) while", "(f32[8], f32[8]) while").replace("TRIPS", "8")
OUTSIDE = OUTSIDE.replace(
    "BODY",
    "c = f32[8] get-tuple-element(carried, 1)\nt1 = f32[8] add(x, c)\n"
    "ROOT r = (f32[8], f32[8]) tuple(t1, c)",
)
OUTSIDE = OUTSIDE.replace(
    "START",
    f"q = f32[8] constant() literal=1\n{ANGLE.replace('OF', 'q')}\n"
    "start = (f32[8], f32[8]) tuple(a, s)",
)

CASES = {
    "dtype": (
        PLAIN,
        entry(
            X,
            W,
            "cx = f64[8,8] convert(x)",
            "cw = f64[8,8] convert(w)",
            DOT.replace("f32", "f64").replace("x, w", "cx, cw"),
            END.replace("f32", "f64"),
        ),
    ),
    "accumulate_dtype": (
        PLAIN,
        entry(
            X, W, DOT.replace("f32", "f64"), "e = f32[8,8] convert(d)", END.replace("(d)", "(e)")
        ),
    ),
    "shape": (PLAIN, PLAIN.replace("f32[8,8]", "f32[8,16]")),
    "layout_copy": (
        PLAIN,
        entry(X, W, "k = f32[8,8] copy(x)", DOT.replace("dot(x", "dot(k"), END),
    ),
    "fusion_split": (IN_ONE, IN_TWO),
    "fusion_merged": (IN_TWO, IN_ONE),
    "op_added": (PLAIN, entry(X, W, DOT, "t = f32[8,8] tanh(d)", END.replace("(d)", "(t)"))),
    "op_removed": (entry(X, W, DOT, "t = f32[8,8] tanh(d)", END.replace("(d)", "(t)")), PLAIN),
    "op_replaced": (
        entry(X, W, DOT, "t = f32[8,8] tanh(d)", END.replace("(d)", "(t)")),
        entry(X, W, DOT, "t = f32[8,8] logistic(d)", END.replace("(d)", "(t)")),
    ),
    "op_changed": (PLAIN, entry(X, W, f"{DOT} attributes=other", END)),
    "kernel_replaced": (SORTED, BY_LIBRARY),
    "remat_on": (KEPT, AGAIN),
    "remat_off": (AGAIN, KEPT),
    "collective_kind": (SUMMED, GATHERED),
    "collective_grouping": (SUMMED, HALVES),
    "sync_to_async": (SUMMED, STARTED),
    "async_to_sync": (STARTED, SUMMED),
    "loop_unrolled": (loop(ONCE), loop(*TWICE, trips=4, last="t2")),
    "loop_rolled": (loop(*TWICE, trips=4, last="t2"), loop(ONCE)),
    "loop_trips": (loop(ONCE), loop(ONCE, trips=9)),
    "loop_copy": (loop(ONCE), loop(ONCE, "k = f32[8] copy(t1)", last="k")),
    "loop_hoisted": (INSIDE, OUTSIDE),
    "loop_sunk": (OUTSIDE, INSIDE),
}


@pytest.mark.parametrize("name", CASES)
def test_the_kind(name):
    assert [kind.name for kind in kinds(*CASES[name])] == [name]


@pytest.mark.parametrize("name", CASES)
def test_nothing_differs_from_itself(name):
    before, after = CASES[name]
    assert kinds(before, before) == kinds(after, after) == []


DONATED: Aliases = (((), 0, ()),)


@pytest.mark.parametrize(
    ("before", "after", "donated", "expected"),
    [
        (WRITTEN, COPIED, (DONATED, ()), "donation_lost"),
        (COPIED, WRITTEN, ((), DONATED), "donation_gained"),
        (WRITTEN, COPIED, ((), ()), "layout_copy"),
    ],
)
def test_a_copy_because_of_donation(before, after, donated, expected):
    assert [kind.name for kind in kinds(before, after, donated)] == [expected]


def test_every_kind_that_a_rule_gives_has_a_place_in_the_order():
    assert set(CASES) | {"donation_lost", "donation_gained"} <= set(KINDS)


def test_a_loop_that_is_written_out():
    out = entry(
        "a = f32[8] parameter(0)",
        "t1 = f32[8] tanh(a) scope=jit(f)/cell/tanh",
        "ROOT t2 = f32[8] tanh(t1) scope=jit(f)/cell/tanh",
    )
    rolled = loop(ONCE, trips=2)
    assert [kind.name for kind in kinds(rolled, out)] == ["loop_unrolled"]
    assert [kind.name for kind in kinds(out, rolled)] == ["loop_rolled"]


def test_new_work_that_tears_a_fusion_is_told_by_that_work():
    third = "third {\n  r = f32[8] parameter(0)\n  ROOT t = f32[8] tanh(r)\n}\n"
    torn = entry(
        "x = f32[8] parameter(0)",
        "f = f32[8] fusion(x) calls=first",
        "h = f32[8] fusion(f) calls=third",
        "ROOT g = f32[8] fusion(h) calls=second",
        inside=APART + third,
    )
    (kind,) = kinds(IN_ONE, torn)
    assert kind == Kind("op_added", "New: tanh f32[8]; 3 ops do what 1 op did before.")


def test_what_xla_recomputes_by_itself():
    again = AGAIN.replace("/rematted_computation", "").replace("r = f32", "t.remat = f32")
    assert [kind.name for kind in kinds(KEPT, again.replace("multiply(r", "multiply(t.remat"))] == [
        "remat_on"
    ]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("dtype", "d (dot) is computed in f64, before in f32."),
        ("shape", "d (dot) makes f32[8,16], before f32[8,8]."),
        (
            "collective_kind",
            "1 x all-gather of f32[2,8,8] where 1 x all-reduce of f32[8,8] was before.",
        ),
        (
            "loop_unrolled",
            "The loop w turns 4 times, before 8 times, and does more in each turn: unrolled.",
        ),
        ("op_added", "New: tanh f32[8,8]."),
        ("fusion_split", "2 ops do what 1 op did before."),
        ("fusion_merged", "1 op does what 2 ops did before."),
        ("kernel_replaced", "Kernel TopK does what sort f32[8] did before."),
        ("layout_copy", "f32[8,8] is copied, which it was not before."),
        ("loop_copy", "f32[8] is copied in each turn of w."),
    ],
)
def test_the_sentence(name, sentence):
    assert [kind.sentence for kind in kinds(*CASES[name])] == [sentence]
