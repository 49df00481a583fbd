import numpy as np
import pytest
import scipy.sparse as sp
from matplotlib import pyplot
from matplotlib.colors import to_hex
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

from hilbin.estimators import IntersectionSVC, IntersectionSVR, ShapeFunction
from hilbin.plot import explanation, shapes
from hilbin.plot.shapes import DOWN, GRAY, KINDS, UP


@pytest.fixture(autouse=True)
def close_figures():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def rows():
    """A feature that rises, one that falls, one that does both, one that says nothing, noise."""
    rng = np.random.default_rng(0)
    X = rng.random((400, 5))
    X[:, 3] = 0.25
    X[0] = 0.6, 0.7, 0.8, 0.25, 0.9
    score = 2 * X[:, 0] - 2 * X[:, 1] + 8 * (X[:, 2] - 0.5) ** 2
    return X, score, (score > np.median(score)).astype(int)


@pytest.fixture(scope="module")
def binary(rows):
    X, _, y = rows
    return IntersectionSVC(n_bins=10, C=1e-4).fit(X, y)


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True, as_frame=True)
    return X, IntersectionSVC().fit(X, np.array(["a", "b", "c"])[y])


def functions_of(ax):
    """The lines of a panel, without that of zero."""
    return [line for line in ax.lines if len(line.get_xdata()) > 2]


