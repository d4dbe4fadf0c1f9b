"""One capture's step lengths: what a step typically takes and takes on average, and how certain.

Contract
* `StepSeries` holds the kept steps in order of time. `sort_steps` says, for all captures together,
  which steps are combs (see `patterns`) and which are of the kind that the typical step is of.
* The typical step is a trimmed mean of the logs of the commonest kind of step, its variance Yuen's
  (1974) of the winsorised values. Slow steps are commoner than fast ones: more is trimmed above.
* The mean step weighs each comb by its share of a cycle, whatever part of one the window holds,
  and averages the rest. Strays (far from the others) are counted apart: how often they come is as
  uncertain as their number is small, also where one side happens to hold none.
* Variances allow for the memory of neighbouring steps (see `memory`); NaN where there are too few.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from marin_profile.verdict import memory
from marin_profile.verdict.patterns import Comb, Integers, best_phase, find_combs, shares
from marin_profile.verdict.student import Floats

LEAST_STEPS = 6
# Degrees of freedom of a variance that stands on h steps, trimmed ones left out, and an estimated
# phi: (h - LOST) / (1 + PHI_COST * g + STRONG_PHI_COST * g^2), g = (1 + phi) / (1 - phi). Chosen on
# the table of docs/verdict.md.
LOST = 1.0
PHI_COST = 0.15
STRONG_PHI_COST = 0.01
# A stray is this many standard deviations (by the median absolute deviation) and 10 % away.
STRAY_DEVIATIONS = 4.0
LEAST_STRAY = math.log(1.1)
MAD_TO_SD = 1.4826
# Two captures' heavy steps are one kind if their logs above the light ones differ by less than
# this share of the smaller one.
LIKE_KIND = 0.5

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class StepSeries:
    """`lengths` in microseconds, the `numbers` of the steps, and whether each is of the heavy class
    (all False without classes)."""

    lengths: Floats
    numbers: Integers
    heavy: Mask

    @staticmethod
    def of(
        lengths: Sequence[float] | Floats,
        numbers: Sequence[int] | Integers | None = None,
        heavy: Sequence[bool] | Mask | None = None,
    ) -> StepSeries:
        values = np.asarray(lengths, np.float64)
        given = np.arange(len(values)) if numbers is None else np.asarray(numbers, np.int64)
        kinds = np.zeros(len(values), np.bool_) if heavy is None else np.asarray(heavy, np.bool_)
        return StepSeries(values, given, kinds)

    @property
    def steps(self) -> int:
        return len(self.lengths)

    @cached_property
    def logs(self) -> Floats:
        return np.log(self.lengths)

    @cached_property
    def combs(self) -> tuple[Comb, ...]:
        return find_combs(self.logs, self.numbers)


@dataclass(frozen=True)
class Variance:
    """Of an estimate; NaN where it is not known."""

    value: float
    degrees_of_freedom: float


@dataclass(frozen=True)
class SortedSteps:
    """A series with its steps told apart: `own` are the combs it shows, `compared` the steps that
    the typical step is of, `kinds` a number for each step that is alike in steps of one kind."""

    series: StepSeries
    own: tuple[Comb, ...]
    compared: Mask
    kinds: Integers

    # --- the typical step ---

    @cached_property
    def _typical(self) -> Trimmed:
        return trimmed_steps(self.series.logs[self.compared])

    @property
    def typical(self) -> float:
        """The logarithm of microseconds."""
        return self._typical.mean

    def typical_variance(self, phi: float, drifts: bool) -> Variance:
        part = self._typical
        count = len(part.residuals)
        if count < LEAST_STEPS or part.counted < 2:
            return Variance(math.nan, 1.0)
        if drifts:
            slow = memory.slow_variance(part.residuals) / count * part.inflation
            return Variance(slow, float(memory.WAVES))
        factor = memory.mean_variance_factor(phi, count)
        # About a mean estimated from them, correlated values spread less than about the true mean.
        unbiased = float(part.residuals @ part.residuals) * part.inflation / (count - factor)
        return Variance(unbiased * factor / count, _freedom(part.counted - LOST, phi))

    # --- the mean step ---

    @cached_property
    def _relative(self) -> Floats:
        """Lengths as multiples of the typical step."""
        return np.exp(self.series.logs - self.typical)

    @cached_property
    def _in_comb(self) -> tuple[Mask, ...]:
        masks, left = [], np.ones(self.series.steps, np.bool_)
        for comb in self.own:
            mask = comb.holds(self.series.numbers) & left
            masks.append(mask)
            left &= ~mask
        return tuple(masks)

    @cached_property
    def _rest(self) -> Mask:
        outside = np.ones(self.series.steps, np.bool_)
        for mask in self._in_comb:
            outside &= ~mask
        return outside

    @cached_property
    def _weights(self) -> tuple[float, ...]:
        """Each comb's share of the steps; the rest has what is left."""
        return shares(self.own)

    @cached_property
    def _is_stray(self) -> Mask:
        """Among the rest."""
        return is_stray(self.series.logs[self._rest])

    @cached_property
    def core(self) -> Floats:
        """The rest without strays, in typical steps, about its mean."""
        core = self._relative[self._rest][~self._is_stray]
        return np.asarray(core - core.mean())

    @cached_property
    def strays(self) -> Floats:
        """What each stray takes more (less) than the core's mean, in typical steps."""
        rest = self._relative[self._rest]
        return np.asarray(rest[self._is_stray] - rest[~self._is_stray].mean())

    @cached_property
    def stray_excess(self) -> Floats:
        """By step of the rest, about its mean; nothing for steps of the core."""
        excess = np.zeros(self.rest_steps)
        excess[self._is_stray] = self.strays
        return np.asarray(excess - excess.mean())

    @property
    def rest_steps(self) -> int:
        return int(self._rest.sum())

    @property
    def mean(self) -> float:
        """The logarithm of microseconds."""
        parts = [float(self._relative[mask].mean()) for mask in self._in_comb]
        whole = sum(w * part for w, part in zip(self._weights, parts, strict=True))
        rest = float(self._relative[self._rest].mean())
        return self.typical + math.log(whole + (1.0 - sum(self._weights)) * rest)

    def mean_variance(self, phi: float, drifts: bool, strays: StrayRate) -> Variance:
        """Of the logarithm of the mean."""
        residuals = self.core
        count = len(residuals)
        if count < LEAST_STEPS:
            return Variance(math.nan, 1.0)
        scale = math.exp(2.0 * (self.mean - self.typical))
        share = (1.0 - sum(self._weights)) ** 2 / scale
        terms = []
        if drifts:
            slow = memory.slow_variance(residuals)
            terms.append(Variance(share * slow / count, float(memory.WAVES)))
        else:
            factor = memory.mean_variance_factor(phi, count)
            unbiased = float(residuals @ residuals) / (count - factor)
            terms.append(Variance(share * unbiased * factor / count, _freedom(count - LOST, phi)))
        if strays.count:
            terms.append(self._stray_variance(strays, share))
        for weight, mask in zip(self._weights, self._in_comb, strict=True):
            members = self._relative[mask]
            variance = float(members.var(ddof=1)) / len(members)
            terms.append(Variance(weight**2 * variance / scale, len(members) - 1.0))
        return summed(terms)

    # --- what slow steps add ---

    @property
    def slow_cost(self) -> float:
        """What combs and strays add to the mean, in typical steps."""
        core = float(self._relative[self._rest][~self._is_stray].mean())
        combs = sum(
            weight * (float(self._relative[mask].mean()) - core)
            for weight, mask in zip(self._weights, self._in_comb, strict=True)
        )
        return combs + (1.0 - sum(self._weights)) * float(self.strays.sum()) / self.rest_steps

    def slow_cost_variance(self, strays: StrayRate) -> Variance:
        terms = [
            Variance(
                weight**2 * float(self._relative[mask].var(ddof=1)) / int(mask.sum()),
                mask.sum() - 1.0,
            )
            for weight, mask in zip(self._weights, self._in_comb, strict=True)
        ]
        count = len(self.core)
        if count < LEAST_STEPS:
            return Variance(math.nan, 1.0)
        spread = float(self.core @ self.core) / (count - 1)
        terms.append(Variance(sum(self._weights) ** 2 * spread / count, count - 1.0))
        if strays.count:
            terms.append(self._stray_variance(strays, (1.0 - sum(self._weights)) ** 2))
        return summed(terms)

    def _stray_variance(self, strays: StrayRate, share: float) -> Variance:
        factor = memory.mean_variance_factor(strays.phi, self.rest_steps)
        variance = share * strays.square * factor / self.rest_steps
        return Variance(variance, 2.0 * strays.count / factor)

    # --- what neighbouring steps have in common ---

    @cached_property
    def residuals(self) -> Floats:
        """Winsorised logs about the mean of the steps of their kind."""
        whole = np.zeros(self.series.steps)
        for kind in np.unique(self.kinds):
            members = self.kinds == kind
            whole[members] = trimmed_steps(self.series.logs[members]).residuals
        return whole


