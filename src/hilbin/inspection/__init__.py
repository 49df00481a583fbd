"""Inspection: what a fitted model did, and why, for any classifier.

The public names (the bodies follow)::

    class_scores(model, X) -> (n, n_classes)     decision_function (two columns -f, f for two
                                                 classes), else predict_proba
    class_probabilities(model, X) -> (n, n_classes) or None
    additive(model) -> AdditiveModel or None     .intercept (n_classes,), .contributions(X) ->
                                                 (n, d, n_classes), .scores(X) -> (n, n_classes)
    contributions(model, X) -> Contributions     .values (n, d, n_classes), .intercept; TypeError if
                                                 the model is no sum over the columns
    leave_column_out(model, X, background=None) -> (n, d, n_classes)   for models that are no sums
    importances(model, X, *, feature_names=None, max_rows=300) -> Importances
                                                 .names, .values (d,), .by_class (d, n_classes),
                                                 .exact; .order
    shape_functions(model, X, features, names) -> list of ShapeFunction
    heat_map(features, model, image, *, class_=None, versus=None) -> (h, w)
    occlusion(features, model, image, *, n_cells=8) -> (rows, columns, n_classes)
    explain_row(model, X, row, *, class_=None, versus=None, feature_names=None, name=None,
                calibration=None) -> Explanation
    explain_image(features, model, image, *, class_=None, versus=None, name=None, prefix="feature",
                  calibration=None) -> Explanation
                                                 .predicted, .label, .score, .scores, .probabilities,
                                                 .intercept, .features, .places, .heat, .exact,
                                                 .summary(), .caption()
    suspicious_labels(scores, y, classes=None, *, names=None, threshold=1.0, max_labels=50)
                                                 -> list of Suspicion; rows of NaN are skipped
    difference_hash(image) -> str; hash_distances(hashes, others)
    near_duplicates(test, train) -> list of (test index, train index, bits); images or hashes
    reliability(probabilities, y, classes=None, *, n_bins=10) -> Reliability
                                                 .confidence, .accuracy, .count,
                                                 .expected_calibration_error
    most_important_words(...), word patches      for image models that count words
    Evidence, VisualWord, Suspicion, Duplicate, Shape
    collect_evidence(model, X, y, *, features=None, title=None, names=None, feature_names=None,
                     rows=None, scores=None, probabilities=None, baselines=None, suspicious=None,
                     duplicates=None, unreadable=None, provenance=None, timings=None,
                     callback=None) -> Evidence  with ``features`` (a fitted image transformer), X
                                                 are image files; a Pipeline that begins with an
                                                 image transformer is taken apart

A pipeline is additive if its last step is and every other step makes each of its columns from one
input column: the scalers and encoders of scikit-learn, additive maps, and any transformer with an
attribute ``input_columns_`` (for each output column the number of its input column).
"""