def legend_of(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_a_panel_for_every_feature_the_most_important_first(binary):
    axes = shapes(binary)
    assert axes.shape == (5,)
    by_range = sorted(binary.shape_functions_, key=lambda f: -f.range)
    assert [ax.get_title() for ax in axes] == [f.name for f in by_range]
    assert len({ax.get_ylim() for ax in axes}) == 1
    assert len(axes[0].figure.axes) == 5  # empty places are gone
    assert axes[0].figure.get_supylabel() == "contribution to the score of 1"


def test_at_most_twelve_panels():
    X = np.random.default_rng(1).random((60, 20))
    model = IntersectionSVC().fit(X, X[:, 7] > 0.5)
    axes = shapes(model)
    assert axes.size == 12
    assert axes[0].get_title() == "x7"
    assert shapes(model, range(20)).size == 20


def test_lines_are_the_functions(binary, rows):
    X, target, _ = rows
    exact = IntersectionSVR(n_bins=None).fit(X, target)
    for model, style in ((binary, "steps-post"), (exact, "default")):
        functions = [model.shape_functions_[j] for j in (4, 2, 0, 1)]
        for ax, function in zip(shapes(model, [4, 2, 0, 1]), functions, strict=True):
            (line,) = functions_of(ax)
            assert line.get_drawstyle() == style
            np.testing.assert_array_equal(line.get_xdata()[1:-1], function.values)
            np.testing.assert_array_equal(line.get_ydata()[1:-1], function.contributions)
            assert line.get_ydata()[0] == function.contributions[0]
            assert line.get_ydata()[-1] == function.contributions[-1]
            assert line.get_xdata()[0] < function.values[0]
            assert line.get_xdata()[-1] > function.values[-1]


def test_trends_are_colors(binary):
    axes = shapes(binary, ["x0", "x1", "x2", "x3"])
    colors = [functions_of(ax)[0].get_color() for ax in axes]
    trends = [binary.shape_functions_[j].trend for j in range(4)]
    assert trends == ["rising", "falling", "mixed", "flat"]
    assert colors == [KINDS[kind] for kind in ("rising", "falling", "mixed", "no effect")]
    assert legend_of(axes[0].figure) == ["rising", "mixed", "falling", "no effect"]
    assert [text.get_text() for text in axes[3].texts] == ["no effect"]
    assert axes[3].title.get_color() == GRAY
    assert not axes[0].texts


@pytest.mark.parametrize(
    ("contributions", "kind"),
    [
        ([0, 5, 4.5, 9], "mostly rising"),
        ([0, -5, -4.5, -9], "mostly falling"),
        ([0, 5, 3, 9], "mixed"),
        ([0, 5, 5, 9], "rising"),
    ],
)
def test_small_returns_do_not_hide_the_direction(contributions, kind):
    function = ShapeFunction("x", np.arange(4.0), np.array(contributions, float), stepped=True)
    model = Ridge().fit([[0.0], [1.0]], [0, 1])
    model.shape_functions_ = [function]
    (ax,) = shapes(model)
    assert functions_of(ax)[0].get_color() == KINDS[kind]
    assert legend_of(ax.figure) == [kind]


def test_a_line_per_class(iris):
    _, model = iris
    axes = shapes(model)
    assert [len(functions_of(ax)) for ax in axes] == [3] * 4
    assert legend_of(axes[0].figure)[:3] == ["class a", "class b", "class c"]
    assert axes[0].figure.get_supylabel() == "contribution to the score"
    (ax,) = shapes(model, 2, classes=["c", "a"])
    functions = model.shape_functions_[2].contributions
    for line, column in zip(functions_of(ax), (2, 0), strict=True):
        np.testing.assert_array_equal(line.get_ydata()[1:-1], functions[:, column])
    first, second = functions_of(ax)
    assert first.get_color() != second.get_color()


def test_monotone_lines_are_thick():
    x = np.tile(np.arange(30.0), 20)
    model = IntersectionSVC(C=1e-5).fit(x[:, None], x // 10)
    (ax,) = shapes(model)
    falls, both, _ = functions_of(ax)
    assert (np.diff(falls.get_ydata()) <= 0).all()
    assert not (np.diff(both.get_ydata()) <= 0).all()
    assert falls.get_linewidth() > both.get_linewidth()
    assert legend_of(ax.figure)[3:] == ["monotone", "mixed"]


def test_the_four_classes_that_matter_most():
    rng = np.random.default_rng(0)
    X = rng.random((300, 6))
    model = IntersectionSVC().fit(X, rng.integers(0, 6, 300))
    matter = sum(np.ptp(f.contributions, axis=0) for f in model.shape_functions_)
    axes = shapes(model)
    assert [len(functions_of(ax)) for ax in axes] == [4] * 6
    expected = sorted(np.argsort(-matter)[:4])
    assert legend_of(axes[0].figure)[:4] == [f"class {k}" for k in expected]
    (ax, *_) = shapes(model, classes=[5])  # the features of this class
    largest = np.argmax([np.ptp(f.contributions[:, 5]) for f in model.shape_functions_])
    assert ax.get_title() == f"x{largest}"


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_histogram_of_the_values(binary, rows, form):
    X = rows[0]
    without, with_values = shapes(binary, [0])[0], shapes(binary, [0], X=form(X))[0]
    (stairs,) = with_values.patches
    heights, edges, _ = stairs.get_data()
    assert (edges[0], edges[-1]) == with_values.get_xlim()
    ends = np.clip(X[:, 0], edges[0], edges[-1])
    counts = np.histogram(ends, edges)[0]
    np.testing.assert_allclose(heights / heights.max(), counts / counts.max())
    assert with_values.get_ylim()[0] < without.get_ylim()[0]  # there is room for it
    assert with_values.get_ylim()[1] == without.get_ylim()[1]


def test_given_axes(binary, iris):
    figure, grid = pyplot.subplots(2, 2)
    drawn = shapes(binary, [0, 1, 2], axes=grid)
    assert list(drawn) == list(grid.ravel()[:3])
    assert len({ax.get_ylim() for ax in drawn}) == 1
    assert grid[0, 0].get_legend() is not None
    assert not figure.legends
    assert not grid[1, 1].lines
    ax = pyplot.figure().add_subplot()
    assert list(shapes(iris[1], 0, axes=ax)) == [ax]


def test_long_names_are_cut(rows):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame({"a name that nobody would want to read": rows[0][:, 0]})
    model = IntersectionSVC().fit(X, rows[2])
    (ax,) = shapes(model)
    assert ax.get_title() == "a name that nobody would …"


def test_shapes_says_what_is_wrong(binary, iris, rows):
    for features in (["x0", "size"], [5], [-1], [0.5]):
        with pytest.raises(ValueError, match=r"features has .*(size|5|-1|0\.5).* from 0 to 4"):
            shapes(binary, features)
    with pytest.raises(ValueError, match="features is empty"):
        shapes(binary, [])
    with pytest.raises(ValueError, match=r"classes .* single score"):
        shapes(binary, classes=[1])
    with pytest.raises(ValueError, match="classes has 'd'"):
        shapes(iris[1], classes=["a", "d"])
    with pytest.raises(ValueError, match="classes is empty"):
        shapes(iris[1], classes=[])
    with pytest.raises(ValueError, match="X must have rows of 5 features"):
        shapes(binary, X=rows[0][:, :4])
    with pytest.raises(ValueError, match="axes must be at least 5"):
        shapes(binary, axes=pyplot.subplots(2, 2)[1])
    with pytest.raises(NotFittedError):
        shapes(IntersectionSVC())
    with pytest.raises(TypeError, match="shape_functions_"):
        shapes(Ridge().fit([[0.0], [1.0]], [0, 1]))


def bars_of(ax):
    """Contributions by label, from the bottom to the top, and where the bars begin."""
    labels = [label.get_text() for label in ax.get_yticklabels()]
    widths = {name: bar.get_width() for name, bar in zip(labels, ax.patches, strict=True)}
    return widths, [bar.get_x() for bar in ax.patches]


@pytest.mark.parametrize("n_bins", [10, None])
def test_bars_are_contributions_and_sum_to_the_score(rows, n_bins):
    X, _, y = rows
    model = IntersectionSVC(n_bins=n_bins).fit(X, y)
    each, score = model.explain(X[:1])[0], model.decision_function(X[:1])[0]
    ax = explanation(model, X[0])
    bars, begins = bars_of(ax)
    assert bars.pop("intercept") == pytest.approx(model.intercept_[0])
    assert bars.pop("1 other feature") == 0  # x3 says nothing
    for j in (0, 1, 2, 4):
        assert bars[f"x{j} = {X[0, j]:.4g}"] == pytest.approx(each[j])
    assert len(bars) == 4
    sizes = np.abs([*bars.values()])
    assert (np.diff(sizes) >= 0).all()  # the largest is the last, on top
    widths = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(begins, np.cumsum([0, *widths[:-1]]), atol=1e-12)
    assert sum(widths) == pytest.approx(score)
    assert ax.get_title() == f"score of 1: {score:+.3g}"


def test_colors_say_the_sign(binary, rows):
    ax = explanation(binary, rows[0][0])
    for bar in ax.patches[2:]:
        assert to_hex(bar.get_facecolor()) == (UP if bar.get_width() > 0 else DOWN)
    assert to_hex(ax.patches[0].get_facecolor()) == GRAY


def test_top_bars_and_one_for_the_others(binary, rows):
    x = rows[0][:1]
    each = binary.explain(x)[0]
    bars, _ = bars_of(explanation(binary, x, top=2))
    largest = np.argsort(-np.abs(each))[:2]
    assert list(bars)[:2] == ["intercept", "3 other features"]
    assert [name.split(" = ")[0] for name in list(bars)[2:]] == [f"x{j}" for j in largest[::-1]]
    assert sum(bars.values()) == pytest.approx(binary.decision_function(x)[0])


def test_the_first_of_two_classes(binary, rows):
    x = rows[0][:1]
    score = binary.decision_function(x)[0]
    for options in ({"class_": 0}, {"versus": 1}, {"class_": 0, "versus": 1}):
        ax = explanation(binary, x, **options)
        assert sum(bars_of(ax)[0].values()) == pytest.approx(-score)
        assert ax.get_title().startswith("score of 0")
    for options in ({"class_": 1}, {"versus": 0}):
        ax = explanation(binary, x, **options)
        assert sum(bars_of(ax)[0].values()) == pytest.approx(score)


def test_predicted_class_over_the_next(iris):
    X, model = iris
    x = X.iloc[[70]]
    scores = dict(zip("abc", model.decision_function(x)[0], strict=True))
    best, second, last = sorted(scores, key=scores.get, reverse=True)
    assert model.predict(x)[0] == best
    for options, expected, title in (
        ({}, scores[best] - scores[second], f"score of {best} over {second}"),
        ({"class_": last}, scores[last], f"score of {last}:"),
        ({"versus": last}, scores[best] - scores[last], f"score of {best} over {last}"),
        ({"class_": last, "versus": best}, scores[last] - scores[best], f"{last} over {best}"),
    ):
        ax = explanation(model, x, **options)
        assert sum(bars_of(ax)[0].values()) == pytest.approx(expected)
        assert title in ax.get_title()


def test_rows_of_a_data_frame_have_names(iris):
    X, model = iris
    by_row, by_frame = explanation(model, X.iloc[0]), explanation(model, X.iloc[[0]])
    assert bars_of(by_row) == bars_of(by_frame)
    assert f"petal width (cm) = {X.iloc[0, 3]:.4g}" in bars_of(by_row)[0]


def test_regression(rows):
    X, target, _ = rows
    model = IntersectionSVR().fit(X, target + 1000)
    ax = explanation(model, X[0])
    bars, _ = bars_of(ax)
    assert sum(bars.values()) == pytest.approx(model.predict(X[:1])[0])
    assert ax.get_title() == f"prediction: {model.predict(X[:1])[0]:.4g}"
    assert ax.get_xlim()[0] > 900  # the intercept does not dwarf the others
    with pytest.raises(ValueError, match="class_=1 is not a class"):
        explanation(model, X[0], class_=1)


@pytest.mark.parametrize("classes", [2, 3])
def test_sparse_rows(classes):
    rng = np.random.default_rng(0)
    X = sp.random_array((200, 30), density=0.3, rng=rng, format="csr")
    y = rng.integers(0, classes, 200)
    model = IntersectionSVC().fit(X, y)
    sparse, dense = explanation(model, X[[3]]), explanation(model, X[[3]].toarray())
    assert bars_of(sparse) == bars_of(dense)
    each = model.explain(X[[3]].toarray())[0].reshape(30, -1)
    silent = np.count_nonzero(~each.any(axis=1))
    assert silent > 15
    assert bars_of(sparse)[0][f"{silent} other features"] == pytest.approx(0)


def test_an_image_of_contributions():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, (80, 12)).astype(float)
    model = IntersectionSVC().fit(X, X[:, 5] > 4)
    ax = explanation(model, X[0], shape=(3, 4))
    image = ax.images[0]
    np.testing.assert_allclose(image.get_array(), model.explain(X[:1])[0].reshape(3, 4))
    assert image.norm.vmin == -image.norm.vmax  # no contribution is white
    assert ax.collections  # the outline
    assert explanation(model, np.zeros(12), shape=(3, 4)).images  # nothing to outline
    with pytest.raises(ValueError, match=r"shape=\(3, 5\) does not have 12 pixels"):
        explanation(model, X[0], shape=(3, 5))


def test_explanation_draws_on_given_axes(binary, rows):
    _, ax = pyplot.subplots()
    assert explanation(binary, rows[0][0], ax=ax) is ax
    assert len(ax.patches) == 6


def test_explanation_says_what_is_wrong(binary, iris, rows):
    X = rows[0]
    with pytest.raises(ValueError, match=r"x must be one row, got the shape \(2, 5\)"):
        explanation(binary, X[:2])
    with pytest.raises(ValueError, match="x must be one row"):
        explanation(binary, sp.csr_array(X[:3]))
    for top in (0, 2.5, True):
        with pytest.raises(ValueError, match="top must be"):
            explanation(binary, X[0], top=top)
    with pytest.raises(ValueError, match="class_='d' is not a class"):
        explanation(iris[1], iris[0].iloc[0], class_="d")
    with pytest.raises(ValueError, match="versus='d' is not a class"):
        explanation(iris[1], iris[0].iloc[0], versus="d")
    with pytest.raises(ValueError, match="versus='a' is the class that is explained"):
        explanation(iris[1], iris[0].iloc[0], class_="a", versus="a")
    with pytest.raises(ValueError, match="versus=1 is the class that is explained"):
        explanation(binary, X[0], class_=1, versus=1)
    with pytest.raises(NotFittedError):
        explanation(IntersectionSVC(), X[0])
    with pytest.raises(TypeError, match="explain"):
        explanation(Ridge().fit(X, X[:, 0]), X[0])
