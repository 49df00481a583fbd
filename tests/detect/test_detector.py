"""DeformableDetector: what it learns from drawn scenes, its files, and bad input."""

import pickle
import warnings

import numpy as np
import pytest
from PIL import Image
from scenes import scene
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import hilbin
from hilbin.detect import BoxWarning, DeformableDetector, iou, match_boxes, run_all
from hilbin.detect.learning import choose_overlap
from hilbin.detect.template import CONTEXT
from hilbin.images import ImageError, UnreadableImageWarning

SCENES = [scene(seed) for seed in range(12)]
IMAGES = [picture for picture, _, _ in SCENES]
BOXES = [faces for _, faces, _ in SCENES]
SETTINGS = {
    "root": {},
    "words": {"n_words": 32},
    "parts": {"n_parts": 2},
    "components": {"n_components": 2, "mirror": False},
}


@pytest.fixture(scope="module", params=SETTINGS)
def fitted(request):
    model = DeformableDetector(area=1600, random_state=0, **SETTINGS[request.param])
    return model.fit(IMAGES[:8], BOXES[:8])


@pytest.fixture(scope="module")
def root():
    return DeformableDetector(area=1600, random_state=0).fit(IMAGES[:8], BOXES[:8])


def test_drawn_scenes_are_learned(fitted):
    assert fitted.score(IMAGES[8:], BOXES[8:]) == 1
    assert fitted.converged_
    found = fitted.predict(IMAGES[8:])
    precision, recall = match_boxes(found, BOXES[8:]).at(fitted.threshold_)
    assert precision == recall == 1
    for boxes in found:
        assert (np.diff(boxes.scores) <= 0).all()
        assert ((boxes.probabilities >= 0) & (boxes.probabilities <= 1)).all()
        assert (np.diff(boxes.probabilities) <= 0).all()


def test_a_saved_detector_finds_the_same(fitted, tmp_path):
    hilbin.save(fitted, tmp_path / "model.hilbin")
    for again in (hilbin.load(tmp_path / "model.hilbin"), pickle.loads(pickle.dumps(fitted))):
        for a, b in zip(fitted.predict(IMAGES[8:]), again.predict(IMAGES[8:]), strict=True):
            np.testing.assert_array_equal(a.coordinates, b.coordinates)
            np.testing.assert_array_equal(a.probabilities, b.probabilities)


def test_the_same_seed_gives_the_same_detector(fitted):
    again = clone(fitted).fit(IMAGES[:8], BOXES[:8])
    for a, b in zip(fitted.filters_, again.filters_, strict=True):
        np.testing.assert_array_equal(a, b)
    assert again.threshold_ == fitted.threshold_


def test_threads_change_rounding_alone(root):
    again = clone(root).set_params(n_jobs=2).fit(IMAGES[:8], BOXES[:8])
    np.testing.assert_allclose(again.filters_[0], root.filters_[0], atol=1e-2)


def test_mirrored_images_have_mirrored_boxes(root):
    for image, found in zip(IMAGES[8:], root.predict(IMAGES[8:]), strict=True):
        mirrored = root.predict([np.ascontiguousarray(image[:, ::-1])])[0].coordinates
        back = mirrored[:, [2, 1, 0, 3]] * [-1, 1, -1, 1] + [image.shape[1], 0, image.shape[1], 0]
        assert len(back) == len(found)
        assert (iou(found, back).max(axis=1) > 0.6).all()  # within a cell


def test_words_take_a_hundredth_of_the_memory(root):
    words = DeformableDetector(area=1600, n_words=32, random_state=0).fit(IMAGES[:8], BOXES[:8])
    assert root.memory_ >= 120 * words.memory_
    assert words.words_.shape == (32, 32)
    np.testing.assert_array_equal(words.words_[-1], np.eye(32)[-1])


def test_many_detectors_at_once_find_what_each_finds(root):
    words = DeformableDetector(area=1600, n_words=32, random_state=0).fit(IMAGES[:8], BOXES[:8])
    small = DeformableDetector(area=900, random_state=0).fit(IMAGES[:8], BOXES[:8])
    for models in ([root, small], [small, words, *[root] * 8]):
        for image in IMAGES[8:10]:
            for model, found in zip(models, run_all(models, image), strict=True):
                alone = model.predict([image])[0]
                np.testing.assert_allclose(found.coordinates, alone.coordinates)
                np.testing.assert_allclose(found.scores, alone.scores, atol=1e-4)


def test_a_threshold_of_ones_own(root):
    fixed = clone(root).set_params(threshold=0.25).fit(IMAGES[:4], BOXES[:4])
    assert fixed.threshold_ == 0.25
    low, high = (root.predict(IMAGES[8:], threshold) for threshold in (-1.5, 0.0))
    assert sum(map(len, low)) > sum(map(len, high))
    assert min(boxes.scores.min(initial=0) for boxes in high) >= 0


