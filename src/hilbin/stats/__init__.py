"""Statistics: sums over rows that can be added, in any order, in pieces, and written down."""

from hilbin.stats._statistic import Statistic
from hilbin.stats.classes import ClassSums
from hilbin.stats.clusters import ClusterSums
from hilbin.stats.moments import Moments
from hilbin.stats.sample import RowSample
from hilbin.stats.totals import StatisticTuple, TopScores, Totals

__all__ = [
    "ClassSums",
    "ClusterSums",
    "Moments",
    "RowSample",
    "Statistic",
    "StatisticTuple",
    "TopScores",
    "Totals",
]
