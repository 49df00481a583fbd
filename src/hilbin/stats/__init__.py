"""Statistics: sums over rows that can be added, in any order, in pieces, and saved."""

from hilbin.stats._statistic import Statistic
from hilbin.stats.groups import ClassSums, ClusterSums
from hilbin.stats.moments import Moments
from hilbin.stats.sample import DistinctSample, RowSample
from hilbin.stats.totals import StatisticTuple, TopScores, Totals

__all__ = [
    "ClassSums",
    "ClusterSums",
    "DistinctSample",
    "Moments",
    "RowSample",
    "Statistic",
    "StatisticTuple",
    "TopScores",
    "Totals",
]
