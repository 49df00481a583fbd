"""Near-duplicates by difference hashes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from hilbin.images import resized
from hilbin.inspection import (
    difference_hash,
    duplicate_groups,
    find_duplicates,
    hash_distances,
    near_duplicates,
)
from hilbin.inspection.duplicates import MOST_DIFFERENT


def test_hashes_of_nearly_the_same_image():
    rng = np.random.default_rng(0)
    image = resized(rng.integers(0, 256, (12, 14, 3), np.uint8), (120, 140))
    other = resized(rng.integers(0, 256, (12, 14, 3), np.uint8), (120, 140))
    small, darker = resized(image, (60, 70)), (image * 0.8).astype(np.uint8)
    first = difference_hash(image)
    near = [difference_hash(i) for i in (image, small, darker)]
    distances = hash_distances([first], [*near, difference_hash(other)])
    assert distances[0, 0] == 0
    assert distances[0, :3].max() < 20
    assert distances[0, 3] > 80


@given(st.lists(st.binary(min_size=32, max_size=32), min_size=1, max_size=4))
def test_distances_count_bits(contents):
    texts = [c.hex() for c in contents]
    expected = [[(int(a, 16) ^ int(b, 16)).bit_count() for b in texts] for a in texts]
    assert hash_distances(texts, texts).tolist() == expected


hashes = st.lists(st.binary(min_size=32, max_size=32), max_size=6)


@given(hashes, hashes)
def test_near_pairs_by_brute_force(first, second):
    second = [*second, *(bytes([h[0] ^ 3, *h[1:]]) for h in first[:2])]
    found = near_duplicates([h.hex() for h in first], [h.hex() for h in second])
    numbers = [[int.from_bytes(h) for h in side] for side in (first, second)]
    telling = [[32 <= n.bit_count() <= 224 for n in side] for side in numbers]
    expected = {}
    for i, a in enumerate(numbers[0]):
        apart = [(a ^ b).bit_count() for b, t in zip(numbers[1], telling[1], strict=True) if t]
        if telling[0][i] and apart and min(apart) <= MOST_DIFFERENT:
            expected[i] = min(apart)
    assert {i: bits for i, _, bits in found} == expected
    assert [bits for *_, bits in found] == sorted(bits for *_, bits in found)


def test_what_is_nearly_the_same(photos, tmp_path):
    rng = np.random.default_rng(0)
    noise = Image.fromarray(rng.integers(0, 256, (12, 12, 3), np.uint8)).resize((200, 160))
    noise.save(tmp_path / "a.png")
    noise.resize((100, 80)).point(lambda v: 0.8 * v + 20).save(tmp_path / "b.jpg", quality=60)
    Image.new("RGB", (90, 90), "navy").save(tmp_path / "flat.png")
    found = [
        difference_hash(np.asarray(Image.open(tmp_path / name)))
        for name in ("a.png", "b.jpg", "flat.png")
    ]
    assert [pair[:2] for pair in near_duplicates(found[:1], found[1:])] == [(0, 0)]
    assert near_duplicates(found[2:], found[2:]) == []


def test_files_and_arrays_are_hashed_alike(photos):
    paths = sorted(photos.rglob("*.png"))
    arrays = [np.asarray(Image.open(p)) for p in paths]
    found = near_duplicates(paths, arrays)
    assert found == near_duplicates([difference_hash(p) for p in paths], paths)
    assert {(i, j) for i, j, bits in found if bits == 0} >= {(i, i) for i, _, _ in found}


def test_groups_are_connected_pairs():
    rng = np.random.default_rng(0)
    images = [*rng.integers(0, 256, (5, 17, 17), np.uint8)]
    images += [(0.8 * images[1]).astype(np.uint8), (0.6 * images[1]).astype(np.uint8)]
    images += [np.zeros((17, 17), np.uint8)] * 2  # whose hashes prove nothing
    hashes = [difference_hash(one) for one in images]
    assert duplicate_groups(images) == duplicate_groups(hashes) == [[1, 5, 6]]
    same = [str(one.tobytes()) for one in images]
    assert duplicate_groups(hashes, same) == [[1, 5, 6], [7, 8]]
    assert duplicate_groups([]) == []
    for first, second in ((0, 1), (1, 5)):
        bits = sum((int(hashes[first], 16) ^ int(hashes[second], 16)) >> k & 1 for k in range(256))
        assert hash_distances([hashes[first]], [hashes[second]]).tolist() == [[bits]]


def test_duplicates_with_labels_and_pictures(photos, tmp_path):
    paths = sorted(photos.rglob("*.png"))[:4]
    labels = ["a", "b", "a", "b"]
    found = find_duplicates(paths[2:], ["b", "b"], paths, labels, test_names=["x", "y"])
    assert {pair.test for pair in found} <= {"x", "y"}
    for pair in found:
        assert pair.similarity == 1
        assert pair.test_label == "b"
        assert (pair.train_picture == pair.test_picture).all()
    hashes = [difference_hash(p) for p in paths]
    gone = [tmp_path / f"{i}.png" for i in range(4)]
    found = find_duplicates(gone, labels, paths, labels, hashes=(hashes, hashes))
    assert all(pair.test_picture is None for pair in found)
    assert found[0].similarity == pytest.approx(1)
