"""What ``docs/coming_from.rst`` says of other libraries, where they are installed."""

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_digits
from sklearn.metrics import average_precision_score

from hilbin.detect import read_boxes
from hilbin.estimators import IntersectionSVC, KernelSVC, MapRidgeClassifier
from hilbin.images import HOG
from hilbin.kernels import Chi2, Exponential, Hellinger, Intersection


@pytest.fixture(scope="module")
def two():
    X, y = load_digits(return_X_y=True)
    some = np.isin(y, (3, 8))
    return (X[some] / 16).astype(np.float32), np.where(y[some] == 8, 1, -1)


@pytest.mark.parametrize(
    ("kind", "kernel"),
    [("INTER", Intersection()), ("CHI2", Exponential(Chi2(), 2 * 0.5))],
)
def test_cv2_machine(two, kind, kernel):
    cv2 = pytest.importorskip("cv2")
    if not hasattr(cv2, "ml"):
        pytest.skip("this OpenCV has no cv2.ml")
    X, y = two
    theirs = cv2.ml.SVM_create()
    theirs.setType(cv2.ml.SVM_C_SVC)
    theirs.setKernel(getattr(cv2.ml, f"SVM_{kind}"))
    theirs.setGamma(0.5)
    theirs.setC(1.0)
    theirs.setTermCriteria((cv2.TERM_CRITERIA_EPS, 100_000, 1e-7))
    theirs.train(X, cv2.ml.ROW_SAMPLE, y.astype(np.int32))
    raw = theirs.predict(X, flags=cv2.ml.STAT_MODEL_RAW_OUTPUT)[1].ravel()
    ours = KernelSVC(kernel, C=1.0, tol=1e-7).fit(X, y).decision_function(X)
    sign = np.sign(np.corrcoef(raw, ours)[0, 1])
    np.testing.assert_allclose(sign * raw, ours, atol=5e-3)


def test_cv2_hog():
    cv2 = pytest.importorskip("cv2")
    if not hasattr(cv2, "HOGDescriptor"):
        pytest.skip("this OpenCV has no HOGDescriptor")
    image = np.random.default_rng(0).integers(0, 256, (128, 64, 3)).astype(np.uint8)
    theirs = cv2.HOGDescriptor().compute(image).ravel()
    ours = HOG(size=(128, 64)).fit_transform([image])
    assert theirs.shape == (3780,)
    assert ours.shape[0] == 1
    assert (ours >= 0).all()


@pytest.mark.parametrize(
    ("solver", "loss", "atol"),
    [(1, "squared_hinge", 1e-4), (3, "hinge", 0.05)],  # of the hinge it stops after some sweeps
)
def test_liblinear_on_zeros_and_ones(two, solver, loss, atol):
    """Of zeros and ones the intersection kernel is linear; values are counted in hundredths."""
    liblinear = pytest.importorskip("liblinear.liblinearutil")
    X, y = (two[0] > 0.5).astype(float), two[1]
    theirs = liblinear.train(y.tolist(), X.tolist(), f"-s {solver} -c 0.1 -e 1e-8 -B 1 -q")
    _, _, values = liblinear.predict(y.tolist(), X.tolist(), theirs, "-q")
    ours = IntersectionSVC(
        C=0.1 / 100, loss=loss, intercept_scaling=10, tol=1e-8, max_iter=100_000
    ).fit(X, y)
    sign = 1 if theirs.get_labels()[0] == 1 else -1
    np.testing.assert_allclose(sign * np.ravel(values), ours.decision_function(X), atol=atol)


def test_svmlight_file(two, tmp_path):
    X, y = two
    path = tmp_path / "digits.libsvm"
    dump_svmlight_file(X, y, str(path), zero_based=False)
    ours = MapRidgeClassifier().fit(path)
    assert average_precision_score(y == 1, ours.decision_function(X)) > 0.95


def test_dlib_rectangles(tmp_path):
    """A rectangle of dlib includes its last pixel; a file of imglab has width and height."""
    dlib = pytest.importorskip("dlib")
    rectangle = dlib.rectangle(20, 30, 83, 157)
    path = tmp_path / "boxes.xml"
    path.write_text(
        "<dataset><images><image file='a.jpg'><box top='30' left='20' width='64' height='128'/>"
        "</image></images></dataset>"
    )
    box = read_boxes(path)[0].boxes[0]
    assert box.tolist() == [
        rectangle.left(), rectangle.top(), rectangle.right() + 1, rectangle.bottom() + 1
    ]  # fmt: skip
    assert rectangle.width() == box[2] - box[0]


def test_cv2_histograms(two):
    cv2 = pytest.importorskip("cv2")
    X = two[0][:10] / two[0][:10].sum(axis=1, keepdims=True)
    a, b = X[0], X[1]
    both = np.stack([a, b]).astype(float)
    common = cv2.compareHist(a, b, cv2.HISTCMP_INTERSECT)
    assert common == pytest.approx(Intersection().gram(both)[0, 1], rel=1e-5)
    K = Chi2().gram(both)
    distance = (K[0, 0] + K[1, 1]) / 2 - K[0, 1]
    assert cv2.compareHist(a, b, cv2.HISTCMP_CHISQR_ALT) == pytest.approx(4 * distance, rel=1e-4)
    hellinger = np.sqrt(1 - Hellinger().gram(both)[0, 1])
    assert cv2.compareHist(a, b, cv2.HISTCMP_HELLINGER) == pytest.approx(hellinger, rel=1e-4)