def test_things_that_overlap_are_told_apart(root):
    assert root.overlap_ == 0.3
    assert clone(root).set_params(overlap=0.45).fit(IMAGES[:3], BOXES[:3]).overlap_ == 0.45
    apart, near, same = (np.array([[0, 0, 9, 10], [x, 0, x + 9, 10]]) for x in (9, 4, 0))
    none = np.empty((0, 4))
    assert choose_overlap([apart, none, apart[:1]]) == 0.3
    assert choose_overlap([near] * 9) == pytest.approx(5 / 13)
    assert choose_overlap([*[apart] * 39, same]) == 0.3  # drawn twice by mistake
    assert choose_overlap([same] * 9) == 0.5
    pyramid = root.pyramid(IMAGES[8])
    found = root.find(pyramid, -2.0)
    shape = root.templates_[0].shape
    whole = pyramid.boxes(found.window, shape, CONTEXT)  # not clipped to the image
    assert len(whole) > 5
    assert (iou(whole, whole) - np.eye(len(whole))).max() <= 0.3 + 1e-9


def test_parts_everywhere_find_no_less():
    model = DeformableDetector(area=1600, n_parts=2, random_state=0).fit(IMAGES[:6], BOXES[:6])
    for image in IMAGES[8:]:
        pyramid = model.pyramid(image)
        lazy, exact = (model.find(pyramid, exact=which).boxes for which in (False, True))
        assert len(lazy) <= len(exact)


def test_files_are_read_as_arrays_are(root, tmp_path):
    path = tmp_path / "scene.png"
    Image.fromarray(IMAGES[8]).save(path)
    a, b = (root.predict([source])[0] for source in (path, IMAGES[8]))
    np.testing.assert_array_equal(a.coordinates, b.coordinates)


def test_ignored_boxes_are_neither_objects_nor_background(root):
    flags = [[False, True]] * 8
    model = DeformableDetector(area=1600, random_state=0).fit(IMAGES[:8], BOXES[:8], flags)
    assert model.score(IMAGES[8:], BOXES[8:]) == 1
    assert root.score(IMAGES[8:], BOXES[8:], [[False, True]] * 4) == 1


def test_callback_and_verbose(capsys):
    told = []
    DeformableDetector(area=1600, verbose=1, random_state=0).fit(
        IMAGES[:3], BOXES[:3], callback=lambda *stage: told.append(stage)
    )
    names = [name for name, _, _ in told]
    assert list(dict.fromkeys(names)) == ["reading images", "learning", "calibrating"]
    assert all(0 <= done <= total for _, done, total in told)
    assert "template 0" in capsys.readouterr().out