@dataclass(frozen=True)
class StrayRate:
    """Over all captures: the mean over steps of a stray's square, how many strays there are, and
    how much they come together."""

    square: float
    count: int
    phi: float


def summed(terms: Sequence[Variance]) -> Variance:
    """Of independent estimates; Satterthwaite's degrees of freedom (1946)."""
    whole = sum(term.value for term in terms)
    if not whole > 0:
        return Variance(whole, sum(term.degrees_of_freedom for term in terms))
    squares = sum(term.value**2 / term.degrees_of_freedom for term in terms)
    return Variance(whole, max(1.0, whole**2 / squares))


def stray_rate(captures: Sequence[SortedSteps]) -> StrayRate:
    steps = sum(one.rest_steps for one in captures)
    square = sum(float(one.strays @ one.strays) for one in captures)
    together = [one.stray_excess for one in captures if one.rest_steps >= LEAST_STEPS]
    return StrayRate(
        square=square / steps,
        count=sum(len(one.strays) for one in captures),
        phi=memory.autocorrelation(together, prior_steps=0.0),
    )


def sort_steps(captures: Sequence[StepSeries]) -> list[SortedSteps]:
    """For captures that are compared: like steps with like."""
    distances = sorted({comb.every for one in captures for comb in one.combs})
    outside = [_outside(one, distances) for one in captures]
    heavy = [one.heavy & mask for one, mask in zip(captures, outside, strict=True)]
    classed = _have_like_kinds(captures, outside)
    keep_heavy = classed and _share(heavy, outside) > 0.5
    found = []
    for one, mask in zip(captures, outside, strict=True):
        compared = mask & (one.heavy == keep_heavy) if classed else mask.copy()
        compared[compared] = ~is_stray(one.logs[compared])
        kinds = np.zeros(one.steps, np.int64)
        for number, comb in enumerate(one.combs, 1):
            kinds[comb.holds(one.numbers) & (kinds == 0)] = 2 * number
        if classed:
            kinds += one.heavy
        found.append(SortedSteps(one, one.combs, compared, kinds))
    return found


