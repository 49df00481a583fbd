"""The words that matter most to an intersection SVM of texts."""

import importlib
import inspect
import re

import matplotlib.pyplot as plt
from sklearn.feature_extraction.text import TfidfVectorizer

from hilbin import inspection
from hilbin.estimators import IntersectionSVC
from hilbin.plot import importances

texts, labels = [], []
for topic in ("cluster", "linear_model", "metrics"):
    module = importlib.import_module(f"sklearn.{topic}")
    documents = [inspect.getdoc(getattr(module, name)) or "" for name in sorted(module.__all__)]
    parts = {part for text in documents for part in re.split(r"\n\s*\n", text)}
    found = sorted(part for part in parts if len(part.split()) >= 12 and ">>>" not in part)[:250]
    texts += found
    labels += [topic] * len(found)
words = TfidfVectorizer(min_df=2)
X = words.fit_transform(texts)
model = IntersectionSVC(C=1.0).fit(X, labels)
names = words.get_feature_names_out().tolist()
axes = plt.figure(figsize=(6, 3.6)).gca()
importances(inspection.importances(model, X, feature_names=names), top=15, ax=axes)
