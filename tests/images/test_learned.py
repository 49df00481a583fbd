"""What is learned from descriptors: codebooks and mixtures; dense SIFT and HOG as they are used."""

import numpy as np
import pytest
from pictures import drawn
from scipy.stats import norm
from sklearn.cluster import KMeans
from sklearn.utils.estimator_checks import parametrize_with_checks

from hilbin.images import FHOG, BagOfWords, Codebook, DenseSIFT, FisherVector
from hilbin.images.fisher import FAINT
from hilbin.images.words import paint

PICTURES = [drawn(i) for i in range(6)]


@parametrize_with_checks([Codebook(4)])
def test_codebook_is_an_estimator(estimator, check):
    check(estimator)


def test_codebook_is_as_good_as_k_means():
    points = np.random.default_rng(0).normal(size=(3000, 8)).astype(np.float32) + 50
    ours = Codebook(20, random_state=0, tol=1e-5, max_iter=300).fit(points)
    theirs = KMeans(20, n_init=1, random_state=0).fit(points)
    assert ours.inertia_ < 1.03 * theirs.inertia_
    gaps = ((points[:, None] - ours.words_) ** 2).sum(axis=2)
    np.testing.assert_array_equal(ours.predict(points), gaps.argmin(axis=1))
    assert ours.inertia_ == pytest.approx(gaps.min(axis=1).sum(), rel=1e-4)


def test_words_are_means_of_their_points():
    points = np.random.default_rng(1).normal(size=(500, 3))
    book = Codebook(6, random_state=0, tol=0, max_iter=500).fit(points)
    for word in range(6):
        mean = points[book.labels_ == word].mean(axis=0)
        np.testing.assert_allclose(book.words_[word], mean, atol=1e-5)


def test_fewer_places_than_words():
    points = np.repeat(np.eye(3), 5, axis=0)
    book = Codebook(6, random_state=0).fit(points)
    assert book.inertia_ == pytest.approx(0, abs=1e-6)


def test_codebook_refuses_more_words_than_points():
    with pytest.raises(ValueError, match="n_words=9"):
        Codebook(9).fit(np.zeros((3, 2)))


def test_soft_assignment_shares_by_distance():
    bag = BagOfWords(DenseSIFT(6, (4,)), 10, assignment="soft", n_nearest=4, random_state=0)
    bag.fit(PICTURES)
    local = bag.descriptor_.local(PICTURES[0])[0]
    grid = bag.words(PICTURES[0])[0]
    x = local.features[2, 3]
    squares = ((x - bag.codebook_) ** 2).sum(axis=1)
    nearest = np.argsort(squares)[:4]
    np.testing.assert_array_equal(grid.ids[2, 3], nearest)
    shares = np.exp(-squares[nearest] / (2 * bag.softness_**2))
    np.testing.assert_allclose(grid.weights[2, 3], shares / shares.sum(), rtol=1e-3)


def test_bag_is_reproducible_and_reads_what_it_can(tmp_path):
    bag = BagOfWords(DenseSIFT(4), 8, random_state=3)
    rows = bag.fit([*PICTURES, tmp_path / "none.png"]).transform(PICTURES)
    again = BagOfWords(DenseSIFT(4), 8, random_state=3, n_jobs=2)
    again.fit([*PICTURES, tmp_path / "none.png"])
    np.testing.assert_array_equal(again.transform(PICTURES), rows)


def test_bag_of_cells():
    rows = BagOfWords(FHOG(4), 6, random_state=0).fit_transform(PICTURES)
    np.testing.assert_allclose(rows.sum(axis=1), 1, rtol=1e-5)


def test_sift_without_contrast_is_zero():
    flat = DenseSIFT(8, (4,)).local(np.full((40, 40), 9, np.uint8))[0]
    assert not flat.features.any()


def test_root_sift_has_length_one():
    grid = DenseSIFT(8, (4,), root=True).local(PICTURES[0])[0]
    np.testing.assert_allclose((grid.features**2).sum(axis=2), 1, rtol=1e-5)


