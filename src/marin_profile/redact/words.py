"""Names that identify nobody, and words that profiles are read by: never masked as words.

For a user called `max` the home folder is masked but not the word, which is also an op's name.
"""

from __future__ import annotations

from marin_profile.events.classify import BOOKKEEPING, COLLECTIVES, FAMILIES, MATMUL, TRANSFERS

SHORTEST_NAME = 3


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ACCOUNTS = _words(
    """
    admin administrator app azureuser build builder centos coder codespace conda daemon debian
    default docker ec2-user fedora github gitlab-runner guest jenkins jovyan localhost mambauser
    nobody nonroot opc ray root runner service slurm test tester ubuntu unnamed user users
    vagrant vscode work worker
    """
)
_FORMAT = _words(
    """
    args capture compute cpu cuda data device devices gpu hlo home host hosts jax jit json main
    metadata model module modules nccl null perfetto_trace pjit plugins process profile python
    rocm source stack stall steady step steps stream thread tmp tpu trace train training true
    xla xplane
    """
)
_OPCODES = _words(
    """
    abs add and async atan2 body broadcast call ceil cond conditional constant convert copy cos
    custom-call div divide domain exp fft floor forward fusion gather imag infeed iota layer log
    loop map max maximum min minimum mlp mul multiply neg not optimizer outfeed pad permute pmap
    pow power real recv reduce remat reshape reverse rng round scan scatter select send shift
    sign sin slice sort sqrt sub subtract tan tanh transpose tuple vmap while xor
    """
)


def is_common_word(name: str) -> bool:
    """Whether `name` is too short or too common to be masked as a word."""
    word = name.lower()
    return (
        len(name.encode()) < SHORTEST_NAME
        or word.isdecimal()
        or word in _ACCOUNTS
        or word in _FORMAT
        or word in _OPCODES
        or word in COLLECTIVES
        or word in TRANSFERS
        or word in BOOKKEEPING
        or any(pattern.search(word) for _, pattern in FAMILIES)
        or bool(MATMUL.search(word))
    )
