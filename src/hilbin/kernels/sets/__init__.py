"""Kernels of sets of vectors, such as the local descriptors of an image.

A set is an array of shape (m, d), its points in rows, and every set may have another size; so a
collection of sets is no matrix, and these kernels are no
:class:`~hilbin.kernels.Kernel`: they have ``gram(sets, others)``, ``diag(sets)`` and may be called,
but do not take part in sums and wrappers. Learn with them by their matrices::

    K = kernel.gram(train_sets)
    model = SVC(kernel="precomputed").fit(K, y)
    model.predict(kernel.gram(test_sets, train_sets))

``SumMatch`` with the linear kernel or an explicit map and ``PyramidMatch`` also give rows
(``SumMatch.features``, ``PyramidMatchMap``), with which learning is linear in the number of sets.

An empty set, an array of shape (0, d), has the image 0: its kernel values are 0.
"""

from hilbin.kernels.sets.base import SetKernel
from hilbin.kernels.sets.matching import MaxMatch, SumMatch
from hilbin.kernels.sets.pyramid import PyramidMatch, PyramidMatchMap

__all__ = ["MaxMatch", "PyramidMatch", "PyramidMatchMap", "SetKernel", "SumMatch"]
