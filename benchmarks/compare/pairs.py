"""Statistics of paired measurements, the same as in core/metrics/statistics.hpp."""

import math
import statistics


def median_interval(samples, confidence=0.95):
    """Order-statistic interval of the median (Le Boudec 2010, theorem 2.1): the narrowest symmetric pair of ranks whose coverage is at
    least `confidence`; None for too few samples (under 6 for 95 %)."""
    ordered = sorted(samples)
    n = len(ordered)
    best = None
    for lower in range(n // 2):  # 0-based rank; its counterpart is n - 1 - lower
        covered = 1 - 2 * sum(math.comb(n, k) for k in range(lower + 1)) / 2**n
        if covered >= confidence:
            best = (ordered[lower], ordered[n - 1 - lower])
    return best


def paired_ratio(numerators, denominators):
    """Ratio within each pair, so that what both sides of a pair share cancels: (median, interval or None, all ratios)."""
    ratios = [a / b for a, b in zip(numerators, denominators, strict=True)]
    return statistics.median(ratios), median_interval(ratios), ratios