def test_a_fit_that_is_cut_short_is_usable():
    model = DeformableDetector(area=1600, max_time=1e-9, tol=1e-6, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model.fit(IMAGES[:4], BOXES[:4])
    assert not model.converged_
    assert len(model.predict(IMAGES[8:9])) == 1


def test_boxes_that_no_window_meets_are_listed():
    boxes = [list(b) for b in BOXES[:8]]
    boxes[2] = [*boxes[2], [3, 5, 157, 12]]
    model = DeformableDetector(area=1600, random_state=0).fit(IMAGES[:8], boxes)
    (entry,) = model.unreachable_
    assert (entry["image"], entry["box"]) == ("images[2]", 2)
    assert 0 <= entry["iou"] < 0.5
    assert model.score(IMAGES[8:], BOXES[8:]) == 1


def test_boxes_that_cannot_be_used_are_left_out():
    nan, empty, far = [np.nan, 0, 9, 9], [5, 5, 5, 9], [900, 900, 950, 950]
    boxes = [[*b] for b in BOXES[:4]]
    boxes[1] = [nan, *boxes[1], empty, far]
    with pytest.warns(BoxWarning) as caught:
        model = DeformableDetector(area=1600, random_state=0).fit(IMAGES[:4], boxes)
    told = [str(w.message) for w in caught if w.category is BoxWarning]
    assert len(told) == 3
    assert all("images[1]" in message for message in told)
    assert model.score(IMAGES[8:], BOXES[8:]) == 1


def test_boxes_partly_outside_are_kept():
    picture = np.pad(IMAGES[0], 40, mode="edge")
    x0, y0, x1, y1 = BOXES[0][0]
    cut = picture[40 : 40 + 112, 40 + (x0 + x1) // 2 - 8 :]  # the left half of a face is outside
    box = [x0 - (x0 + x1) // 2 + 8, y0, x1 - (x0 + x1) // 2 + 8, y1]
    with warnings.catch_warnings():
        warnings.simplefilter("error", BoxWarning)
        model = DeformableDetector(area=1600, random_state=0)
        model.fit([*IMAGES[:4], cut], [*BOXES[:4], [box]])
    assert model.score(IMAGES[8:], BOXES[8:]) == 1


def test_images_that_cannot_be_read(root, tmp_path):
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"no image")
    with pytest.warns(UnreadableImageWarning, match=r"broken\.jpg"):
        model = clone(root).fit([broken, *IMAGES[:4]], [[], *BOXES[:4]])
    assert model.score(IMAGES[8:], BOXES[8:]) == 1
    with pytest.warns(UnreadableImageWarning, match=r"broken\.jpg"):
        found = root.predict([broken, IMAGES[8]])
    assert len(found[0]) == 0
    assert len(found[1]) == 2
    with pytest.raises(ValueError, match=r"none of the 1 images can be read.*broken\.jpg"):
        clone(root).fit([broken], [[[0, 0, 40, 40]]])
    with pytest.raises(ImageError):
        run_all([root], broken)


def test_no_boxes_and_boxes_in_one_image():
    model = DeformableDetector(area=1600, random_state=0)
    with pytest.raises(ValueError, match="no box to learn from"):
        model.fit(IMAGES[:2], [[], []])
    with pytest.raises(ValueError, match="no box to learn from"):
        model.fit(IMAGES[:1], BOXES[:1], [[True, True]])
    with pytest.warns(UserWarning, match="one image only"):
        model.fit(IMAGES[:3], [BOXES[0], [], []])
    assert model.threshold_ == 0
    assert model.predict(IMAGES[:1])[0].probabilities is None


def test_images_smaller_than_the_template(root):
    for size in [(8, 8), (1, 1), (20, 300), (2, 2, 3)]:
        found = root.predict([np.zeros(size, np.uint8)])[0]
        assert found.coordinates.shape == (0, 4)
    model = clone(root).fit([*IMAGES[:4], np.zeros((6, 6), np.uint8)], [*BOXES[:4], []])
    assert model.score(IMAGES[8:], BOXES[8:]) == 1


@pytest.mark.parametrize("form", ["gray", "color", "alpha", "deep", "float"])
def test_images_of_every_kind(root, form):
    image = IMAGES[8]
    image = {
        "gray": image,
        "color": np.repeat(image[:, :, None], 3, axis=2),
        "alpha": np.dstack([image, image, image, np.full_like(image, 255)]),
        "deep": image.astype(np.uint16) * 257,
        "float": image / 255,
    }[form]
    assert match_boxes(root.predict([image]), BOXES[8:9]).at(root.threshold_) == (1, 1)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "n_components"),
        ({"n_parts": -1}, "n_parts"),
        ({"n_words": 257}, "n_words"),
        ({"area": 0}, "area"),
        ({"upsample": 9}, "upsample"),
        ({"C": -1.0}, "C must"),
        ({"threshold": np.nan}, "threshold"),
        ({"overlap": 2}, "overlap"),
        ({"tol": 0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"max_time": -1}, "max_time"),
    ],
)
def test_parameters_are_checked(parameters, message):
    with pytest.raises(ValueError, match=message):
        DeformableDetector(**parameters).fit(IMAGES[:2], BOXES[:2])


def test_arguments_are_checked():
    model = DeformableDetector(area=1600)
    with pytest.raises(ValueError, match="boxes has 1 entries for 2 images"):
        model.fit(IMAGES[:2], BOXES[:1])
    with pytest.raises(ValueError, match=r"boxes\[1\]"):
        model.fit(IMAGES[:2], [BOXES[0], [[1, 2, 3]]])
    with pytest.raises(ValueError, match=r"ignore\[0\] has 1 values for 2 boxes"):
        model.fit(IMAGES[:2], BOXES[:2], [[True], [True, False]])
    with pytest.raises(NotFittedError):
        model.predict(IMAGES[:1])


FORGED = {
    "templates_": ([], None, ["x"]),
    "upsample_": (99, -99, 0.5),
    "overlap_": (1.5, "auto"),
    "threshold_": (None, "high"),
    "words_": (np.zeros((300, 32), np.float32), np.zeros((4, 31), np.float32)),
    "calibration_": ("none", 3),
    "objective_": (np.zeros(2),),
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, some in FORGED.items() for v in some])
def test_forged_models_are_refused(root, name, value, tmp_path):
    forged = pickle.loads(pickle.dumps(root))
    setattr(forged, name, value)
    with pytest.raises(ValueError, match=r".+"):
        forged._check_state()


@pytest.mark.parametrize(
    "changes",
    [
        {"root": np.zeros((2, 32, 9), np.float32)},
        {"root": np.full((7, 32, 7), np.nan, np.float32)},
        {"bias": np.nan},
        {"least": np.nan},
        {"parts": np.zeros((1, 6, 32, 6), np.float32)},
        {
            "parts": np.zeros((1, 6, 32, 6), np.float32),
            "anchors": np.array([[0, 90]], np.int32),
            "deformation": np.zeros((1, 4), np.float32),
        },
    ],
)
def test_forged_templates_are_refused(root, changes):
    forged = pickle.loads(pickle.dumps(root.templates_[0]))
    vars(forged).update(changes)
    with pytest.raises(ValueError, match=r".+"):
        forged._check_state()
