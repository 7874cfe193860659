"""How often ``detect`` alarms without a cause, and how often it finds one, over seeded series.

There is no floor to measure: the table is the evidence for the rates that the documentation
states. Weaker signals are printed as well; nothing is promised for them, as no method reaches
them at this rate of false alarms.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from benchmarks.table import Row, print_rows
from bijotel.regression import detect

STATIONARY_SERIES = 1000
STATIONARY_CALLS = 500
SHIFTED_SERIES = 200
CALLS_BEFORE = 200

Draw = Callable[[Random], float]


def poisson(mean: float) -> Draw:
    """Knuth's method; the means here are small."""
    limit = math.exp(-mean)

    def draw(random: Random) -> float:
        count, product = 0, random.random()
        while product > limit:
            count += 1
            product *= random.random()
        return count

    return draw


def normal(level: float, deviation: float) -> Draw:
    return lambda random: random.gauss(level, deviation)


def lognormal(level: float, sigma: float) -> Draw:
    return lambda random: level * random.lognormvariate(0, sigma)


def student3(level: float, scale: float) -> Draw:
    def draw(random: Random) -> float:
        chi_square = random.gammavariate(1.5, 2)
        return level + scale * random.gauss(0, 1) / math.sqrt(chi_square / 3)

    return draw


def choice(*values: float) -> Draw:
    return lambda random: random.choice(values)


FAMILIES: dict[str, Draw] = {
    "normal": normal(0, 1),
    "Poisson 0.2": poisson(0.2),
    "Poisson 1": poisson(1),
    "Poisson 5": poisson(5),
    "t3": student3(0, 1),
    "lognormal, sigma 1": lognormal(1, 1),
    "Pareto 1.5": lambda random: random.paretovariate(1.5),
    "5 with 1 % of 4": choice(4, *[5] * 99),
}


class Signal(NamedTuple):
    """A change of level."""

    name: str
    before: Draw
    after: Draw
    calls: int
    """Within how many calls after the change it is to be found."""
    promised: bool = True


SIGNALS = (
    Signal("halved: constant", choice(8), choice(4), 20),
    Signal("halved: normal, CV 0.4", normal(1, 0.4), normal(0.5, 0.2), 20),
    Signal("halved: normal, CV 0.3, then 0.6", normal(1, 0.3), normal(0.5, 0.3), 20),
    Signal("halved: Poisson 8", poisson(8), poisson(4), 20),
    Signal("halved: Poisson 20", poisson(20), poisson(10), 20),
    Signal("halved: lognormal, sigma 0.4", lognormal(1, 0.4), lognormal(0.5, 0.4), 20),
    Signal("halved: t3, scale 0.2", student3(1, 0.2), student3(0.5, 0.1), 20),
    Signal("halved: t3, scale 0.2, then 0.4", student3(1, 0.2), student3(0.5, 0.2), 20),
    Signal("5 -> 3: constant", choice(5), choice(3), 10),
    Signal("5 -> 3: 10 % one less", choice(4, *[5] * 9), choice(2, *[3] * 9), 10),
    Signal("5 -> 3: +-1", choice(4, 5, 6), choice(2, 3, 4), 10),
    Signal(
        "halved: normal, CV 0.4, then 0.8", normal(1, 0.4), normal(0.5, 0.4), 20, promised=False
    ),
    Signal("halved: normal, CV 0.6", normal(1, 0.6), normal(0.5, 0.3), 20, promised=False),
    Signal("halved: Poisson 2", poisson(2), poisson(1), 20, promised=False),
    Signal("halved: lognormal, sigma 1", lognormal(1, 1), lognormal(0.5, 1), 20, promised=False),
    Signal("5 -> 4: +-1", choice(4, 5, 6), choice(3, 4, 5), 10, promised=False),
)


def false_alarms(name: str, series: int = STATIONARY_SERIES) -> tuple[int, int]:
    """Count the series of a family in which each layer alarms: outliers, shifts."""
    outliers = shifts = 0
    for number in range(series):
        random = Random(f"{name} {number}")
        found = detect([FAMILIES[name](random) for _ in range(STATIONARY_CALLS)], seed=number)
        outliers += bool(found.outliers)
        shifts += bool(found.shifts)
    return outliers, shifts


def found(signal: Signal, series: int = SHIFTED_SERIES) -> int:
    """Count the series in which a change is an anomaly after all calls of the signal."""
    count = 0
    for number in range(series):
        random = Random(f"{signal.name} {number}")
        values = [signal.before(random) for _ in range(CALLS_BEFORE)]
        values += [signal.after(random) for _ in range(signal.calls)]
        count += detect(values, seed=number).verdict == "ANOMALY"
    return count


def _false_alarm_row(name: str) -> Row:
    outliers, shifts = false_alarms(name)
    most = STATIONARY_SERIES // 100
    return Row(
        f"false alarms: {name}",
        f"{outliers + shifts} of {STATIONARY_SERIES} ({outliers} outliers, {shifts} shifts)",
        "",
        "",
        f"<= {most}",
        outliers + shifts <= most,
    )


def _found_row(signal: Signal) -> Row:
    count = found(signal)
    least = math.ceil(0.95 * SHIFTED_SERIES)
    return Row(
        f"found within {signal.calls} calls: {signal.name}",
        f"{count} of {SHIFTED_SERIES}",
        "",
        "",
        f">= {least}" if signal.promised else "none",
        count >= least or not signal.promised,
    )


def _speed_row(name: str, values: list[float], most: float) -> Row:
    times = []
    for seed in range(5):
        started = time.perf_counter()
        detect(values, seed=seed, window="all")
        times.append(time.perf_counter() - started)
    seconds = statistics.median(times)
    return Row(
        f"detect, {name}", f"{seconds * 1000:.0f} ms", "", "", f"<= {most:g} s", seconds <= most
    )


def rows() -> list[Row]:
    """Measure; some minutes."""
    random = Random(0)
    steady = [random.gauss(1, 0.4) for _ in range(50_000)]
    shifted = [value / 2 if place >= 49_900 else value for place, value in enumerate(steady)]
    return [
        _speed_row("500 values", steady[:500], 0.1),
        _speed_row("500 values with a shift", shifted[-500:], 1),
        _speed_row("50,000 values at once", steady, 1.5),
        _speed_row("50,000 values at once with a shift", shifted, 1.5),
        *map(_false_alarm_row, FAMILIES),
        *map(_found_row, SIGNALS),
    ]


if __name__ == "__main__":
    print_rows(rows())
