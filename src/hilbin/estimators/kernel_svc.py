r"""Support vector classification with any kernel.

:math:`f(x) = b + \sum_i c_i k(x_i, x)`, a sum over the training rows near the border between the
classes, the support vectors. Two classes are one machine; more are several machines, or one problem
for all, Crammer and Singer's. All machines of a fit, all values of ``C`` of a path and all folds of
a cross-validation share one Gram matrix.
"""

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.model_selection import check_cv

from hilbin._arrays import Array
from hilbin.estimators._kernel_classes import ClassMachine
from hilbin.estimators._progress import with_callbacks


class KernelSVC(ClassifierMixin, ClassMachine):
    r"""Support vector machine with any kernel, given or computed, dense, sparse or row by row.

    Minimizes :math:`\tfrac12 \|w\|^2 + \sum_i C_i \max(0, 1 - y_i f(x_i))`, the problem of
    :class:`sklearn.svm.SVC`, with a certificate of how far the solution can be from the optimum.

    Parameters
    ----------
    kernel : Kernel, callable, "precomputed" or None, default=None
        A kernel of :mod:`hilbin.kernels`, whose rules (``gamma="median"``) are resolved on the
        training rows; a function ``(X, Y) -> matrix``; or ``"precomputed"``: ``X`` is the Gram
        matrix in ``fit``, and the kernel between new and training rows in ``predict``, dense or
        sparse. ``None`` is ``Gaussian(gamma="median")``.
    C : float, default=1.0
        Weight of the loss.
    multiclass : {"ovr", "ovo", "dag", "ecoc", "crammer_singer"}, default="ovr"
        More than two classes: one class against the rest; all pairs, which vote, equal votes being
        decided by the sum of the scores; the same pairs, the loser leaving until one is left; error
        correcting codes, the class with the least loss; or all classes in one problem.
    codes : array-like of shape (n_classes, n_machines), optional
        Of ``"ecoc"``: what every machine learns the classes as, -1 or 1, or 0 for not at all. By
        default all ways to split up to 7 classes in two, and a random choice for more.
    bias : "free", "penalized" or float, default="free"
        A free bias, as in LIBSVM, or one that is penalized like the weights: the number is added to
        the kernel, "penalized" is the mean of :math:`k(x, x)`. Without the constraint of a free one
        training is coordinate descent, which takes long where ``C`` is large. Crammer and Singer's
        is always penalized.
    class_weight : dict or "balanced", optional
        Factor of ``C`` for the rows of each class.
    tol : float, default=1e-3
        Tolerance on the gradient of the dual, as in LIBSVM. Up to 256 rows are solved to rounding.
        Below 1e-3, kernel values are not rounded to single precision.
    max_iter : int, optional
        Most steps of a machine: pairs of rows, by default 100 million, or with a penalized bias
        sweeps over all rows, by default 100 000.
    max_time : float, optional
        Seconds after which training stops, with a usable model.
    warm_start : bool, default=False
        Begin where the last ``fit`` ended, also one that was interrupted, if it had as many rows of
        every class.
    memory : float, default=2048
        MiB for the Gram matrix. One that does not fit is computed row by row, and as much of it
        kept; so is that of two classes, of which few rows are needed if few are support vectors.
        Machines that see a part of the rows take a copy of their part; sparse matrices, and that of
        Crammer and Singer's machine, are always whole.
    n_jobs : int, optional
        Threads: kernel values and machines side by side. ``None`` is 1, -1 all processors.
    random_state : int, RandomState or None, default=0
        Of the order in which rows are visited, the sample of rules, and random codes.
    verbose : int, default=0
        1 says how each machine ended, 2 tells of its course.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels.
    codes_ : ndarray of shape (n_classes, n_machines)
        What every machine has learnt the classes as; None for Crammer and Singer's.
    kernel_ : Kernel or "precomputed"
        With rules resolved.
    support_ : ndarray of shape (n_support,)
        Rows that count for some machine.
    support_vectors_ : ndarray or CSR array of shape (n_support, n_features)
        These rows; None if the kernel was precomputed.
    dual_coef_ : ndarray of shape (n_support, n_machines), or CSR array if most are zero
        Their coefficients.
    intercept_ : ndarray of shape (n_machines,)
        The bias of every machine.
    n_iter_ : int
        Most steps of any machine.
    converged_ : bool
        Whether every machine reached the tolerance.
    objective_, gap_ : ndarray
        Value of every primal problem, and how far it can be above the optimum.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray
        Their names, if ``X`` has some.

    Notes
    -----
    A given matrix is refused if it is not symmetric or has an empty diagonal. One that is not
    positive definite is trained on, as LIBSVM does, until no step improves; there is a warning if
    two rows suffice to see it.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hilbin.estimators import KernelSVC
    >>> from hilbin.kernels import Chi2, Exponential
    >>> X, y = load_digits(return_X_y=True)
    >>> model = KernelSVC(Exponential(Chi2(), gamma="mean"), C=10).fit(X[:500], y[:500])
    >>> bool(model.score(X[500:], y[500:]) > 0.92)
    True
    >>> model.cross_validate(X[:500], y[:500], cv=3, Cs=[0.1, 10]).shape
    (3, 2)
    """

    def __init__(
        self,
        kernel: Any = None,
        C: float = 1.0,
        *,
        multiclass: str = "ovr",
        codes: Any = None,
        bias: Any = "free",
        class_weight: Any = None,
        tol: float = 1e-3,
        max_iter: int | None = None,
        max_time: float | None = None,
        warm_start: bool = False,
        memory: float = 2048,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ):
        self.kernel = kernel
        self.C = C
        self.multiclass = multiclass
        self.codes = codes
        self.bias = bias
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train. An interrupt (Ctrl-C) leaves a usable model, marked as not converged.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features) or (n_samples, n_samples)
            Rows, or their Gram matrix.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            Factor of ``C``; a weight of 2 is the row twice, one of 0 no row.

        Returns
        -------
        self : KernelSVC
        """
        training = self._prepare(X, y, sample_weight, once=True)
        self._solve(training, self._last(self._shapes(training)), (X, y))
        return self

    def cross_validate(
        self, X: Any, y: Any, cv: Any = 5, *, Cs: Any = None, sample_weight: Any = None
    ) -> Array:
        """Accuracy on rows that were left out, from one Gram matrix for all folds and ``Cs``.

        Rules of the kernel are resolved on all rows, without their labels.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`; weights count in the accuracy, too.
        cv : int, splitter or iterable of (train, test), default=5
            The folds, as in :func:`sklearn.model_selection.cross_validate`.
        Cs : array-like of float, optional
            Weights of the loss to try instead of ``C``.

        Returns
        -------
        scores : ndarray of shape (n_folds,), or (n_folds, len(Cs)) if ``Cs`` are given
        """
        whole = clone(self)
        training = whole._prepare(X, y, sample_weight)
        folds = check_cv(cv, y, classifier=True).split(np.zeros((len(y), 1)), y)
        tried = [self.C] if Cs is None else Cs
        scores = np.array([self._fold_scores(whole, training, fold, tried) for fold in folds])
        return scores[:, 0] if Cs is None else scores

    def machine_scores(self, X: Any) -> Array:
        """Score of every machine, whose classes ``codes_`` tells.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Rows, or the kernel between them and the training rows.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_machines)
        """
        return self._machine_scores(X)

    def decision_function(self, X: Any) -> Array:
        """Scores of the classes; the highest wins.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Rows, or the kernel between them and the training rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Of the second of two classes, or of every class. With ``"ovo"`` the votes and with
            ``"dag"`` the round in which a class leaves, and a fraction that grows with the sum of
            its scores; with ``"ecoc"`` minus the loss.
        """
        return self._decisions(self._machine_scores(X))

    def predict(self, X: Any) -> Array:
        """The class of the highest score.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Rows, or the kernel between them and the training rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        return self._labels(self._machine_scores(X))
