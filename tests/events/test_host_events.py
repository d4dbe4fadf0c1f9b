"""Names as JAX, PJRT, XLA and libtpu write them."""

import pytest

from marin_profile.events.host_events import kind_of_host_event, launched_function, purpose_of


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("backend_compile_and_load", "compile"),
        ("XlaCompile", "compile"),
        ("PjRtCpuClient::Compile", "compile"),
        ("lower_sharding_computation", "compile"),
        ("np.asarray(jax.Array)", "device_read"),
        ("CopyToHostAsync", "device_read"),
        ("DevicePutWithSharding", "device_write"),
        ("batched_device_put", "device_write"),
        ("H2D Dispatch", "device_write"),
        ("D2H Dispatch", "device_read"),
        ("CommonPjRtBuffer::Await", "device_wait"),
        ("PjitFunction(train_step)", "dispatch"),
        ("CommonPjRtLoadedExecutable::Execute (jit_train_step)", "dispatch"),
        ("CommonPjRtLoadedExecutable::ExecuteHelperOnSingleDevice", "dispatch"),
        ("Wait for LaunchOnDevice completion", "dispatch"),
        ("shard_args", "dispatch"),
        ("ParseArguments", "dispatch"),
        ("DoEnqueueProgram", "dispatch"),
        ("cuLaunchKernel", "dispatch"),
        ("$train.py:12 main", "python_frame"),
        ("$api.py:3154 block_until_ready", "device_wait"),
        ("$array.py:631 _value", "device_read"),
        ("load_batch", "host_event"),
        ("save_checkpoint", "host_event"),
        ("evaluate", "host_event"),
        ("executive_summary", "host_event"),
        ("compiled_batches", "host_event"),
        ("compare", "host_event"),
    ],
)
def test_kinds(name, kind):
    assert kind_of_host_event(name) == kind


def test_the_function_of_a_launch():
    assert launched_function("PjitFunction(train_step)") == "train_step"
    assert launched_function("PjitFunction(<lambda>)") == "<lambda>"
    assert launched_function("Execute") is None


@pytest.mark.parametrize(
    ("name", "purpose"),
    [
        ("load_batch", "load"),
        ("DataLoader.__next__", "load"),
        ("$loader.py:33 __next__", "load"),
        ("get tokens", "load"),
        ("save_checkpoint", "save"),
        ("CheckpointManager.save", "save"),
        ("save_batch", "save"),
        ("eval_step", "evaluate"),
        ("validation_data", "evaluate"),
        ("log_metrics", "log"),
        ("WandbTracker", "log"),
        # Words, not parts of them.
        ("compute_logits", ""),
        ("overloaded", ""),
        ("iterate", ""),
        ("train_step", ""),
        ("", ""),
    ],
)
def test_what_people_mean_by_a_name(name: str, purpose: str) -> None:
    assert purpose_of(name) == purpose
