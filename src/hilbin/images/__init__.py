"""Images: files to descriptors to words to non-negative rows.

Every transformer takes a list of files or arrays and gives one row per image, ready for the
kernels, maps and estimators of the other rooms, or for any model of scikit-learn.
"""

from hilbin.images._grids import LocalGrid, WordGrid
from hilbin.images.bag import BagOfWords
from hilbin.images.codebook import Codebook
from hilbin.images.codes import LBP, Centrist, ColorHistogram
from hilbin.images.concat import Concat
from hilbin.images.fisher import FisherVector
from hilbin.images.folders import find_images, labelled_images
from hilbin.images.hog import FHOG, HOG
from hilbin.images.onnx_features import OnnxFeatures
from hilbin.images.pyramid import SpatialPyramid
from hilbin.images.read import (
    ImageError,
    UnreadableImageWarning,
    grey,
    in_color,
    read_image,
    resized,
)
from hilbin.images.sift import DenseSIFT

__all__ = [
    "FHOG",
    "HOG",
    "LBP",
    "BagOfWords",
    "Centrist",
    "Codebook",
    "ColorHistogram",
    "Concat",
    "DenseSIFT",
    "FisherVector",
    "ImageError",
    "LocalGrid",
    "OnnxFeatures",
    "SpatialPyramid",
    "UnreadableImageWarning",
    "WordGrid",
    "find_images",
    "grey",
    "in_color",
    "labelled_images",
    "read_image",
    "resized",
]
