"""Outliers and shifts of level: the rules at their borders, and the rates that are promised."""

from __future__ import annotations

import json
import math
import re
import statistics
from decimal import Decimal
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.bench_regression import FAMILIES, SIGNALS, false_alarms, found
from bijotel.errors import ConfigurationError
from bijotel.regression import Point, Shortage, detect, judge
from bijotel.regression.outliers import _as_far, _median_distance

NEVER_NO_ANOMALY = {"ANOMALY", "INSUFFICIENT_DATA"}


def outlier_places(values, **options) -> list[int]:
    return [outlier.seq for outlier in detect(values, **options).outliers]


@pytest.mark.parametrize(
    ("earlier", "newest", "is_outlier"),
    [
        ([5] * 20, 5, False),
        ([5] * 20, 5.0001, False),
        ([5] * 20, 50, True),
        ([0] * 20, 0, False),
        ([0] * 20, 1e-9, True),
    ],
)
def test_a_constant_history(earlier, newest, is_outlier):
    """Without any deviation what counts is one percent of the level, or any change from zero."""
    assert bool(outlier_places([*earlier, newest])) is is_outlier


def test_a_constant_history_has_no_z_score():
    """No deviation: the classic figure is null, and so is the robust one where the level is 0."""
    judged = detect([5] * 20 + [50]).judged[0]
    assert (judged.z, judged.robust_z, judged.fences) == (None, 900.0, (5.0, 5.0))
    assert detect([0] * 20 + [50]).judged[0].robust_z is None


def test_one_old_outlier_hides_nothing():
    """An old spike inflates the mean and the deviation; the median does not see it."""
    judged = detect([9.8, 9.9, 10, 10.1, 10.2, 9.9, 10, 10.1, 10, 100, 30]).judged[0]
    assert judged.is_outlier
    assert judged.z == pytest.approx(0.39, abs=0.005)
    assert judged.robust_z == pytest.approx(134.9, abs=0.05)


@pytest.mark.parametrize("count", [6, 249, 499, 500, 501, 750])
def test_an_outlier_is_rare(count):
    """Of 250 earlier values one may be as far, on either side, and one always may."""
    allowed = max(1, count // 250)
    for far in (allowed, allowed + 1):
        earlier = [10.0, 10.1] * count
        earlier[:far] = [30.0 if place % 2 else -10.0 for place in range(far)]
        newest = 30.1 if far == allowed else 29.9
        expected = [count] if far == allowed else []
        assert outlier_places([*earlier[:count], newest], window="all") == expected


def test_the_figures_are_the_classic_ones():
    """Mean, sample deviation and linear percentiles, as the statistics module has them."""
    random = Random(1)
    earlier = [random.gauss(10, 3) for _ in range(40)]
    judged = detect([*earlier, 12]).judged[0]
    assert judged.z == pytest.approx((12 - statistics.mean(earlier)) / statistics.stdev(earlier))
    low, middle, high = statistics.quantiles(earlier, n=4, method="inclusive")
    reach = 1.5 * (high - low)
    assert judged.fences == pytest.approx((low - reach, high + reach))
    mad = statistics.median(abs(value - middle) for value in earlier)
    spread = max(1.4826 * mad, (high - low) / 1.349)
    assert judged.robust_z == pytest.approx((12 - middle) / spread)


@given(st.lists(st.floats(-1e6, 1e6) | st.integers(-3, 3), min_size=1), st.floats(-1e6, 1e6))
def test_distances_are_counted_without_looking_at_all(values, centre):
    """The short cuts over sorted values equal what a look at every value gives."""
    ordered = sorted(values)
    distances = sorted(abs(value - centre) for value in values)
    assert _median_distance(ordered, centre) == pytest.approx(statistics.median(distances))
    for distance in {*distances, 0.5}:
        if distance:
            assert _as_far(ordered, centre, distance) == sum(d >= distance for d in distances)


@pytest.mark.parametrize("count", range(6))
def test_too_few_earlier_values(count):
    """Up to four earlier values are no baseline, however far the newest one is."""
    found_ = detect([*[5] * count, 500][: count + 1])
    if count < 5:
        assert found_.outlier_shortage == Shortage(count, 5)
        assert found_.verdict == "INSUFFICIENT_DATA"
    else:
        assert found_.outlier_shortage is None
        assert found_.verdict == "ANOMALY"
    assert found_.shift_shortage == Shortage(count + 1, 20)
    assert found_.needed == 20


def test_nothing_at_all():
    """No data point is no verdict either."""
    assert detect([]).as_dict() == {
        "used": 0,
        "skipped": 0,
        "verdict": "INSUFFICIENT_DATA",
        "needed": 20,
        "unjudged": 0,
        "outliers": [],
        "shifts": [],
    }


@pytest.mark.parametrize("count", range(20))
def test_few_values_never_pass_for_no_anomaly(count):
    """Under 20 data points one layer did not judge, which is said."""
    assert detect([5] * count).verdict in NEVER_NO_ANOMALY


def test_twenty_values_are_enough():
    """From 20 data points on both layers judge."""
    assert detect([5] * 20).verdict == "NO_ANOMALY"
    assert detect([5] * 20).needed is None


def test_a_halved_level_is_a_shift():
    """It names the first entry of the new level, both levels and a p-value."""
    result = detect([8] * 200 + [4] * 20)
    assert result.verdict == "ANOMALY"
    assert result.as_dict()["shifts"] == [
        {"first_seq": 200, "before": 8.0, "after": 4.0, "p_value": 0.0005}
    ]


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6])
def test_a_shift_is_named_to_the_entry(count):
    """Borders with five values on both sides are tested, but the first new value is named."""
    assert [shift.first_seq for shift in detect([8] * 200 + [4] * count).shifts] == [200]
    assert [shift.first_seq for shift in detect([4] * count + [8] * 200).shifts] == [count]


