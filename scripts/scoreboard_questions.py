"""The questions of the scoreboard, as people word them, and the names that they use per capture.

They were written before the router of this package was looked at, and stay as they are: a question
that is answered wrongly is a result, not a mistake of the list.
"""

from __future__ import annotations

from dataclasses import dataclass

CPU = "cpu_8dev"
TPU = "tpu_v6e_4dev"
SERVING = "tpu_vllm_serving"
MI300X = "gpu_mi300x_gemm"
GTX = "gpu_gtx1080ti"
MADE = "made"
CAPTURES = (CPU, TPU, SERVING, MI300X, GTX, MADE)


@dataclass(frozen=True)
class Question:
    key: str
    kind: str
    text: str

    def words(self, capture: str) -> str:
        """The question as it is put over one capture."""
        return self.text.format_map(NAMES[capture])


NAMES: dict[str, dict[str, str]] = {
    CPU: {"op": "wrapped_tanh", "region": "mlp_up", "program": "jit_f", "bound": "ynn_fusion.1"},
    TPU: {
        "op": "copy-done.4",
        "region": "add",
        "program": "jit_f",
        "bound": "broadcast_add_fusion.1",
    },
    SERVING: {
        "op": "RPA-bq_32-bkvp_32-p_128-.19",
        "region": "self_attn",
        "program": "jit_step_fun",
        "bound": "RPA-bq_32-bkvp_32-p_128-.19",
    },
    MI300X: {
        "op": "wrapped_broadcast",
        "region": "dot_general",
        "program": "jit_convert_element_type",
        "bound": "wrapped_broadcast",
    },
    GTX: {
        "op": "loop_add_multiply_fusion",
        "region": "reactant_fn",
        "program": "reactant_fn",
        "bound": "loop_add_multiply_fusion",
    },
    MADE: {
        "op": "fusion.2",
        "region": "optimizer",
        "program": "jit_eval_step",
        "bound": "fusion.3",
    },
}


def _kind(kind: str, **texts: str) -> tuple[Question, ...]:
    return tuple(Question(key, kind, text) for key, text in texts.items())


QUESTIONS: tuple[Question, ...] = (
    *_kind(
        "step time",
        step="how long is a step?",
        step_mean="whats the mean time per step in ms",
        step_count="how many steps did we capture?",
        step_slowest="which step was the slowest, and how long did it take?",
        step_usual="ignoring hiccups, what does a usual step take?",
    ),
    *_kind(
        "top ops",
        top3="top 3 ops by time",
        top_typo="wich ops are teh slowest",
        top_one="what is the single most expensive kernel?",
        top_not_comm="most expensive op, collectives not counted",
    ),
    *_kind(
        "op by name",
        op_total="how long does {op} take in total?",
        op_step="how much time is spent in {op} per step?",
        op_count="how many times does {op} run?",
        op_mean="average duration of one {op}",
        op_share="what percentage of the device time is {op}?",
        op_source="where in the code does {op} come from?",
        op_none="how much time is spent in flash_attention_kernel?",
        op_none_typo="total time of the op ragged_conv_fusion.77 plz",
    ),
    *_kind(
        "ledger",
        idle="what share of the time are the devices idle?",
        compute="how much of the time is compute?",
        not_compute="how much of the device time is NOT compute?",
        exposed="how much time goes to communication that nothing hides?",
        largest="what takes most of the device time: compute, communication, transfers or idle?",
        host_transfer="what share of the time do devices wait for copies to or from the host?",
    ),
    *_kind(
        "collectives",
        ar_exposed="how much of the all-reduce is exposed and how much is hidden behind compute?",
        ag_overlap="how much all-gather time is overlapped by compute?",
        by_kind="exposed communication per step by kind of collective",
        ar_step="time per step in all reduce, in milliseconds",
        ar_total="all-reduce time summed over all devices",
        ar_count="how many all-reduces are there per step?",
        ar_bytes="how many bytes are all-reduced per step?",
        ar_bandwidth="what bus bandwidth does the all-reduce get?",
        biggest="whats the biggest collective",
        rs_none="how much time do we spend in reduce-scatter?",
    ),
    *_kind(
        "transfers",
        d2h_bytes="how many bytes are copied from device to host in each step?",
        memcpy="how much time do memory copies take in total?",
    ),
    *_kind(
        "gaps and idle",
        why_idle="why are the devices idle?",
        longest_gap="what is the longest gap on a device, and which op comes after it?",
        between="how long do the devices sit idle between two steps?",
    ),
    *_kind(
        "compiles and launches",
        recompile="did anything get recompiled while we profiled?",
        kernels="how many kernels ran on device 0?",
    ),
    *_kind(
        "stragglers",
        slower="is one device slower than the others?",
        waited_for="which device do the others wait for?",
        lost="how much time per step is lost to waiting for the slowest device? "
        "dont include the wire time",
    ),
    *_kind(
        "regions",
        part="which part of the model takes the most time?",
        region="how much time is spent in {region}?",
        backward="how long does the backward pass take per step?",
        remat="how much time do we lose to rematerialisation?",
        region_none="time in layer_99/attention",
    ),
    *_kind(
        "programs",
        programs="which programs ran and how often?",
        program_call="how long does one call of {program} take?",
        evaluation="how much time does evaluation take in total?",
    ),
    *_kind(
        "memory",
        peak="how much memory is needed at the peak?",
        lives="what occupies the memory at its peak?",
        parameters="how much of the peak memory is parameters?",
        free="how much memory would we free if we did not keep the biggest buffer?",
        oom="how close are we to running out of memory?",
    ),
    *_kind(
        "roofline",
        bound="is {bound} compute bound or memory bound?",
        intensity="arithmetic intensity of {bound}",
        mfu="what MFU do we get?",
    ),
    *_kind(
        "what if, what to try",
        free_comm="how long would a step be if communication were free?",
        no_straggler="how much faster would a step be if the slow device were as fast as the rest?",
        try_first="what should i try first?",
    ),
    *_kind(
        "quality",
        cut="is the capture complete, or is a step cut off?",
        hardware="what hardware did this run on, and how many devices?",
    ),
    *_kind(
        "not in a capture",
        loss="what was the training loss at the end?",
        power="how many watts did the chips draw?",
        other_hardware="how long would a step take on an H100?",
        before="is this faster than yesterdays run?",
        batch="which batch size and learning rate did we use?",
    ),
)