def _outside(one: StepSeries, distances: Sequence[int]) -> Mask:
    """The steps in no comb of these distances, be they the capture's own or not."""
    own = {comb.every: comb for comb in one.combs}
    outside = np.ones(one.steps, np.bool_)
    for every in distances:
        comb = own.get(every) or best_phase(one.logs, one.numbers, every)
        outside &= ~comb.holds(one.numbers)
    # Too few are left where the distances are many or small.
    return outside if outside.sum() >= min(LEAST_STEPS, one.steps) else ~np.zeros_like(outside)


def _have_like_kinds(captures: Sequence[StepSeries], outside: Sequence[Mask]) -> bool:
    """Whether all hold light and heavy steps, and heavy ones are as much longer everywhere."""
    ratios = []
    for one, mask in zip(captures, outside, strict=True):
        light, heavy = one.logs[mask & ~one.heavy], one.logs[mask & one.heavy]
        if min(len(light), len(heavy)) < 2:
            return False
        ratios.append(float(np.median(heavy) - np.median(light)))
    return max(ratios) - min(ratios) < LIKE_KIND * min(ratios)


def _share(parts: Sequence[Mask], wholes: Sequence[Mask]) -> float:
    return sum(int(one.sum()) for one in parts) / sum(int(one.sum()) for one in wholes)


def _freedom(counted: float, phi: float) -> float:
    memory_length = (1.0 + phi) / (1.0 - phi)
    return max(counted, 0.5) / (1.0 + PHI_COST * memory_length + STRONG_PHI_COST * memory_length**2)


# --- the trimmed mean ---


@dataclass(frozen=True)
class Trimmed:
    """`mean` over the `counted` values that are not left out, the winsorised values about their own
    mean, and what their sum of squares lacks of the variance that the trimmed mean stands on."""

    counted: int
    mean: float
    residuals: Floats
    inflation: float


def is_stray(logs: Floats) -> Mask:
    middle = float(np.median(logs))
    spread = MAD_TO_SD * float(np.median(np.abs(logs - middle)))
    return np.asarray(np.abs(logs - middle) > max(STRAY_DEVIATIONS * spread, LEAST_STRAY))


def left_out(steps: int) -> tuple[int, int]:
    """How many of the shortest and of the longest steps are left out."""
    if steps < 10:
        return steps // 4, steps // 4
    return steps // 40 + 2, steps // 10 + 2


def trimmed_steps(values: Floats) -> Trimmed:
    steps = len(values)
    low, high = left_out(steps)
    counted = steps - low - high
    ordered = np.sort(values)
    # From the lowest that counts, so that equal values give exactly their value and no residual.
    base = float(ordered[low])
    winsorised = np.clip(values, base, ordered[steps - 1 - high]) - base
    return Trimmed(
        counted=counted,
        mean=base + float((ordered[low : steps - high] - base).mean()),
        residuals=winsorised - winsorised.mean(),
        inflation=steps * (steps - 1) / (counted * (counted - 1)) if counted > 1 else 1.0,
    )