def test_one_value_is_no_shift():
    """A single value at another level is an outlier, or nothing."""
    assert detect([8] * 200 + [4]).shifts == ()
    assert outlier_places([8] * 200 + [4]) == [200]


def test_an_old_shift_does_not_hide_a_new_one():
    """What lies behind a shift is looked at again, and so is what lies before it."""
    random = Random(5)
    values = [level + random.gauss(0, 1) for level in (10, 20, 20, 14) for _ in range(60)]
    shifts = detect(values).shifts
    assert [round(shift.first_seq, -1) for shift in shifts] == [60, 180]
    assert [(round(shift.before), round(shift.after)) for shift in shifts] == [(10, 20), (20, 14)]


def test_the_levels_of_rates_are_means():
    """The medians of failures before and after are both 0; the rates differ."""
    (shift,) = detect([*[0, 0, 0, 0, 1] * 30, *[1, 1, 1, 0] * 10]).shifts
    assert (shift.before, shift.after) == (
        pytest.approx(0.2, abs=0.02),
        pytest.approx(0.75, abs=0.05),
    )


def test_the_same_seed_gives_the_same_answer():
    """The random orders come from the seed alone."""
    values = [8] * 200 + [4] * 2
    assert len({detect(values, seed=7).shifts for _ in range(3)}) == 1
    assert len({detect(values, seed=seed).shifts for seed in range(8)}) > 1


@pytest.mark.parametrize("scale", [3, Fraction(1, 3), Decimal("1e30"), 1e-30])
def test_only_the_order_of_values_counts_for_shifts(scale):
    """Ranks are the same whatever the unit is."""
    random = Random(4)
    values = [random.randint(0, 6) for _ in range(100)] + [random.randint(0, 2) for _ in range(30)]
    (plain,), (scaled,) = (
        detect(series).shifts for series in (values, [value * scale for value in values])
    )
    assert (scaled.first_seq, scaled.p_value) == (plain.first_seq, plain.p_value)


def test_missing_values_are_skipped_not_zero():
    """None, NaN and infinities are no data points and are counted."""
    result = detect([1.0, math.nan, None, 0.5, math.inf, -math.inf, Decimal("sNaN"), 10**400])
    assert (result.used, result.skipped) == (2, 6)
    assert result.outlier_shortage == Shortage(1, 5)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, 2, "3"], "values: item 2: expected a number or None, got str"),
        ([b"1"], "values: item 0: expected a number or None, got bytes"),
        ([1j], "values: item 0: expected a number or None, got complex"),
    ],
)
def test_what_is_no_number_is_refused(values, message):
    """A text is neither a number nor a missing value."""
    with pytest.raises(ConfigurationError, match=f"^{message}$"):
        detect(values)


@pytest.mark.parametrize("window", [19, 0, -1, 20.0, "20", True, None, 10**30])
def test_a_window_without_room_for_a_shift_is_refused(window):
    """The smallest window is the fewest values among which a shift is looked for."""
    wanted = f"window: expected 'all' or a number from 20 to 1000000000, got {window!r}"
    with pytest.raises(ConfigurationError, match=f"^{re.escape(wanted)}$"):
        detect([1] * 30, window=window)


def test_the_window_is_the_newest_values():
    """What lies before the window is not looked at."""
    values = [8] * 100 + [4] * 50
    assert detect(values, window=50).verdict == "NO_ANOMALY"
    assert detect(values, window=50).used == 50
    assert detect(values, window=60).shifts[0].first_seq == 100
    assert detect([8] * 600 + [4] * 500).shifts == ()
    assert detect([8] * 600 + [4] * 500, window="all").shifts[0].first_seq == 600


