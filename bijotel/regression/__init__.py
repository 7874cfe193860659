"""Is the newest call unlike the earlier ones, and has the level of a series moved? Pure.

Two layers: :mod:`~bijotel.regression.outliers` judges single values,
:mod:`~bijotel.regression.shifts` the level, and :mod:`~bijotel.regression.detect` puts both
together. Where the numbers come from is the business of ``dimensions``. Standard library only.
"""

from bijotel.regression.detect import detect, judge
from bijotel.regression.model import Detection, Judgement, Point, Shift, Shortage

__all__ = ["Detection", "Judgement", "Point", "Shift", "Shortage", "detect", "judge"]
