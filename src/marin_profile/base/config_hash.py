"""Whether two runs train the same: a hash of the whole training config.

Contract
* In it are model, data, optimizer, trainer and whatever else the config holds. Not in it are what
  differs between repeats: the run's and the process's ids, the code's commit, where files are
  written or looked for (`*_dir`, `*_path`, uploads), and the settings of trackers and profilers.
* Of a value that is an absolute path of this machine the last part counts.
* It is the same before and after W&B, which drops fractions of zero and empty mappings.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

_LEFT_OUT = frozenset(
    (
        *("tracker", "wandb", "profiler", "distributed", "ray"),
        *("run_id", "git_commit", "git_dirty", "git_tree_hash"),
        *("initialize_from", "hf_upload", "peft_hf_upload", "merged_hf_upload"),
    )
)
_ID_OF = ("", "trainer")  # below data, an id names what is trained on
_PLACES = ("_dir", "_path")
_DIGITS = 16


def config_hash(config: Mapping[str, Any]) -> str:
    """The first 16 hex digits of the sha256 of the sorted-key JSON of what counts."""
    text = json.dumps(_what_counts(config), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _what_counts(value: Any, below: str = "") -> Any:
    if isinstance(value, Mapping):
        return {
            str(key): _what_counts(inner, str(key))
            for key, inner in value.items()
            if not (_is_left_out(str(key), below) or (isinstance(inner, Mapping) and not inner))
        }
    if isinstance(value, list | tuple):
        return [_what_counts(inner, below) for inner in value]
    if isinstance(value, str) and value.startswith("/"):
        return value.rstrip("/").rpartition("/")[2]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _is_left_out(key: str, below: str) -> bool:
    return key in _LEFT_OUT or key.endswith(_PLACES) or (key == "id" and below in _ID_OF)


__all__ = ["config_hash"]