def test_several_newest_values_are_each_judged_by_those_before():
    """Values since a point in time: the first far ones are outliers, the rest a new level."""
    points = [Point(10 * place, 5.0) for place in range(30)]
    points += [Point(1000 + place, 9.0) for place in range(6)]
    result = judge(points, wanted=range(1000, 1006))
    assert [judgement.seq for judgement in result.judged] == list(range(1000, 1006))
    assert [outlier.seq for outlier in result.outliers] == [1000, 1001]
    assert result.shifts[0].first_seq == 1000
    assert judge(points, wanted=()).judged == ()
    assert judge(points, wanted=()).outlier_shortage is None
    assert len(judge(points[:8], wanted=range(1000)).judged) == 3


def test_a_rate_has_no_outliers():
    """A single failure is no outlier when single values mean nothing."""
    points = [Point(place, float(place == 29)) for place in range(30)]
    assert judge(points).verdict == "ANOMALY"
    result = judge(points, outliers=False)
    assert (result.judged, result.verdict) == ((), "NO_ANOMALY")
    assert judge(points[:9], outliers=False).outlier_shortage is None


def seasonal(level: int = 10) -> tuple[list[float], list[int]]:
    random = Random(9)
    hours = [place % 24 for place in range(480)]
    return [level + 5 * (hour >= 12) + random.gauss(0, 0.2) for hour in hours], hours


def test_a_season_is_taken_out():
    """A value that is usual at another hour is an outlier at this one."""
    values, hours = seasonal()
    assert detect(values, season=hours).verdict == "NO_ANOMALY"
    assert outlier_places([*values, 15.0], season=[*hours, 3]) == [480]
    assert outlier_places([*values, 15.0], season=[*hours, 15]) == []
    assert detect([*values, 15.0], season=[*hours, 3]).outliers[0].value == 15.0


def test_a_season_does_not_hide_a_shift():
    """The level moves in every slot."""
    values, hours = seasonal()
    values[-24:] = [value - 3 for value in values[-24:]]
    (shift,) = detect(values, season=hours).shifts
    assert abs(shift.first_seq - 456) <= 1
    assert shift.after - shift.before == pytest.approx(-3, abs=0.3)
    assert shift.before == pytest.approx(statistics.median(values), abs=0.3)


def test_the_levels_of_a_seasonal_series_are_those_of_its_values():
    """Not what the season leaves of them, which would be 0 and -0.5."""
    values, hours = [1.0] * 40 + [0.5] * 20, [0, 1] * 30
    (shift,) = detect(values, season=hours).shifts
    assert (shift.first_seq, shift.before, shift.after) == (40, 1.0, 0.5)


def test_a_slot_with_two_others_is_not_judged():
    """Three earlier values of the same slot are the fewest that say what is usual in it."""
    values, hours = [5.0] * 40, [0, 1] * 20
    short = detect([*values, 7, 7, 7], season=[*hours, 9, 9, 9])
    assert (short.used, short.skipped) == (40, 3)
    assert short.outlier_shortage == Shortage(2, 3)
    assert short.verdict == "INSUFFICIENT_DATA"
    enough = detect([*values, 7, 7, 7, 9], season=[*hours, 9, 9, 9, 9])
    assert (enough.used, outlier_places([*values, 7, 7, 7, 9], season=[*hours, 9, 9, 9, 9])) == (
        44,
        [43],
    )


def test_a_season_has_a_slot_for_each_value():
    """Slots of another number are a mistake."""
    with pytest.raises(
        ConfigurationError, match=r"^season: expected one slot for each value, got 2 for 3 values$"
    ):
        detect([1, 2, 3], season=[0, 0])


@given(
    st.lists(st.floats() | st.integers(-5, 5) | st.none() | st.decimals(), max_size=60),
    st.booleans(),
)
def test_a_result_holds_no_nan(values, with_season):
    """Whatever the values are, the result is strict JSON and its counts add up."""
    result = detect(
        values, season=[place % 2 for place in range(len(values))] if with_season else None
    )
    json.dumps(result.as_dict(), allow_nan=False)
    assert result.used + result.skipped == len(values)
    assert all(math.isfinite(number) for each in result.judged for number in each.fences)


def test_a_long_series_is_scanned_in_blocks():
    """The border is found to the value, and a last part shorter than a block is looked at."""
    random = Random(6)
    values = [random.gauss(1, 0.1) for _ in range(5007)]
    assert detect(values, window="all").verdict == "NO_ANOMALY"
    values[3333:] = [value / 2 for value in values[3333:]]
    (shift,) = detect(values, window="all").shifts
    assert abs(shift.first_seq - 3333) <= 2


@pytest.mark.slow
def test_false_alarms_are_rare():
    """Of stationary series at most one in a hundred alarms, whatever the distribution is."""
    alarms = {name: sum(false_alarms(name, series=100)) for name in FAMILIES}
    assert sum(alarms.values()) <= 8, alarms


@pytest.mark.slow
@pytest.mark.parametrize(
    "signal", [signal for signal in SIGNALS if signal.promised], ids=lambda signal: signal.name
)
def test_what_is_promised_is_found(signal):
    """A halved level within 20 calls, and 5 -> 3 within 10."""
    assert found(signal, series=10) == 10
