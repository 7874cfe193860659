"""The numbers of a chain's spans -> one series a dimension and group, in one pass. Pure.

Memory is that of the windows: what lies before is counted and forgotten.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Literal, NamedTuple, TypeAlias

from bijotel.dialects.groups import MOST_GROUPS, OTHERS, GroupBy, group_of
from bijotel.dialects.leafmost import Leafmost
from bijotel.dialects.span import Span
from bijotel.dialects.usage import NOTHING, Counted, models_of, usage_of
from bijotel.dimensions.decisions import Calls, Provenances
from bijotel.dimensions.read import Dimension, Kind, Price, measure
from bijotel.regression.detect import DEFAULT_WINDOW, Window, check_window, judge
from bijotel.regression.model import FEWEST_EARLIER, Detection, Point

Season: TypeAlias = Literal["day", "week"]

MOST_FAULTS: Final = 20
"""So many different faults are kept in words."""

_HOUR: Final = 3600 * 10**9
_DAY: Final = 24 * _HOUR
_THURSDAY: Final = 3
"""The weekday of 1970-01-01, Monday being 0."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which spans are looked at, and how."""

    window: Window = DEFAULT_WINDOW
    """How many data points of each series are kept, the newest ones."""
    season: Season | None = None
    """``day``: by hour of the start, ``week``: by weekday of the start; in UTC."""
    group_by: GroupBy | None = None
    model: str | None = None
    """Only spans of this model."""
    since_seq: int | None = None
    """Entries from this one on are judged for outliers; else the newest one."""
    since_unix_nano: int | None = None
    """The same by the start of the span."""

    def is_new(self, seq: int, start: float | None) -> bool:
        """Tell whether an entry is one of those since."""
        if self.since_seq is not None:
            return seq >= self.since_seq
        return start is not None and start >= (self.since_unix_nano or 0)

    @property
    def has_since(self) -> bool:
        """Whether a beginning of what is new was given."""
        return self.since_seq is not None or self.since_unix_nano is not None


class _Kept(NamedTuple):
    point: Point
    is_new: bool


@dataclass(slots=True)
class Series:
    """One dimension of one group."""

    dimension: Dimension
    group: str
    kept: deque[_Kept]
    count: int = 0
    """Data points, those before the window included."""
    entries: int = 0
    """Spans of the group."""
    passed: int = 0
    """New data points that the window no longer holds."""

    def add(self, point: Point, *, is_new: bool) -> None:
        """Take the next data point."""
        kept = self.kept
        if len(kept) == kept.maxlen and kept[0].is_new:
            self.passed += 1
        kept.append(_Kept(point, is_new))
        self.count += 1

    @property
    def values(self) -> list[float]:
        """The values of the window, oldest first."""
        return [kept.point.value for kept in self.kept]

    def judge(self, selection: Selection, seed: int = 0) -> Detection:
        """Run both layers of detection over the window."""
        new = {kept.point.seq for kept in self.kept if kept.is_new}
        return judge(
            [kept.point for kept in self.kept],
            wanted=new if selection.has_since else None,
            skipped=self.entries - self.count,
            unjudged=self.passed + self._unjudged() if selection.has_since else 0,
            outliers=not self.dimension.is_rate,
            seed=seed,
        )

    def _unjudged(self) -> int:
        """Count the new data points whose baseline the window no longer holds."""
        if self.count == len(self.kept):
            return 0
        return sum(kept.is_new for kept in islice(self.kept, FEWEST_EARLIER))


class _Measurement(NamedTuple):
    """The numbers of one span and the series that they belong to."""

    seq: int
    start: float | None
    values: dict[str, float]
    series: dict[str, Series]


