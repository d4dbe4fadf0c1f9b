"""What each edit of `hlo_pairs_programs.py` does to the compiled program, read in its text.

`kind` is "" for an edit without effect; `also` are kinds that say the same in other words. `before`
and `after` are patterns of the lines of the program's text that show the edit, "" for none on that
side; `scope` is a part of the names under which JAX traced them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import hlo_pairs_programs as programs
from hlo_pairs_programs import DEVICES, Program


@dataclass(frozen=True)
class Case:
    name: str
    edit: str
    kind: str
    build: Callable[[bool], Program]
    scope: str = ""
    before: str = ""
    after: str = ""
    also: tuple[str, ...] = ()
    devices: int = 1
    x64: bool = False


CASES = (
    Case(
        "dot_dtype",
        "the first product of the MLP in float64",
        "dtype",
        programs.dot_dtype,
        "mlp",
        before=r"= f32\[256,1024\].* dot\(.*/mlp/dot_general",
        after=r"= f64\[256,1024\].* dot\(.*/mlp/dot_general",
        x64=True,
    ),
    Case(
        "key_layout",
        "keys stored by position, and transposed",
        "layout_copy",
        programs.key_layout,
        "attend",
        after=r"/attend/transpose",
    ),
    Case(
        "remat_in_scan",
        "the blocks of a scan under jax.checkpoint",
        "remat_on",
        programs.remat_in_scan,
        after="rematted_computation",
    ),
    Case(
        "remat_removed",
        "the MLP no longer under jax.checkpoint",
        "remat_off",
        programs.remat_removed,
        "mlp",
        before="rematted_computation",
    ),
    Case(
        "donation_lost",
        "donate_argnums removed",
        "donation_lost",
        programs.donation_lost,
        after=r" copy\(%cache",
    ),
    Case(
        "scan_unrolled",
        "unroll=8",
        "loop_unrolled",
        programs.scan_unrolled,
        "recurrent",
        before=r" while\(|/cell/(dot_general|tanh)",
        after=r" while\(|/cell/(dot_general|tanh)",
    ),
    Case(
        "loop_start",
        "a loop starts from an argument, not from zeros",
        "loop_copy",
        programs.loop_start,
        before="/broadcast_in_dim",
        after=r" copy\(%start",
    ),
    Case(
        "loop_swap",
        "two carries change places in each iteration",
        "loop_copy",
        programs.loop_swap,
        "loop",
        after=r"= f32\[512,512\]\S* copy\(%get-tuple",
    ),
    Case(
        "gathered_sum",
        "psum -> all_gather and sum",
        "collective_kind",
        programs.gathered_sum,
        "combine",
        before=r" all-reduce\(",
        after=r" all-gather\(|/combine/reduce_sum",
        devices=DEVICES,
    ),
    Case(
        "split_sum",
        "one psum of two arrays -> one after the other",
        "collective_grouping",
        programs.split_sum,
        "combine",
        before=r" all-reduce\(",
        after=r" all-reduce\(",
        devices=DEVICES,
    ),
    Case(
        "kept_middle",
        "a value amid an activation is a result too",
        "fusion_split",
        programs.kept_middle,
        "activate",
        before=r" fusion\(.*/activate/",
        after=r" fusion\(.*/activate/",
    ),
    Case(
        "largest",
        "sort -> top_k",
        "kernel_replaced",
        programs.largest,
        "choose",
        before=r" sort\(",
        after="TopK",
    ),
    Case(
        "padded_hidden",
        "1,000 hidden units -> 1,280",
        "shape",
        programs.padded_hidden,
        "mlp",
        before=r" dot\(.*/mlp/|[\[,]1000[\],].*/mlp/",
        after=r" dot\(.*/mlp/|[\[,]1280[\],].*/mlp/",
    ),
    Case(
        "sum_dtype",
        "a sum in float64",
        "accumulate_dtype",
        programs.sum_dtype,
        "pool",
        before=r"= f32\[.*fusion.*/pool/reduce_sum",
        after=r"= f64\[.*fusion.*/pool/reduce_sum",
        also=("dtype",),
        x64=True,
    ),
    Case("renamed_function", "the step renamed, on other lines", "", programs.renamed_function),
    Case("argument_order", "the arguments in another order", "", programs.argument_order),
    Case("helper_extracted", "a jitted helper extracted", "", programs.helper_extracted),
    Case("renamed_scope", "a named scope renamed", "", programs.renamed_scope),
    Case("barrier", "a barrier that XLA drops", "", programs.barrier),
)
