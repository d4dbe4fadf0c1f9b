"""A plan as a YAML file -> nested texts, each as it stands there: `20`, `on` and `010` are words.

PyYAML is imported here alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from marin_profile.base.errors import MissingPackageError, NotFoundError, UsageError
from marin_profile.base.text import visible

LARGEST = 1 << 20  # bytes


def texts_of(path: Path) -> Any:
    """Raises UsageError, NotFoundError, and MissingPackageError without PyYAML."""
    try:
        import yaml
    except ImportError as error:
        raise MissingPackageError(
            "A plan in a file needs PyYAML: pip install 'marin-profile[experiment]'."
        ) from error
    content = _read(path)

    class Texts(yaml.BaseLoader):
        """Of a name that stands twice the last would win, in silence."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            names: set[str | None] = set()
            for key, _ in node.value:
                name = key.value if isinstance(key.value, str) else None
                if name in names:
                    raise UsageError(
                        f"{path}, line {key.start_mark.line + 1}: {visible(key.value)} stands "
                        "twice; name each once."
                    )
                names |= {name} - {None}
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(content, Loader=Texts)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or "it cannot be read"
        raise UsageError(f"{path}{where} is no YAML: {visible(problem, 200)}.") from error
    except (RecursionError, TypeError) as error:
        raise UsageError(f"{path} is no plan: names are plain texts, nested a few deep.") from error


def _read(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST + 1)
    except FileNotFoundError as error:
        raise NotFoundError(f"There is no plan {path}; name a YAML file.") from error
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}.") from error
    if len(content) > LARGEST:
        raise UsageError(f"{path} is larger than {LARGEST:,} bytes, which no plan is.")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is no UTF-8 text.") from error
