"""Sparse arrays are checked before anything trusts them."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from oracles import sparse_fault
from sklearn.base import BaseEstimator
from sklearn.utils import validation as sklearn_validation

from hilbin._arrays import check_rows, check_sparse, validate_data
from hilbin.estimators import IntersectionSVC
from hilbin.kernels import Chi2, Intersection


def matrix():
    return sp.csr_array(np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 0.0], [0.0, 4.0, 5.0]]))


def changed(name, place, value):
    X = matrix()
    getattr(X, name)[place] = value
    return X


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (changed("indptr", 1, 5), "row 1 is from 5 to 3, and there are 5 indices"),
        (changed("indptr", 3, 900), "row 2 is from 3 to 900"),
        (changed("indptr", 0, 1), "row 0 is from 1 to 2"),
        (changed("indptr", 1, -1), "row 0 is from 0 to -1"),
        (changed("indices", 2, 3), r"row 1 has an index that is not in \[0, 3\)"),
        (changed("indices", 4, -1), "row 2 has an index"),
    ],
)
@pytest.mark.parametrize("take", [lambda X: check_rows(X, "X"), Chi2().gram, Intersection().diag])
def test_broken_rows_are_named(X, message, take):
    with pytest.raises(ValueError, match=f"X is a broken CSR matrix: .*{message}"):
        take(X)


def test_pointers_for_other_rows():
    X = matrix()
    X.indptr = np.append(X.indptr, 5)
    with pytest.raises(ValueError, match="indptr has 5 numbers for 3 rows"):
        check_rows(X, "X")
    X = matrix()
    X.data = X.data[:-1]
    with pytest.raises(ValueError, match="5 indices for 4 values"):
        check_rows(X, "X")


def test_no_rows():
    X = sp.csr_array((0, 3))
    assert check_sparse(X, "X")
    X.indptr = np.array([7])
    with pytest.raises(ValueError, match="row 0 is from 7, and there are 0 indices"):
        check_sparse(X, "X")


def test_columns_out_of_order():
    """They are put in order in a copy, unless the matrix claims that they are."""
    X = matrix()
    X.indices[:2] = [2, 1]
    X.has_canonical_format = False
    np.testing.assert_array_equal(check_rows(X, "X").toarray(), X.toarray())
    assert X.indices[:2].tolist() == [2, 1]
    X.has_canonical_format = True
    with pytest.raises(ValueError, match="indices of row 0 do not ascend, but it claims"):
        check_rows(X, "X")


@pytest.mark.parametrize("kind", [sp.csc_array, sp.coo_array, sp.bsr_array])
def test_other_formats_are_checked_before_they_are_converted(kind):
    fitted = IntersectionSVC().fit(np.eye(3), [0, 1, 1])
    X = kind(matrix())
    if kind is sp.coo_array:
        X.coords = (X.coords[0] + 2**20, X.coords[1])
    else:
        X.indptr[1] = 2**20
    with pytest.raises(ValueError, match=f"X is a broken {X.format.upper()} matrix"):
        fitted.predict(X)


@given(
    st.sampled_from([sp.csr_array, sp.csc_array]),
    st.sampled_from(["indices", "indptr"]),
    st.integers(0, 5),
    st.integers(-2, 7),
    st.booleans(),
    st.sampled_from([np.int32, np.int64]),
)
def test_the_check_agrees_with_a_slow_one(kind, name, place, value, claims, dtype):
    X = kind(matrix())
    X.indices, X.indptr = X.indices.astype(dtype), X.indptr.astype(dtype)
    array = getattr(X, name)
    array[place % array.size] = value
    X.has_canonical_format = claims
    if sparse_fault(X):
        with pytest.raises(ValueError, match="X is a broken"):
            check_sparse(X, "X")
    else:
        check_sparse(X, "X")


class Plain(BaseEstimator):
    """An estimator that keeps the width of its rows."""


OPTIONS = {"accept_sparse": "csr", "dtype": (np.float64, np.float32)}
LABELS = np.array([0, 1, 1])


@pytest.mark.parametrize(
    ("X", "y", "options"),
    [
        (matrix(), LABELS, OPTIONS),
        (matrix().astype(np.float32), LABELS > 0, OPTIONS),
        (sp.csr_matrix(matrix()), LABELS, OPTIONS | {"y_numeric": True, "multi_output": True}),
        (matrix().astype(int), LABELS, OPTIONS),
        (matrix().tocsc(), LABELS, OPTIONS),
        (matrix(), [0, 1, 1], OPTIONS),
        (matrix(), LABELS + 0.5, OPTIONS),
        (matrix(), LABELS[:, None], OPTIONS),
        (matrix(), LABELS[:2], OPTIONS),
        (matrix(), LABELS, {}),
        (matrix(), LABELS, OPTIONS | {"dtype": np.float64}),
        (matrix(), LABELS, OPTIONS | {"ensure_min_samples": 4}),
        (changed("data", 1, np.nan), LABELS, OPTIONS),
        (changed("data", 1, np.inf), LABELS, OPTIONS | {"ensure_all_finite": False}),
        (matrix()[:, :0], LABELS, OPTIONS),
        (matrix()[:0], LABELS[:0], OPTIONS),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_sparse_rows_are_validated_as_by_sklearn(X, y, options):
    outcomes = []
    for validate in (sklearn_validation.validate_data, validate_data):
        model = Plain()
        try:
            outcomes.append((*validate(model, X, y, **options), model.n_features_in_))
        except (TypeError, ValueError) as error:
            outcomes.append(type(error))
    expected, found = outcomes
    if isinstance(expected, type):
        assert found is expected
        return
    assert [type(part) for part in found] == [type(part) for part in expected]
    assert found[0].dtype == expected[0].dtype
    assert found[0].format == expected[0].format
    np.testing.assert_array_equal(found[0].toarray(), expected[0].toarray())
    np.testing.assert_array_equal(found[1], expected[1])
    assert found[2] == expected[2]


def test_sparse_rows_of_another_width_are_refused():
    model = Plain()
    validate_data(model, matrix(), LABELS, **OPTIONS)
    with pytest.raises(ValueError, match="expecting 3 features"):
        validate_data(model, matrix()[:, :2], LABELS, reset=False, **OPTIONS)


def test_names_of_columns_are_forgotten_and_missed():
    model = Plain()
    model.feature_names_in_ = np.array(["a", "b", "c"], dtype=object)
    model.n_features_in_ = 3
    with pytest.warns(UserWarning, match="feature names"):
        validate_data(model, matrix(), LABELS, reset=False, **OPTIONS)
    validate_data(model, matrix(), LABELS, **OPTIONS)
    assert not hasattr(model, "feature_names_in_")
