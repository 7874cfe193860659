"""Spans -> series of numbers that can be watched: the thirteen dimensions. Pure.

:mod:`~bijotel.dimensions.read` takes the numbers out of one span, and
:mod:`~bijotel.dimensions.series` gathers those of a chain in one pass. Whether a series is as
usual is the business of :mod:`bijotel.regression`.
"""

from bijotel.dimensions.read import DIMENSIONS, Dimension, Measured, find_dimensions, measure
from bijotel.dimensions.series import Collector, Selection, Series

__all__ = [
    "DIMENSIONS",
    "Collector",
    "Dimension",
    "Measured",
    "Selection",
    "Series",
    "find_dimensions",
    "measure",
]
