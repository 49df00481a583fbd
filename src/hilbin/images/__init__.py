"""Images: files to descriptors to words to non-negative rows.

Every transformer takes a list of files or arrays and gives one row per image, ready for the
kernels, maps and estimators of the other rooms, or for any model of scikit-learn.
"""

from hilbin.images._grids import LocalGrid, WordGrid
from hilbin.images.augment import augment, distort, parse_transforms
from hilbin.images.bag import BagOfWords
from hilbin.images.codebook import Codebook
from hilbin.images.codes import LBP, Centrist, ColorHistogram
from hilbin.images.concat import ImageFeatures
from hilbin.images.edges import EdgeHistogram
from hilbin.images.fisher import FisherVector
from hilbin.images.folders import find_images, labeled_images
from hilbin.images.hog import FHOG, HOG
from hilbin.images.invariance import FourierMagnitude, normalize_contrast, normalize_moments
from hilbin.images.normalize import HistogramNormalizer
from hilbin.images.onnx_features import OnnxFeatures
from hilbin.images.pyramid import SpatialPyramid
from hilbin.images.read import (
    ImageError,
    UnreadableImageWarning,
    gray,
    in_color,
    read_image,
    resized,
)
from hilbin.images.rotation import RadialProfile, RotationIntegrated
from hilbin.images.sift import DenseSIFT

__all__ = [
    "FHOG",
    "HOG",
    "LBP",
    "BagOfWords",
    "Centrist",
    "Codebook",
    "ColorHistogram",
    "DenseSIFT",
    "EdgeHistogram",
    "FisherVector",
    "FourierMagnitude",
    "HistogramNormalizer",
    "ImageError",
    "ImageFeatures",
    "LocalGrid",
    "OnnxFeatures",
    "RadialProfile",
    "RotationIntegrated",
    "SpatialPyramid",
    "UnreadableImageWarning",
    "WordGrid",
    "augment",
    "distort",
    "find_images",
    "gray",
    "in_color",
    "labeled_images",
    "normalize_contrast",
    "normalize_moments",
    "parse_transforms",
    "read_image",
    "resized",
]
