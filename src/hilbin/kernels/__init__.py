"""Kernels: immutable values with Gram matrices, composed by ``+``, ``*`` and wrappers."""

from hilbin.kernels.additive import AdditiveKernel, HomogeneousKernel, StationaryKernel
from hilbin.kernels.alignment import align_weights, alignment_gradient, kernel_alignment
from hilbin.kernels.bandwidth import Quantile, Sparsity
from hilbin.kernels.base import Kernel, NotPositiveDefiniteWarning
from hilbin.kernels.check import check_kernel
from hilbin.kernels.chi2 import Chi2
from hilbin.kernels.columns import OnColumns
from hilbin.kernels.combine import Product, Sum, WeightedSum, product_kernel
from hilbin.kernels.exponential import Exponential
from hilbin.kernels.gcs import GCS, geometric_profile
from hilbin.kernels.graph import commute_kernel, diffusion_kernel, knn_graph
from hilbin.kernels.hellinger import Hellinger
from hilbin.kernels.intersection import Intersection
from hilbin.kernels.jensen_shannon import JensenShannon
from hilbin.kernels.linear import Linear, Polynomial
from hilbin.kernels.permutations import flips, rotations90, shifts
from hilbin.kernels.psd import is_psd, repair_psd
from hilbin.kernels.radial import Gaussian, Laplace, PValue
from hilbin.kernels.reordering import Reordering, reorder
from hilbin.kernels.scaling import kernel_scale
from hilbin.kernels.sets import MaxMatch, PyramidMatch, PyramidMatchMap, SumMatch
from hilbin.kernels.symmetric_kl import SymmetricKL
from hilbin.kernels.tangent import TangentDistance
from hilbin.kernels.transforms import MatchDistance, TransformIntegration
from hilbin.kernels.wrap import Normalized, Power, Scaled

__all__ = [
    "GCS",
    "AdditiveKernel",
    "Chi2",
    "Exponential",
    "Gaussian",
    "Hellinger",
    "HomogeneousKernel",
    "Intersection",
    "JensenShannon",
    "Kernel",
    "Laplace",
    "Linear",
    "MatchDistance",
    "MaxMatch",
    "Normalized",
    "NotPositiveDefiniteWarning",
    "OnColumns",
    "PValue",
    "Polynomial",
    "Power",
    "Product",
    "PyramidMatch",
    "PyramidMatchMap",
    "Quantile",
    "Reordering",
    "Scaled",
    "Sparsity",
    "StationaryKernel",
    "Sum",
    "SumMatch",
    "SymmetricKL",
    "TangentDistance",
    "TransformIntegration",
    "WeightedSum",
    "align_weights",
    "alignment_gradient",
    "check_kernel",
    "commute_kernel",
    "diffusion_kernel",
    "flips",
    "geometric_profile",
    "is_psd",
    "kernel_alignment",
    "kernel_scale",
    "knn_graph",
    "product_kernel",
    "reorder",
    "repair_psd",
    "rotations90",
    "shifts",
]
