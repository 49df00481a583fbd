"""Images: files to descriptors to words to non-negative rows.

Every transformer takes a list of files or arrays and gives one row per image, ready for the
kernels, maps and estimators of the other packages, or for any model of scikit-learn.

``DESCRIPTORS`` lists the features that can be asked for by name, such as ``sift``; the command
line takes its names and help texts from there.
"""

from hilbin.images.augment import augment, distort, parse_transforms
from hilbin.images.bag import BagOfWords, Codebook
from hilbin.images.descriptors import NamedFeatures
from hilbin.images.fisher import FisherVector
from hilbin.images.folders import find_images, labeled_images
from hilbin.images.hog import FHOG, HOG
from hilbin.images.image_features import ImageFeatures
from hilbin.images.invariance import (
    EdgeHistogram,
    FourierMagnitude,
    RadialProfile,
    RotationIntegrated,
)
from hilbin.images.local import LocalGrid
from hilbin.images.normalize import HistogramNormalizer
from hilbin.images.onnx_features import OnnxFeatures
from hilbin.images.pixel_words import LBP, Centrist, ColorHistogram
from hilbin.images.read import (
    ImageError,
    UnreadableImageWarning,
    gray,
    in_color,
    read_image,
    resized,
)
from hilbin.images.sift import DenseSIFT
from hilbin.images.standard_form import normalize_contrast, normalize_moments
from hilbin.images.words import SpatialPyramid, WordGrid

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

DESCRIPTORS: dict[str, NamedFeatures] = {
    "sift": NamedFeatures(
        "dense SIFT quantized by a codebook, spatial pyramid of 3 levels",
        lambda sample, seed: SpatialPyramid(BagOfWords.for_sample(sample, seed), 3),
        suits=lambda sample: BagOfWords.n_words_for(sample) >= 2,
    ),
    "fisher": NamedFeatures(
        "Fisher vectors of dense SIFT, their positive and negative parts",
        lambda sample, seed: FisherVector.for_sample(sample, seed),
        suits=lambda sample: FisherVector.n_components_for(sample) >= 8,
    ),
    "centrist": NamedFeatures(
        "census transform, spatial pyramid of 3 levels",
        lambda sample, seed: SpatialPyramid(Centrist(), 3),
        suits=lambda sample: True,
    ),
    "color": NamedFeatures(
        "color histogram, spatial pyramid of 2 levels",
        lambda sample, seed: SpatialPyramid(ColorHistogram(), 2),
        suits=lambda sample: sample.colorful,
    ),
    "hog": NamedFeatures(
        "histograms of oriented gradients over the whole image",
        lambda sample, seed: FHOG.for_sample(sample),
    ),
    "lbp": NamedFeatures(
        "local binary patterns, spatial pyramid of 3 levels",
        lambda sample, seed: SpatialPyramid(LBP(), 3),
    ),
    "edges": NamedFeatures(
        "census transform of the edges, spatial pyramid of 3 levels",
        lambda sample, seed: SpatialPyramid(Centrist(edges=True), 3),
        suits=lambda sample: False,  # by name only: cross-validation showed no gain
    ),
    "onnx": NamedFeatures(
        "maps or other outputs of your own network, averaged over the image and its quarters",
        lambda sample, seed, argument: OnnxFeatures.from_text(argument),
        argument="FILE",
    ),
}
