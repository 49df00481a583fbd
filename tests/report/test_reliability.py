"""Probabilities, importances, compared models, and accuracy without near-duplicates."""

import numpy as np
import pytest

from hilbin.inspection import Duplicate, Importances, reliability


def softmax(scores):
    powers = np.exp(scores)
    return powers / powers.sum(axis=1, keepdims=True)


def with_probabilities(evidence_of, **changes):
    scores = evidence_of(**changes).scores
    return evidence_of(**changes, probabilities=softmax(scores))


@pytest.mark.parametrize("images", [True, False])
def test_per_cent_instead_of_scores(evidence_of, page_of, images):
    evidence = with_probabilities(evidence_of, images=images)
    page = page_of(evidence)
    found = reliability(evidence.probabilities, evidence.truth, np.arange(4))
    assert "Reliability of the probabilities" in page.words
    error = f"{100 * found.expected_calibration_error:.1f}\u202f%"
    assert f"expected calibration error {error}" in page.words
    wrong = evidence.scores.argmax(axis=1) != evidence.truth
    lead = evidence.scores.max(axis=1) - evidence.scores[np.arange(60), evidence.truth]
    worst = int(np.where(wrong, lead, -1).argmax())
    assert f"{100 * evidence.probabilities[worst].max():.0f}\u202f%" in page.words
    plain = page_of(evidence_of(images=images))
    assert "Reliability" not in plain.words
    assert "calibration" not in plain.words


def test_bad_probabilities(evidence_of):
    with pytest.raises(ValueError, match="between 0 and 1"):
        evidence_of(probabilities=np.full((60, 4), -0.1))
    with pytest.raises(ValueError, match="probabilities must have the shape"):
        evidence_of(probabilities=np.ones((3, 4)))
    bad = np.full((60, 4), 0.25)
    bad[2, 1] = np.nan
    with pytest.raises(ValueError, match=r"probabilities\[2\] is not finite"):
        evidence_of(probabilities=bad)


def test_importances(evidence_of, page_of):
    values = np.array([[0.2, 0.4], [0.0, 0.0], [1.0, 3.0]])
    names = ["size", "nothing", "<b>age"]
    for exact in (True, False):
        found = Importances(names, values, exact)
        page = page_of(evidence_of(images=False, features=[], importances=found))
        assert "2 of 3 features make a difference." in page.words
        assert ("mean absolute contribution" in page.words) == exact
        assert ("replaced by its median" in page.words) != exact
        assert page.words.index("<b>age") < page.words.index("size")
    nothing = Importances(names, 0 * values, True)
    page = page_of(evidence_of(images=False, features=[], importances=nothing))
    assert "No feature makes a difference." in page.words


def test_accuracy_without_duplicates(evidence_of, page_of):
    evidence = evidence_of()
    right = evidence.scores.argmax(axis=1) == evidence.truth
    pairs = [Duplicate("a", evidence.names[i], 1.0, "x", "x") for i in range(20)]
    page = page_of(evidence_of(duplicates=pairs))
    percent = f"{100 * right[20:].mean():.1f}\u202f%"
    assert f"On the other 40 images the accuracy is {percent}." in page.words
    every = [Duplicate("a", name, 1.0, "x", "x") for name in evidence.names]
    assert "No other test examples are left." in page_of(evidence_of(duplicates=every)).words


def test_compared_models(evidence_of, page_of):
    given = [
        {"name": "linear <i>", "mean": 0.8, "standard_error": 0.02, "explainable": True},
        {"name": "exp-chi2", "mean": 0.85, "standard_error": 0.01, "explainable": False},
        {"name": "always class 0", "mean": 0.25},
    ]
    page = page_of(evidence_of(candidates=given, candidates_note="The reasons cost 5 points."))
    assert "Compared models" in page.words
    assert "The reasons cost 5 points." in page.words
    places = [page.words.index(text) for text in ("exp-chi2", "linear <i>", "always class 0")]
    assert places == sorted(places)


def test_what_every_description_is_worth(evidence_of, page_of):
    each = [
        {"name": "colors <b>", "columns": 1200, "accuracy": 0.7, "weight": 0.25},
        {"name": "words", "columns": 64, "accuracy": 0.8, "weight": 0.75},
    ]
    rules = {"accuracy": 0.85, "average": 0.86}
    page = page_of(evidence_of(channels={"rule": "accuracy", "rules": rules, "each": each}))
    assert "(rule: accuracy) reaches 85.0\u202f%, the plain average 86.0\u202f%" in page.words
    assert "colors <b>" in page.words
    assert "1,200" in page.words
    plain = {"rule": "average", "rules": {"average": 0.86}, "each": each}
    assert "All weights are the same" in page_of(evidence_of(channels=plain)).words
    assert "How useful each description" not in page_of(evidence_of()).words