@dataclass(slots=True)
class Collector:
    """Takes the spans of a chain in order and gathers their numbers."""

    dimensions: Sequence[Dimension]
    selection: Selection = field(default_factory=Selection)
    price: Price | None = None
    faults: Counter[str] = field(default_factory=Counter)
    """What is no number, and how often; at most ``MOST_FAULTS`` different ones."""
    faulty: int = 0
    """Spans with at least one of them."""
    _groups: dict[str, dict[str, Series]] = field(default_factory=dict)
    _leafmost: Leafmost[_Measurement | None] = field(default_factory=Leafmost)

    _calls: Calls[_Measurement | None] = field(default_factory=Calls)
    _provenances: Provenances = field(default_factory=Provenances)
    _kinds: frozenset[Kind] = field(init=False)
    _has_since: bool = field(init=False)

    def __post_init__(self) -> None:
        self._kinds = frozenset(dimension.kind for dimension in self.dimensions)
        self._has_since = self.selection.has_since
        check_window(self.selection.window)
        if self.selection.group_by is None:
            self._series("")

    def add(self, seq: int, record: Span) -> None:
        """Take the next span."""
        counted = usage_of(record) if "usage" in self._kinds else NOTHING
        measurement = None
        model = self.selection.model
        if model is None or model in models_of(record):
            measurement = self._measure(seq, record, counted)
            if "retrieval" in self._kinds:
                self._store_retrieval(record, measurement)
        # A span of another model is looked at too: it may be what a wrapper of this one repeats.
        if "usage" in self._kinds:
            self._let("usage", self._leafmost.add(record, counted.usage, measurement))
        if "call" in self._kinds:
            self._let("call", self._calls.add(record, measurement))

    def finish(self) -> tuple[Series, ...]:
        """Give all series, by group in the order of first appearance."""
        for released in self._leafmost.rest():
            self._let("usage", released)
        for released in self._calls.rest():
            self._let("call", released)
        return tuple(series for group in self._groups.values() for series in group.values())

    def _measure(self, seq: int, record: Span, counted: Counted) -> _Measurement:
        values, faults = measure(record, self.dimensions, counted=counted, price=self.price)
        if faults:
            self._count_faults(faults)
        series = self._series(self._group(record))
        for each in series.values():
            each.entries += 1
        return _Measurement(seq, record.start_time_unix_nano, values, series)

    def _count_faults(self, faults: tuple[str, ...]) -> None:
        self.faulty += 1
        for fault in faults:
            if fault in self.faults or len(self.faults) < MOST_FAULTS:
                self.faults[fault] += 1

    def _store_retrieval(self, record: Span, measurement: _Measurement) -> None:
        counted = self._provenances.counted(record)
        self._store("retrieval", measurement, counted)
        counted.update(measurement.values)

    def _let(self, kind: Kind, released: tuple[_Measurement | None, bool] | None) -> None:
        """Store what was held back, if it counts and was to be measured."""
        if released is not None and released[1] and released[0] is not None:
            self._store(kind, released[0])

    def _store(self, kind: Kind, measurement: _Measurement, but: Container[str] = ()) -> None:
        seq, start, values, all_series = measurement
        slot = None
        if self.selection.season is not None:
            if start is None:
                return
            slot = _slot(self.selection.season, start)
        is_new = self._has_since and self.selection.is_new(seq, start)
        for name, value in values.items():
            series = all_series[name]
            if series.dimension.kind == kind and name not in but:
                series.add(Point(seq, value, slot), is_new=is_new)

    def _series(self, group: str) -> dict[str, Series]:
        if group not in self._groups and len(self._groups) >= MOST_GROUPS:
            group = OTHERS
        if group not in self._groups:
            window = self.selection.window
            self._groups[group] = {
                dimension.name: Series(
                    dimension, group, deque(maxlen=None if window == "all" else window)
                )
                for dimension in self.dimensions
            }
        return self._groups[group]

    def _group(self, record: Span) -> str:
        by = self.selection.group_by
        return "" if by is None else group_of(record, by)


def _slot(season: Season, start: float) -> str:
    """Give the slot of a start."""
    if season == "day":
        return f"hour {int(start // _HOUR % 24)}"
    return f"weekday {int((start // _DAY + _THURSDAY) % 7)}"
