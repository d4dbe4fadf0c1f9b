"""Scope paths and passes."""

import pytest

from marin_profile.events.scopes import parse_scope


def scope(value: str) -> str | None:
    parsed = parse_scope(value)
    return None if parsed is None else "/".join(parsed[0])


def pass_of(value: str) -> str:
    parsed = parse_scope(value)
    assert parsed is not None
    return parsed[1]


@pytest.mark.parametrize(
    "value", ["kernel", "args[0]", "XlaModule:", "", ":", "opt_state[0].mu", "dummy"]
)
def test_what_is_no_path(value):
    assert parse_scope(value) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("jit(f)/jit(main)/add:", "jit(f)/add"),
        ("jit(f)/mlp/dot_general", "jit(f)/mlp/dot_general"),
        ("jit(f)/mlp/jit(relu)/max", "jit(f)/mlp/max"),
        ("jit(f)/pjit(inner)/add", "jit(f)/add"),
        ("jit(f)/while/body/closed_call/layer/dot", "jit(f)/layer/dot"),
        ("jit(f)/while/cond/lt", "jit(f)/lt"),
        ("jit(f)/shard_map/mlp_down/psum_invariant", "jit(f)/mlp_down/psum_invariant"),
        ("jit(f)/pallas_call/attention", "jit(f)/attention"),
        ("jit(f)/custom_vjp_call/xent", "jit(f)/xent"),
        ("jit(loss_fn)/jvp()/te_fused_attn_forward_ffi", "jit(loss_fn)/te_fused_attn_forward_ffi"),
        ("jit(f)/jvp(mlp)/dot", "jit(f)/mlp/dot"),
        ("jit(f)/transpose(jvp(mlp))/dot", "jit(f)/mlp/dot"),
        ("jit(f)/vmap(mlp)/dot", "jit(f)/mlp/dot"),
        ("jit(f)/remat(mlp)/dot", "jit(f)/mlp/dot"),
        ("jit(f)/vmap(transpose(jvp(mlp)))/dot", "jit(f)/mlp/dot"),
        ("jit(f)/jvp(jit(relu))/max", "jit(f)/max"),
        ("jit(f)/checkpoint/rematted_computation/mlp/dot", "jit(f)/mlp/dot"),
        # Calls with parentheses of their own, and slashes inside them.
        ("jit(f)/jvp(named(a/b))/dot", "jit(f)/named(a/b)/dot"),
        ("jit(f)/einsum(bi,ij->bj)/dot_general", "jit(f)/einsum(bi,ij->bj)/dot_general"),
    ],
)
def test_paths(value, expected):
    assert scope(value) == expected


def test_a_scope_of_two_names_inside_a_transformation_is_two_segments():
    parsed = parse_scope("jit(f)/transpose(jvp(layers/mlp))/dot_general")
    assert parsed is not None
    assert parsed[0] == ("jit(f)", "layers", "mlp", "dot_general")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("jit(f)/mlp/add", "other"),
        ("jit(f)/jvp(mlp)/add", "forward"),
        ("jit(f)/transpose(jvp(mlp))/add", "backward"),
        ("jit(f)/transpose(jvp())/mlp/add", "backward"),
        ("jit(f)/vmap(transpose(jvp(mlp)))/add", "backward"),
        ("jit(f)/transpose(jvp(checkpoint))/rematted_computation/mlp/add", "recompute"),
        ("jit(f)/transpose(jvp(jvp()))/checkpoint/rematted_computation/blk/tanh", "recompute"),
        ("jit(f)/transpose(jvp(mlp))/checkpoint/rematted_computation/add", "recompute"),
        ("jit(f)/optimizer/mul", "optimizer"),
        ("jit(f)/adamw/mul", "optimizer"),
    ],
)
def test_passes(value, expected):
    assert pass_of(value) == expected


def test_a_forward_checkpoint_is_forward():
    assert pass_of("jit(f)/jvp(checkpoint)/mlp/add") == "forward"


@pytest.mark.parametrize(
    "value", ["jit(f)/((((/a", "jit(f)/))))/a", "/", "//", "jit(f)/", "/".join("a" * 5000)]
)
def test_odd_text_is_harmless(value):
    parsed = parse_scope(value)
    assert parsed is None or all(parsed[0])


def test_deep_nesting_is_harmless():
    value = "jit(f)/" + "jvp(" * 2000 + "x" + ")" * 2000 + "/add"
    assert scope(value) == "jit(f)/x/add"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        # Gradients of several layers in one all-reduce: their common path, their pass.
        (
            "jit(step)/(transpose(jvp(Net))/head/dot_general:transpose(jvp(Net))/norm/reduce_sum)",
            (("jit(step)", "Net", "(combined)"), "backward"),
        ),
        (
            "jit(step)/(jvp(loss)/sum:transpose(jvp(Net))/a/dot:transpose(jvp(Net))/b/dot)",
            (("jit(step)", "(combined)"), "backward"),
        ),
        (
            "jit(step)/(jvp(a)/x:transpose(jvp(a))/x)",
            (("jit(step)", "a", "x", "(combined)"), "other"),
        ),
        # Merged ops: the first path counts, a bare name is none.
        ("jit(step)/mul;jit(step)", (("jit(step)", "mul"), "other")),
        ("kernel;jit(step)/jvp(a)/mul", (("jit(step)", "a", "mul"), "forward")),
        ("kernel;args[0]", None),
        ("jit(step)/()", (("jit(step)", "(combined)"), "other")),
    ],
)
def test_ops_that_xla_merged_or_combined(raw, expected):
    assert parse_scope(raw) == expected
