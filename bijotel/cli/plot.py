"""Series as a picture, PNG or SVG. Needs matplotlib (extra ``plot``), loaded only when asked.

No window and no display: the figure is drawn by file formats' own canvases. Stored text in it is
never read as a formula.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

from bijotel.cli.text import escape
from bijotel.dimensions import Series
from bijotel.errors import ConfigurationError
from bijotel.output_files import check_target, new_file
from bijotel.regression import Detection

FORMATS: Final = (".png", ".svg")
MOST_PANELS: Final = 40


class Panel(NamedTuple):
    """One series and what was found in it."""

    series: Series
    found: Detection


def check_plot(path: str, location: str) -> None:
    """Refuse a picture that cannot be made, before anything is read.

    Raises:
        ConfigurationError: another format, a name that is taken by what must not be lost, or
            matplotlib is not installed.
    """
    check_target(path, (location,))
    if Path(path).suffix.lower() not in FORMATS:
        raise ConfigurationError(f"--plot {path}: expected a name that ends in .png or .svg")
    try:
        import_module("matplotlib.figure")
    except ImportError:
        raise ConfigurationError(
            "--plot: the extra 'plot' is not installed; "
            "pip install '.[plot]' in the folder of the repository"
        ) from None


def draw(path: str, panels: Sequence[Panel]) -> None:
    """Draw each series over the numbers of its entries, with what was found.

    Raises:
        UnavailableError: the file cannot be written.
    """
    shown = [panel for panel in panels if panel.series.kept][:MOST_PANELS]
    figure = import_module("matplotlib.figure").Figure(
        figsize=(9, 2.2 * max(1, len(shown))), layout="constrained"
    )
    for number, panel in enumerate(shown, 1):
        _draw_panel(figure.add_subplot(len(shown), 1, number), panel)
    with new_file(path) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a font may lack letters of a stored name
        figure.savefig(file, format=Path(path).suffix[1:].lower())


def _draw_panel(axes: Any, panel: Panel) -> None:
    series, found = panel
    points = [kept.point for kept in series.kept]
    title = series.dimension.name + (f" ({escape(series.group)})" if series.group else "")
    axes.set_title(f"{title}: {found.verdict}", fontsize=10, loc="left", parse_math=False)
    axes.set_ylabel(series.dimension.unit, fontsize=8)
    axes.tick_params(labelsize=8)
    axes.plot(
        [point.seq for point in points],
        [point.value for point in points],
        color="#4c72b0",
        linewidth=0.8,
        marker=".",
        markersize=3,
    )
    axes.plot(
        [outlier.seq for outlier in found.outliers],
        [outlier.value for outlier in found.outliers],
        "x",
        color="#c44e52",
    )
    for shift in found.shifts:
        axes.axvline(shift.first_seq, color="#c44e52", linestyle="--", linewidth=1)
