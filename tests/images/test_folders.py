"""Labeled photographs in folders and tables."""

import numpy as np
import pytest
from PIL import Image

from hilbin.images import find_images, labeled_images


def picture(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.zeros((4, 4), np.uint8)).save(path)
    return path


def test_a_folder_for_every_class(tmp_path):
    files = [
        picture(tmp_path / "cat" / "b.png"),
        picture(tmp_path / "cat" / "deep" / "a.JPG"),
        picture(tmp_path / "héron cendré" / "1.gif"),
    ]
    picture(tmp_path / ".hidden" / "c.png")
    picture(tmp_path / "cat" / ".thumb.png")
    (tmp_path / "cat" / "notes.txt").write_text("")
    paths, labels = labeled_images(tmp_path)
    assert paths == files
    assert labels == ["cat", "cat", "héron cendré"]
    assert find_images(tmp_path / "cat") == files[:2]


def test_a_table(tmp_path):
    table = tmp_path / "labels.csv"
    table.write_text('label,path\ncat,a.png\n"a, b",sub/ü.png\n', encoding="utf-8-sig")
    paths, labels = labeled_images(table)
    assert paths == [tmp_path / "a.png", tmp_path / "sub" / "ü.png"]
    assert labels == ["cat", "a, b"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("file,label\na.png,cat\n", "columns"),
        ("path,label\na.png,\n", "line 2"),
        ("path,label\n", "no line"),
        ("", "columns"),
    ],
)
def test_bad_tables(tmp_path, text, said):
    (tmp_path / "labels.csv").write_text(text)
    with pytest.raises(ValueError, match=said):
        labeled_images(tmp_path / "labels.csv")


def test_nothing_there(tmp_path):
    with pytest.raises(ValueError, match="no image"):
        labeled_images(tmp_path)
    picture(tmp_path / "loose.png")
    with pytest.raises(ValueError, match="1 images lie in it"):
        labeled_images(tmp_path)
    with pytest.raises(FileNotFoundError, match="gone"):
        labeled_images(tmp_path / "gone")
    with pytest.raises(NotADirectoryError, match="gone"):
        find_images(tmp_path / "gone")
