"""Kernel canonical correlations against the generalized eigenproblem and scikit-learn's CCA."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import centered_by_matrix, regularized_correlations, upto_signs
from sklearn.base import clone
from sklearn.cross_decomposition import CCA
from sklearn.datasets import load_iris

import hilbin
from hilbin.estimators import KernelCCA, StreamCCA
from hilbin.kernels import Chi2, Gaussian, Hellinger, Linear
from hilbin.maps import AdditiveMap, NystroemMap

X = load_iris(return_X_y=True)[0]
SEPALS, PETALS = X[:, :2], X[:, 2:]


def median_rule(rows):
    squares = np.sum((rows[:, None] - rows) ** 2, axis=2)
    return Gaussian(1 / np.median(squares[np.triu_indices(len(rows), 1)]))


def test_check_values():
    linear = KernelCCA(Linear(), reg=0.01).fit(SEPALS, PETALS)
    np.testing.assert_allclose(linear.correlations_, [0.920988, 0.085969], atol=1e-6)
    free = KernelCCA(Linear(), reg=0).fit(SEPALS, PETALS)
    np.testing.assert_allclose(free.correlations_, [0.940969, 0.123937], atol=1e-6)
    np.testing.assert_allclose(free.score_correlations_, free.correlations_)
    model = KernelCCA([median_rule(SEPALS), median_rule(PETALS)], 3, reg=0.01).fit(SEPALS, PETALS)
    np.testing.assert_allclose(model.correlations_, [0.948056, 0.778233, 0.634602], atol=1e-6)
    np.testing.assert_allclose(model.score_correlations_, [0.974350, 0.869937, 0.735534], atol=1e-6)


def test_without_a_penalty_it_is_scikit_learns():
    model = KernelCCA(Linear(), reg=0).fit(SEPALS, PETALS)
    peer = CCA(2, max_iter=10_000, tol=1e-14).fit(SEPALS, PETALS)
    for ours, theirs in zip(
        model.transform(SEPALS, PETALS), peer.transform(SEPALS, PETALS), strict=True
    ):
        both = np.corrcoef(ours.T, theirs.T)
        np.testing.assert_allclose(np.abs(np.diag(both[:2, 2:])), 1, atol=1e-6)


@given(seed=st.integers(0, 10**6), first=st.floats(1e-3, 1), second=st.floats(1e-3, 1))
@settings(max_examples=25)
def test_it_is_the_generalized_eigenproblem(seed, first, second):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(15, 3))
    B = A[:, :2] + rng.normal(size=(15, 2))
    model = KernelCCA([Gaussian(0.2), Gaussian(0.5)], 3, reg=(first, second)).fit(A, B)
    grams = [centered_by_matrix(Gaussian(g).gram(Z)) for g, Z in ((0.2, A), (0.5, B))]
    rho = regularized_correlations(grams, (first * np.trace(grams[0]), second * np.trace(grams[1])))
    np.testing.assert_allclose(model.correlations_, rho[:3], atol=1e-6)
    x, y = model.transform(A, B)
    metric = x.T @ x + first * np.trace(grams[0]) * (
        model.views_[0].coef_.T @ grams[0] @ model.views_[0].coef_
    )
    np.testing.assert_allclose(metric, np.eye(3), atol=1e-7)
    np.testing.assert_allclose(x.T @ y, np.diag(model.correlations_), atol=1e-7)
    assert (x[np.abs(x).argmax(axis=0), np.arange(3)] > 0).all()


@given(seed=st.integers(0, 10**6), count=st.integers(2, 4))
@settings(max_examples=15)
def test_more_views_are_the_same_problem(seed, count):
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(20, 2))
    views = [hidden @ rng.normal(size=(2, 3)) + rng.normal(size=(20, 3)) for _ in range(count)]
    reg = rng.uniform(0.01, 0.5, count)
    model = KernelCCA(Gaussian(0.2), 3, reg=reg).fit(views)
    grams = [centered_by_matrix(Gaussian(0.2).gram(Z)) for Z in views]
    penalties = [r * np.trace(K) for r, K in zip(reg, grams, strict=True)]
    rho = regularized_correlations(grams, penalties)
    np.testing.assert_allclose(model.correlations_, rho[:3], atol=1e-6)
    T = model.transform(views)
    metric, together = np.zeros((2, 3, 3))
    for i in range(count):
        coef = model.views_[i].coef_
        metric += T[i].T @ T[i] + penalties[i] * (coef.T @ grams[i] @ coef)
        together += sum(T[i].T @ T[j] for j in range(count) if j != i)
    np.testing.assert_allclose(metric, count * np.eye(3), atol=1e-6)
    wanted = np.diag(count * (count - 1) * model.correlations_)
    np.testing.assert_allclose(together, wanted, atol=1e-6)
    pairs = [
        [np.corrcoef(T[i][:, c], T[j][:, c])[0, 1] for i in range(count) for j in range(i)]
        for c in range(3)
    ]
    np.testing.assert_allclose(model.score_correlations_, np.mean(pairs, axis=1), atol=1e-8)


def test_two_views_as_a_list():
    pair = KernelCCA(n_components=2).fit(SEPALS, PETALS)
    listed = KernelCCA(n_components=2).fit([SEPALS, PETALS])
    np.testing.assert_array_equal(listed.correlations_, pair.correlations_)
    np.testing.assert_array_equal(listed.transform([None, PETALS]), pair.transform(None, PETALS))
    assert listed.similarity(SEPALS[:2], PETALS[:3]).shape == (2, 3)


def test_retrieval_between_any_two_views():
    views = [SEPALS, X[:, 2:3], X[:, 3:]]
    model = KernelCCA(n_components=2).fit(views)
    S = model.similarity(X[:5, 3:], SEPALS, views=(2, 0))
    T = [part * model.correlations_ for part in model.transform([SEPALS, None, X[:5, 3:]])]
    cosine = T[1] @ T[0].T / np.outer(*(np.linalg.norm(part, axis=1) for part in T[::-1]))
    np.testing.assert_allclose(S, cosine)
    places = model.rank(X[:5, 3:], SEPALS, queries="y", views=(2, 0))
    np.testing.assert_array_equal(places, np.argsort(-S.T, axis=1, kind="stable"))
    with pytest.raises(ValueError, match="views must be two of 0 to 2"):
        model.rank(X[:5, 3:], SEPALS, views=(3, 0))
    with pytest.raises(ValueError, match="X has 4 views, but fit had 3"):
        model.transform([None, *views])


@pytest.mark.parametrize("groups", [False, True])
def test_sums_give_the_same_numbers(groups, tmp_path):
    """Out of core, from chunks of any size, with finite maps."""
    exact = KernelCCA([Hellinger(), Linear()], 2).fit(SEPALS, PETALS)
    parts = np.array_split(X, [7, 60, 61])
    if groups:
        columns = [("sepals", slice(2), AdditiveMap(Hellinger())), ("petals", [2, 3], None)]
        model = StreamCCA(2, column_groups=columns).fit(parts)
        found = model.transform(X)
    else:
        model = StreamCCA(2, feature_map=AdditiveMap(Hellinger()))
        model.fit([(part[:, :2], part[:, 2:]) for part in parts])
        found = model.transform(SEPALS, PETALS)
    np.testing.assert_allclose(model.correlations_, exact.correlations_, atol=1e-8)
    np.testing.assert_allclose(model.score_correlations_, exact.score_correlations_, atol=1e-8)
    for a, b in zip(found, exact.transform(SEPALS, PETALS), strict=True):
        upto_signs(a, b, atol=1e-8)
    np.testing.assert_allclose(
        model.similarity(SEPALS[:5], PETALS), exact.similarity(SEPALS[:5], PETALS), atol=1e-8
    )
    hilbin.save(model, tmp_path / "model")
    loaded = hilbin.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform([None, PETALS]), found[1])


def test_sums_of_three_views_and_more_rows():
    views = [SEPALS, X[:, 2:3], X[:, 3:]]
    exact = KernelCCA(Linear(), 1).fit(views)
    columns = [("a", [0, 1], None), ("b", [2], None), ("c", [3], None)]
    model = StreamCCA(1, column_groups=columns, keep_sums=True)
    for part in np.array_split(X, 4):
        model.partial_fit(part)
    np.testing.assert_allclose(model.correlations_, exact.correlations_, atol=1e-8)
    for a, b in zip(model.transform(X), exact.transform(views), strict=True):
        upto_signs(a, b, atol=1e-8)
    assert model.n_samples_seen_ == 150
    side_by_side = StreamCCA(1, column_groups=columns, n_jobs=2).fit(np.array_split(X, 4))
    np.testing.assert_allclose(side_by_side.correlations_, exact.correlations_, atol=1e-8)
    assert model.estimate_cost(X).seconds >= 0


@pytest.mark.parametrize(
    ("given_", "rows", "targets", "complaint"),
    [
        ({}, X, None, "requires y to be passed"),
        ({}, X, np.ones(150), "view 1 has no variance"),
        ({"n_components": 3}, SEPALS, PETALS, "more than 2: the ranks of the views"),
        ({"reg": [1, 2, 3]}, SEPALS, PETALS, "reg has 3 entries, but there are 2 views"),
        ({"column_groups": [("a", [9], None)]}, X, None, "not among the 4 columns"),
        (
            {"column_groups": [("a", [0], None)], "feature_map": AdditiveMap(Hellinger())},
            X,
            None,
            "not both",
        ),
    ],
)
def test_bad_input_of_sums(given_, rows, targets, complaint):
    with pytest.raises(ValueError, match=complaint):
        StreamCCA(**given_).fit(rows, targets)


@given(seed=st.integers(0, 10**6), explicit=st.booleans())
@settings(max_examples=15)
def test_weights_are_copies(seed, explicit):
    rng = np.random.default_rng(seed)
    views = [rng.gamma(1.0, size=(30, 3)).round(2) for _ in range(3)]
    weights = rng.integers(0, 3, 30)
    weights[:5] = 1, 2, 1, 2, 3
    many = rng.permutation(np.repeat(np.arange(30), weights))
    maps = {"feature_map": AdditiveMap(Chi2(), 2)} if explicit else {"kernel": Gaussian("median")}
    model = KernelCCA(n_components=2, reg=0.1, **maps)
    a = clone(model).fit(views, sample_weight=weights)
    b = clone(model).fit([view[many] for view in views])
    np.testing.assert_allclose(a.correlations_, b.correlations_, atol=1e-8)
    np.testing.assert_allclose(a.score_correlations_, b.score_correlations_, atol=1e-7)
    for s, t in zip(a.transform(views), b.transform(views), strict=True):
        np.testing.assert_allclose(s, t, atol=1e-6)
    streamed = StreamCCA(2, reg=0.1).fit(views[0], views[1], sample_weight=weights)
    copies = StreamCCA(2, reg=0.1).fit(views[0][many], views[1][many])
    np.testing.assert_allclose(streamed.correlations_, copies.correlations_, atol=1e-10)


def test_features_of_finite_maps_give_the_same_numbers():
    exact = KernelCCA([Hellinger(), Linear()], 2).fit(SEPALS, PETALS)
    features = KernelCCA(
        [None, Linear()], n_components=2, feature_map=[AdditiveMap(Hellinger()), None]
    ).fit(SEPALS, PETALS)
    np.testing.assert_allclose(features.correlations_, exact.correlations_, atol=1e-8)
    for a, b in zip(
        features.transform(SEPALS, PETALS), exact.transform(SEPALS, PETALS), strict=True
    ):
        np.testing.assert_allclose(a, b, atol=1e-8)


@given(factor=st.floats(1e-3, 1e3))
@settings(max_examples=10)
def test_factors_of_kernels_do_not_matter(factor):
    one = KernelCCA([Chi2(), Linear()]).fit(SEPALS, PETALS)
    other = KernelCCA([factor * Chi2(), Linear()]).fit(SEPALS, PETALS)
    np.testing.assert_allclose(other.correlations_, one.correlations_, atol=1e-8)
    np.testing.assert_allclose(
        other.similarity(SEPALS[:5], PETALS), one.similarity(SEPALS[:5], PETALS), atol=1e-6
    )


def test_matrices_sparse_rows_and_one_view_alone():
    kernels = [Chi2(), median_rule(PETALS)]
    model = KernelCCA(kernels, 3).fit(SEPALS, PETALS)
    grams = kernels[0].gram(SEPALS), kernels[1].gram(PETALS)
    matrix = KernelCCA("precomputed", 3).fit(*grams)
    x, y = model.transform(SEPALS, PETALS)
    np.testing.assert_allclose(matrix.transform(grams[0]), x, atol=1e-8)
    np.testing.assert_allclose(matrix.transform(None, grams[1]), y, atol=1e-8)
    sparse = KernelCCA(kernels, 3).fit(sp.csr_array(SEPALS), sp.csr_array(PETALS))
    np.testing.assert_allclose(sparse.transform(None, sp.csr_array(PETALS)), y, atol=1e-6)
    first = KernelCCA(kernels, 3).fit_transform(SEPALS, PETALS)
    np.testing.assert_allclose(first, x, atol=1e-10)
    vector = KernelCCA(n_components=1).fit(SEPALS, PETALS[:, 0])
    column = KernelCCA(n_components=1).fit(SEPALS, PETALS[:, :1])
    np.testing.assert_array_equal(vector.correlations_, column.correlations_)


def test_retrieval():
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(300, 3))
    A = np.tanh(hidden @ rng.normal(size=(3, 8))) + 0.1 * rng.normal(size=(300, 8))
    B = np.sin(hidden @ rng.normal(size=(3, 6))) + 0.1 * rng.normal(size=(300, 6))
    model = KernelCCA(n_components=6, null_correlations=True).fit(A[:200], B[:200])
    assert (model.correlations_[:3] > model.null_correlations_[:3]).all()
    S = model.similarity(A[200:], B[200:250])
    assert S.shape == (100, 50)
    assert np.abs(S).max() <= 1 + 1e-12
    for queries, table in (("X", S), ("y", S.T)):
        places = model.rank(A[200:], B[200:250], queries=queries)
        found = np.take_along_axis(table, places, axis=1)
        assert (np.diff(found, axis=1) <= 0).all()
    own = [int(np.flatnonzero(p == i)[0]) for i, p in enumerate(model.rank(A[200:], B[200:]))]
    assert np.median(own) < 10  # of 100; 50 by chance
    x, y = model.transform(A[200:201], B[200:201])
    cosine = np.sum(x * y * model.correlations_**2) / (
        np.linalg.norm(x * model.correlations_) * np.linalg.norm(y * model.correlations_)
    )
    assert S[0, 0] == pytest.approx(cosine)


def test_files_and_names(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(SEPALS, columns=["length", "width"])
    landmarks = NystroemMap(Chi2(), 9, random_state=0)
    model = KernelCCA(n_components=2, feature_map=[None, landmarks]).fit(frame, PETALS)
    assert [*model.feature_names_in_] == ["length", "width"]
    hilbin.save(model, tmp_path / "model")
    loaded = hilbin.load(tmp_path / "model")
    for a, b in zip(loaded.transform(frame, PETALS), model.transform(frame, PETALS), strict=True):
        np.testing.assert_array_equal(a, b)
    model.correlations_ = model.correlations_[:1]
    hilbin.save(model, tmp_path / "forged")
    with pytest.raises(ValueError, match=r"correlations_|components"):
        hilbin.load(tmp_path / "forged")


@pytest.mark.parametrize(
    ("given_", "first", "second", "complaint"),
    [
        ({}, SEPALS, PETALS[1:], "X has 150 rows, but y has 149"),
        ({}, SEPALS, np.ones((150, 2)), "y, the second view: X has no variance"),
        ({}, np.ones((150, 2)), PETALS, "X has no variance"),
        ({}, SEPALS, None, "requires y to be passed"),
        ({}, [SEPALS, PETALS[:9], PETALS], None, "view 0 has 150 rows, but view 1 has 9"),
        ({}, [SEPALS], None, "a list of two or more views"),
        ({}, [SEPALS, None, PETALS], None, "a list of two or more views"),
        ({"kernel": Chi2()}, [SEPALS, PETALS, -PETALS], None, "view 2: .* is negative, but Chi2"),
        ({"kernel": [None] * 3}, SEPALS, PETALS, "kernel has 3 entries, but there are 2 views"),
        ({"kernel": [None, Chi2()]}, SEPALS, -PETALS, "the second view: .* is negative, but"),
        ({"n_components": 3, "kernel": Linear()}, SEPALS, PETALS, "more than 2: the ranks of"),
        ({"n_components": 0}, SEPALS, PETALS, "n_components, if not None, must be"),
        ({"reg": -1}, SEPALS, PETALS, "reg must be a number >= 0"),
        ({"reg": (1, 2, 3)}, SEPALS, PETALS, "reg has 3 entries, but there are 2 views"),
        ({"kernel": [None, "linear"]}, SEPALS, PETALS, "y, the second view: kernel must be"),
    ],
)
def test_bad_input(given_, first, second, complaint):
    with pytest.raises(ValueError, match=complaint):
        KernelCCA(**given_).fit(first, second)


def test_bad_new_rows():
    model = KernelCCA(n_components=1).fit(SEPALS, PETALS)
    with pytest.raises(ValueError, match="give rows of a view"):
        model.transform(None)
    with pytest.raises(ValueError, match="y, the second view: X has 3 features"):
        model.transform(None, X[:, :3])
    with pytest.raises(ValueError, match="queries must be one of"):
        model.rank(SEPALS, PETALS, queries="text")


def test_weighted_rows_are_not_permuted():
    with pytest.raises(ValueError, match="null_correlations permutes rows"):
        KernelCCA(null_correlations=True).fit(SEPALS, PETALS, sample_weight=np.ones(150))
