"""JAX profiles as one typed summary, and views of it.

The names below are the public surface. They are loaded on first use, so that importing the
package (and reading a summary) needs neither numpy nor numba.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from marin_profile.comparison import Comparison, compare
    from marin_profile.opened import Profile
    from marin_profile.opened import open as open
    from marin_profile.pipeline import SummarizeOptions, summarize, summarize_capture
    from marin_profile.profiled import profile
    from marin_profile.profiling.config import ProfileOptions, ProfilerConfig, Window
    from marin_profile.profiling.loops import profile_window
    from marin_profile.profiling.stepper import profiler
    from marin_profile.queries import answer, list_queries
    from marin_profile.reports.comparison import render_comparison
    from marin_profile.reports.report import render_markdown
    from marin_profile.reports.verdict import render_change
    from marin_profile.schema import ProfileSummary, load_summary
    from marin_profile.tracking import track
    from marin_profile.verdict import assess

_HOMES = {
    "Comparison": "marin_profile.comparison",
    "Profile": "marin_profile.opened",
    "ProfileOptions": "marin_profile.profiling.config",
    "ProfileSummary": "marin_profile.schema",
    "ProfilerConfig": "marin_profile.profiling.config",
    "SummarizeOptions": "marin_profile.pipeline",
    "Window": "marin_profile.profiling.config",
    "answer": "marin_profile.queries",
    "assess": "marin_profile.verdict",
    "compare": "marin_profile.comparison",
    "list_queries": "marin_profile.queries",
    "load_summary": "marin_profile.schema",
    "open": "marin_profile.opened",
    "profile": "marin_profile.profiled",
    "profile_window": "marin_profile.profiling.loops",
    "profiler": "marin_profile.profiling.stepper",
    "render_change": "marin_profile.reports.verdict",
    "render_comparison": "marin_profile.reports.comparison",
    "render_markdown": "marin_profile.reports.report",
    "summarize": "marin_profile.pipeline",
    "summarize_capture": "marin_profile.pipeline",
    "track": "marin_profile.tracking",
}

# Without `open`: an import of all names must not take the place of Python's own.
__all__ = [
    "Comparison",
    "Profile",
    "ProfileOptions",
    "ProfileSummary",
    "ProfilerConfig",
    "SummarizeOptions",
    "Window",
    "__version__",
    "answer",
    "assess",
    "compare",
    "list_queries",
    "load_summary",
    "profile",
    "profile_window",
    "profiler",
    "render_change",
    "render_comparison",
    "render_markdown",
    "summarize",
    "summarize_capture",
    "track",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from marin_profile.version import package_version

        value: Any = package_version()
    elif name in _HOMES:
        from importlib import import_module

        value = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_HOMES})