def test_sift_places_and_sets():
    sift = DenseSIFT(8, (4, 6))
    small, large = sift.local(PICTURES[0])
    assert (small.ys[0], small.size, large.xs[0], large.size) == (6, 16, 9, 24)
    assert small.ys[-1] + 6 <= PICTURES[0].shape[0] - 1
    (points,) = sift.sets(PICTURES[:1])
    assert points.shape == (small.features.size // 128 + large.features.size // 128, 128)


def test_fisher_vector_by_its_definition():
    fisher = FisherVector(DenseSIFT(6, (4,)), 3, n_dimensions=5, random_state=0).fit(PICTURES)
    x = (fisher.descriptor_.points(PICTURES[0]) - fisher.center_) @ fisher.components_.T
    density = np.stack(
        [
            w * norm.pdf(x, m, s).prod(axis=1)
            for w, m, s in zip(fisher.weights_, fisher.means_, fisher.deviations_, strict=True)
        ],
        axis=1,
    )
    share = density / density.sum(axis=1, keepdims=True)
    first, second = [], []
    for k in range(3):
        u = (x - fisher.means_[k]) / fisher.deviations_[k]
        q, w = share[:, [k]], fisher.weights_[k]
        first.append((q * u).mean(axis=0) / np.sqrt(w))
        second.append((q * (u**2 - 1)).mean(axis=0) / np.sqrt(2 * w))
    row = np.concatenate([*first, *second])
    row = np.sign(row) * np.sqrt(np.abs(row))
    np.testing.assert_allclose(
        fisher.transform_image(PICTURES[0]), row / np.linalg.norm(row), rtol=1e-3, atol=1e-5
    )


def fisher_terms(fisher, picture):
    """What every descriptor adds to every sum: points x (2 K d)."""
    x, shares = fisher._shares(fisher.descriptor_.points(picture))
    u = (x[:, None] - fisher.means_) / fisher.deviations_
    first = shares[:, :, None] * u / np.sqrt(fisher.weights_)[:, None]
    second = shares[:, :, None] * (u**2 - 1) / np.sqrt(2 * fisher.weights_)[:, None]
    return np.hstack([first.reshape(len(x), -1), second.reshape(len(x), -1)])


def test_parts_of_a_fisher_vector_are_a_histogram():
    fisher = FisherVector(DenseSIFT(6, (4,)), 3, n_dimensions=5, parts=True, random_state=0)
    row = fisher.fit(PICTURES).transform_image(PICTURES[0])
    sums = fisher_terms(fisher, PICTURES[0]).sum(axis=0)
    expected = np.append(np.maximum(sums, 0), np.maximum(-sums, 0)) / np.abs(sums).sum()
    np.testing.assert_allclose(row, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("parts", [False, True])
def test_descriptors_share_what_a_fisher_vector_contributes(parts):
    fisher = FisherVector(DenseSIFT(6, (4,)), 3, n_dimensions=5, parts=parts, random_state=0)
    fisher.fit(PICTURES)
    terms = fisher_terms(fisher, PICTURES[0])
    sums = terms.sum(axis=0)
    shares = fisher._shares(fisher.descriptor_.points(PICTURES[0]))[1]
    faint = np.repeat(shares <= FAINT * shares.max(axis=0), 5, axis=1)  # five numbers a Gaussian
    terms = np.where(np.hstack([faint, faint]), 0, terms)
    amounts = np.random.default_rng(0).normal(size=fisher._n_features_out)
    expected, absent = np.zeros(len(terms)), 0.0
    for f, amount in enumerate(amounts):
        wanted = (1 if f < sums.size else -1) if parts else np.sign(sums[f])
        t = terms[:, f % sums.size]
        if np.sign(sums[f % sums.size]) == wanted:
            agreeing = np.where(np.sign(t) == wanted, np.abs(t), 0)
            expected += amount * agreeing / agreeing.sum()
        else:
            absent += amount
    heat = fisher.to_pixels(PICTURES[0], amounts)
    (grid,) = fisher.descriptor_.local(PICTURES[0])
    painted = paint(PICTURES[0].shape, [grid], [expected.reshape(grid.features.shape[:2])])
    np.testing.assert_allclose(heat, painted + absent / heat.size, rtol=1e-5, atol=1e-8)
    assert heat.sum() == pytest.approx(amounts.sum())


def test_fisher_vectors_do_not_depend_on_threads():
    rng = np.random.default_rng(0)
    images = list(rng.integers(0, 256, (24, 96, 96), np.uint8))
    fisher = FisherVector(DenseSIFT(4, (4,)), 16, parts=True, random_state=0)
    one, two, again = (fisher.set_params(n_jobs=n).fit(images).transform(images) for n in (1, 2, 2))
    np.testing.assert_array_equal(two, again)
    np.testing.assert_array_equal(one, two)


def test_fisher_vector_of_many_narrow_dimensions():
    fisher = FisherVector(DenseSIFT(6, (4,)), 2, n_dimensions=64, random_state=0).fit(PICTURES)
    fisher.deviations_ = fisher.deviations_ * np.float32(1e-4)  # their product is below float32
    row = fisher.transform_image(PICTURES[0])
    assert np.isfinite(row).all()
    assert np.linalg.norm(row) == pytest.approx(1, rel=1e-5)


def test_fisher_vector_of_nothing_is_zero():
    fisher = FisherVector(DenseSIFT(6, (4,)), 2, n_dimensions=4, random_state=0).fit(PICTURES)
    nothing = np.zeros((3, 3), np.uint8)
    assert not fisher.transform_image(nothing).any()
    np.testing.assert_allclose(fisher.to_pixels(nothing, np.ones(16)), 16 / 9)
    with pytest.raises(ValueError, match="n_components"):
        FisherVector(DenseSIFT(6, (4,)), 10**5).fit(PICTURES)
