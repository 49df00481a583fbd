"""Maps: kernels as explicit features, by scikit-learn transformers that state their error."""

from hilbin.maps.additive import AdditiveMap
from hilbin.maps.base import KernelMap, MapError
from hilbin.maps.fourier import FourierMap
from hilbin.maps.nodes import NodeInner
from hilbin.maps.nystroem import NystroemMap
from hilbin.maps.pq import PQCodes, ProductQuantizer
from hilbin.maps.projection import SparseProjectionMap
from hilbin.maps.sparse import SparseMap

__all__ = [
    "AdditiveMap",
    "FourierMap",
    "KernelMap",
    "MapError",
    "NodeInner",
    "NystroemMap",
    "PQCodes",
    "ProductQuantizer",
    "SparseMap",
    "SparseProjectionMap",
]
