"""Tell which module of scikit-learn a paragraph documents: python run.py [FOLDER]."""

import importlib
import inspect
import re
import sys
from pathlib import Path

from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import classification_report
from sklearn.model_selection import train_test_split

import hilbin
from hilbin import TableClassifier
from hilbin.inspection import explain_row

TOPICS = ("cluster", "linear_model", "metrics", "preprocessing")


def paragraphs(topic: str) -> list[str]:
    """Return the paragraphs of the documentation of a module, without examples."""
    module = importlib.import_module(f"sklearn.{topic}")
    texts = [inspect.getdoc(getattr(module, name)) or "" for name in sorted(module.__all__)]
    parts = {part for text in texts for part in re.split(r"\n\s*\n", text)}
    return sorted(part for part in parts if len(part.split()) >= 12 and ">>>" not in part)


def main(folder: Path, most: int | None = None) -> float:
    """Train, evaluate, explain and save; return the accuracy."""
    folder.mkdir(parents=True, exist_ok=True)
    texts, labels = [], []
    for topic in TOPICS:
        found = paragraphs(topic)[:most]
        texts += found
        labels += [topic] * len(found)
    train, test, y_train, y_test = train_test_split(texts, labels, random_state=0, stratify=labels)
    words = CountVectorizer(min_df=2).fit(train)
    X_train, X_test = words.transform(train), words.transform(test)
    model = TableClassifier(prefer="explainable").fit(X_train, y_train)
    print(model.summary())
    print(classification_report(y_test, model.predict(X_test)))
    names = words.get_feature_names_out().tolist()
    why = explain_row(model.model_[-1], model.model_[0].transform(X_test), 0, feature_names=names)
    print(test[0], why.summary(), sep="\n\n")
    hilbin.save(model, folder / "topics.hilbin")
    (folder / "words.txt").write_text("\n".join(names), encoding="utf-8")
    return model.score(X_test, y_test)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results"))
