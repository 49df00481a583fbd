"""scikit-learn's own checks, on every estimator of this room."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from hilbin.estimators import HistogramBinner, IntersectionSVC, IntersectionSVR

ESTIMATORS = [
    HistogramBinner(),
    HistogramBinner(strategy="sqrt", negative="shift"),
    HistogramBinner(strategy="quantile", scope="all"),
    HistogramBinner(n_bins=None, negative="shift"),
    IntersectionSVC(),
    IntersectionSVC(bias=0),
    IntersectionSVC(loss="hinge", C=1e-2, solver="tables"),
    IntersectionSVC(n_bins=None, solver="tables"),
    IntersectionSVC(multi_class="crammer_singer"),
    IntersectionSVC(strategy="quantile", scope="all", solver="gram"),
    IntersectionSVR(),
    IntersectionSVR(C=1e-2, solver="tables"),
    IntersectionSVR(n_bins=None, loss="squared_epsilon_insensitive"),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
