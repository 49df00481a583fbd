"""Every format: what it says, its traps, what is wrong with it, and back again."""

import json
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from hilbin.detect import BoxWarning, ImageBoxes, read_boxes, write_boxes

HEAD = "<?xml version='1.0' encoding='ISO-8859-1'?>\n<dataset><images>\n"
TAIL = "</images></dataset>"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def draw(path, size=(40, 20), **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", size).save(path, **options)
    return path


def voc(name="a.jpg", box=(2, 3, 10, 20), extra="", label="cat", difficult=0):
    corners = "".join(
        f"<{tag}>{value}</{tag}>"
        for tag, value in zip(("xmin", "ymin", "xmax", "ymax"), box, strict=True)
    )
    return (
        f"<annotation><filename>{name}</filename><object><name> {label} </name>"
        f"<difficult>{difficult}</difficult>{extra}<bndbox>{corners}</bndbox></object></annotation>"
    )


def coco(images=({"id": 7, "file_name": "a.jpg"},), annotations=(), categories=()):
    parts = {"images": images, "annotations": annotations, "categories": categories}
    return json.dumps({name: list(part) for name, part in parts.items()})


def only(records):
    assert len(records) == 1
    return records[0]


# imglab


def test_imglab(tmp_path):
    file = write(
        tmp_path / "b.xml",
        HEAD
        + "<image file='x/a.jpg'><box top='-3' left='2' width='10' height='20'>"
        + "<label>cat</label><part name='eye' x='1' y='1'/></box>"
        + "<box top='1' left='1' width='5' height='5' ignore='1'/></image>"
        + "<image file='none.jpg'/>"
        + TAIL,
    )
    first, second = read_boxes(file)
    assert first.path == tmp_path / "x" / "a.jpg"
    assert first.boxes.tolist() == [[2, -3, 12, 17], [1, 1, 6, 6]]
    assert first.labels.tolist() == ["cat", ""]
    assert first.ignore.tolist() == [False, True]
    assert first.truths.tolist() == [[2, -3, 12, 17]]
    assert first.ignored.tolist() == [[1, 1, 6, 6]]
    assert second.boxes.shape == (0, 4)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8"])
def test_imglab_has_names_in_the_bytes_of_the_file_system(tmp_path, encoding):
    image = draw(tmp_path / "Größe.png")
    text = HEAD + "<image file='Größe.png'/>" + TAIL
    assert only(read_boxes(write(tmp_path / "b.xml", text.encode(encoding)))).path == image


def test_windows_slashes(tmp_path):
    image = draw(tmp_path / "x" / "a.png")
    file = write(tmp_path / "b.xml", HEAD + r"<image file='x\a.png'/>" + TAIL)
    assert only(read_boxes(file)).path == image


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE dataset [<!ENTITY a "b">]><dataset/>',
        '<!DOCTYPE annotation SYSTEM "file:///etc/passwd"><annotation/>',
    ],
)
def test_a_document_type_is_refused(tmp_path, text, encoding):
    with pytest.raises(ValueError, match=r"b\.xml: has a DOCTYPE"):
        read_boxes(write(tmp_path / "b.xml", text.encode(encoding)))
    write(tmp_path / "folder" / "c.xml", text.encode(encoding))
    with pytest.raises(ValueError, match=r"c\.xml: has a DOCTYPE"):
        read_boxes(tmp_path / "folder")


# VOC


def test_voc_counts_from_one_and_includes_the_last_pixel(tmp_path):
    found = only(read_boxes(write(tmp_path / "a.xml", voc(box=(1, 1, "10.5", 20)))))
    assert found.boxes.tolist() == [[0, 0, 10.5, 20]]
    assert found.labels.tolist() == ["cat"]
    assert not found.ignore.any()


def test_voc_of_a_folder_finds_images_and_reads_boxes_of_objects_alone(tmp_path):
    part = "<part><name>head</name><bndbox><xmin>5</xmin><ymin>5</ymin><xmax>6</xmax>"
    part += "<ymax>6</ymax></bndbox></part>"
    write(tmp_path / "Annotations" / "a.xml", voc("a", extra=part))  # no extension
    write(tmp_path / "Annotations" / "b.xml", voc("stale.jpg", difficult=1))
    write(tmp_path / "Annotations" / "c.xml", voc(r"C:\photos\c.JPG"))
    write(tmp_path / "Annotations" / "d.xml", "<annotation/>")
    images = [draw(tmp_path / "JPEGImages" / name) for name in ("a.png", "b.jpg", "c.JPG", "d.bmp")]
    for source in (tmp_path, tmp_path / "Annotations"):
        found = read_boxes(source)
        assert [one.path for one in found] == images
        assert [one.boxes.tolist() for one in found] == [[[1, 2, 10, 20]]] * 3 + [[]]
        assert [one.ignore.tolist() for one in found] == [[False], [True], [False], []]


def test_voc_of_a_list(tmp_path):
    for name in "abc":
        write(tmp_path / "Annotations" / f"{name}.xml", voc(f"{name}.jpg"))
    listed = write(tmp_path / "ImageSets" / "Main" / "train.txt", "c  1\na -1\n")
    assert [one.path.name for one in read_boxes(listed)] == ["c.jpg", "a.jpg"]


def test_voc_of_an_image_that_is_gone(tmp_path):
    found = read_boxes(write(tmp_path / "a.xml", voc("gone.jpg")))
    assert only(found).path == tmp_path / "gone.jpg"


# YOLO


@pytest.fixture
def yolo(tmp_path):
    draw(tmp_path / "images" / "train" / "a.png")
    draw(tmp_path / "images" / "train" / "b.png")
    lines = "1 0.5 0.5 0.5 1\n0 0.25 0.5 0.1 0.2 0.9\n"
    write(tmp_path / "labels" / "train" / "a.txt", lines + "7 0.1 0.1 0.9 0.2 0.5 0.8\n\n")
    return tmp_path


@pytest.mark.parametrize("source", ["", "images", "images/train", "labels/train"])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("classes.txt", "cat\ndog\n"),
        ("labels/obj.names", "cat\ndog\n"),
        ("data.yaml", "nc: 2\nnames: ['cat', \"dog\"]  # two\n"),
        ("data.yaml", "names:\n- cat\n- dog\nnc: 2\n"),
        ("data.yaml", "path: .\nnames:\n  0: cat\n\n  1: dog # not wolf\ntrain: images/train\n"),
        ("images/data.yaml", "names: {0: cat, 1: dog}"),
    ],
)
def test_yolo(yolo, source, name, text):
    write(yolo / name, text)
    first, second = read_boxes(yolo / source)
    np.testing.assert_allclose(first.boxes, [[10, 0, 30, 20], [8, 8, 12, 12], [4, 2, 36, 16]])
    assert first.labels.tolist() == ["dog", "cat", "7"]
    assert first.scores is None  # not all have one
    assert (first.path.name, second.path.name) == ("a.png", "b.png")
    assert second.boxes.shape == (0, 4)


def test_yolo_without_names_of_one_file_or_a_list(yolo):
    one = only(read_boxes(yolo / "labels" / "train" / "a.txt"))
    assert one.path.name == "a.png"
    assert one.labels.tolist() == ["1", "0", "7"]
    listed = write(yolo / "train.txt", "images/train/b.png\n./images/train/a.png\n")
    assert [len(found.boxes) for found in read_boxes(listed)] == [0, 3]


def test_yolo_beside_the_images_and_an_empty_file(tmp_path):
    draw(tmp_path / "a.png")
    file = write(tmp_path / "a.txt", "")
    assert only(read_boxes(tmp_path)).boxes.shape == (0, 4)
    assert only(read_boxes(file)).path == tmp_path / "a.png"


def test_yolo_is_in_the_rotated_frame(tmp_path):
    turned = Image.Exif()
    turned[0x0112] = 6
    draw(tmp_path / "a.jpg", (40, 20), exif=turned)
    write(tmp_path / "a.txt", "0 0.5 0.5 1 1")
    assert only(read_boxes(tmp_path)).boxes.tolist() == [[0, 0, 20, 40]]


def test_yolo_of_an_image_that_cannot_be_read(tmp_path):
    write(tmp_path / "a.jpg", "no image")
    write(tmp_path / "a.txt", "0 0.5 0.5 1 1")
    with pytest.warns(BoxWarning, match=r"a\.txt: its boxes are left out"):
        assert only(read_boxes(tmp_path)).boxes.shape == (0, 4)


def test_yolo_is_asked_for_a_folder(yolo):
    with pytest.raises(ValueError, match="give the folder of images"):
        read_boxes(write(yolo / "data.yaml", "train: images/train\nnames: [a]\n"))


# COCO


def test_coco(tmp_path):
    text = coco(
        [{"id": 90, "file_name": "a.jpg"}, {"id": 3, "file_name": "b.jpg"}],
        [
            {"image_id": 90, "category_id": 44, "bbox": [1, 2, 10.5, 4], "iscrowd": 0},
            {"image_id": 90, "category_id": 5, "bbox": [0, 0, 2, 2], "iscrowd": 1},
            {"image_id": 90, "category_id": 44, "bbox": [0, 0, 3, 3], "ignore": 1},
        ],
        [{"id": 44, "name": "cat"}],
    )
    draw(tmp_path / "images" / "b.jpg")
    first, second = read_boxes(write(tmp_path / "annotations" / "boxes.json", text))
    assert first.boxes.tolist() == [[1, 2, 11.5, 6], [0, 0, 2, 2], [0, 0, 3, 3]]
    assert first.labels.tolist() == ["cat", "5", "cat"]
    assert first.ignore.tolist() == [False, True, True]
    assert second.boxes.shape == (0, 4)
    assert second.path == tmp_path / "images" / "b.jpg"


# CSV


@pytest.mark.parametrize(
    "text",
    [
        "path,xmin,ymin,xmax,ymax,label\n{a},1,2,11,22,cat\n{a},3,4,5,6,dog\nb.jpg,,,,,\n",
        "filename,width,height,class,xmin,ymin,xmax,ymax\n{a},640,480,cat,1,2,11,22\n"
        "{a},640,480,dog,3,4,5,6\nb.jpg,640,480,,,,,\n",
        "Image;Left;Top;Width;Height;Label\n{a};1;2;10;20;cat\n{a};3;4;2;2;dog\nb.jpg;;;;;\n",
        "{a},1,2,11,22,cat\n{a},3,4,5,6,dog\nb.jpg,,,,,\n",
        "\ufeffimage\tx1\ty1\tx2\ty2\tname\r\n{a}\t1\t2\t11\t22\tcat\r\n\r\n{a}\t3\t4\t5\t6\tdog\r\nb.jpg\t\t\t\t\t\r\n",
        "x0,y0,x1,y1,path,label\n1,2,11,22,{a},cat\n3,4,5,6,{a},dog\n,,,,b.jpg,\n",
    ],
)
def test_csv(tmp_path, text):
    file = write(tmp_path / "b.csv", text.replace("{a}", '"x, y/a.jpg"'))
    first, second = read_boxes(file)
    assert first.path == tmp_path / "x, y" / "a.jpg"
    assert first.boxes.tolist() == [[1, 2, 11, 22], [3, 4, 5, 6]]
    assert first.labels.tolist() == ["cat", "dog"]
    assert second.boxes.shape == (0, 4)


def test_csv_with_ignored_boxes_and_scores(tmp_path):
    text = "path,xmin,ymin,xmax,ymax,ignore,score\na.jpg,1,2,3,4,1,0.5\na.jpg,1,2,3,4,0,2\n"
    found = only(read_boxes(write(tmp_path / "b.csv", text)))
    assert found.ignore.tolist() == [True, False]
    assert found.scores.tolist() == [0.5, 2]


def test_labels_are_chosen(tmp_path):
    text = "a.jpg,0,0,5,5,cat\nb.jpg,0,0,5,5,dog\nb.jpg,0,0,9,9,cow\n"
    file = write(tmp_path / "b.csv", text)
    cats, others = read_boxes(file, labels="cat")
    assert (len(cats.boxes), len(others.boxes)) == (1, 0)
    assert [len(r.boxes) for r in read_boxes(file, labels=["cat", "cow"])] == [1, 1]
    with pytest.raises(ValueError, match="no box has the label bird; there are: cat, cow, dog"):
        read_boxes(file, labels=["bird"])


# boxes that cannot be used


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("b.xml", HEAD + "<image file='a.jpg'><box top='1' left='1' width='0' height='5'/>"
                  "<box top='0' left='0' width='5' height='5'/></image>" + TAIL),
        ("a.xml", "<annotation><object/>" + voc()[12:]),
        ("a.xml", voc(box=(9, 9, 9, 9))[:-13] + voc()[voc().index("<object>") :]),
        ("b.csv", "a.jpg,5,5,nan,9,cat\na.jpg,0,0,5,5,cat\n"),
        ("b.csv", "a.jpg,-5,-5,-1,9,cat\na.jpg,0,0,5,5,cat\n"),
        ("b.json", coco(annotations=[
            {"image_id": 7, "category_id": 1, "bbox": [0, 0, float("inf"), 5]},
            {"image_id": 7, "category_id": 1, "bbox": [0, 0, 5, 5]}])),
        ("b.json", coco(annotations=[
            {"image_id": 7, "category_id": 1, "segmentation": []},
            {"image_id": 7, "category_id": 1, "bbox": [0, 0, 5, 5]}])),
        ("a.txt", "0 0.5 0.5 -1 0.1\n0 0.5 0.5 0.1 0.1\n"),
    ],
)  # fmt: skip
def test_a_box_that_cannot_be_used_is_left_out(tmp_path, name, text):
    draw(tmp_path / "a.jpg")
    file = write(tmp_path / name, text)
    with pytest.warns(BoxWarning) as caught:
        found = only(read_boxes(file))
    assert len(found.boxes) == 1
    assert [str(one.message).startswith(f"{file}, a.jpg: box 0,") for one in caught] == [True]


def test_a_box_partly_outside_is_kept(tmp_path):
    file = write(tmp_path / "b.csv", "a.jpg,-5,-5,3,3,cat\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert only(read_boxes(file)).boxes.tolist() == [[-5, -5, 3, 3]]


# damaged files


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("b.xml", "<dataset><images>", "not valid XML"),
        ("b.xml", "<?xml version='1.0' encoding='klingon'?><dataset/>", "not valid XML"),
        ("b.xml", "<html></html>", "XML of <html> is not known; known are imglab"),
        ("b.xml", HEAD + "<image/>" + TAIL, "image 0 has no attribute file"),
        ("b.xml", HEAD + "<image file='a'><box top='1' left='1' width='1'/></image>" + TAIL,
         "a, box 0, height: None is not a number"),
        ("a.xml", voc(box=(1, 2, "wide", 4)), "object 0, xmax: 'wide' is not a number"),
        ("b.json", '{"images": [', "not valid JSON"),
        ("b.json", "[" * 100_000, "not valid JSON"),
        ("b.json", "[]", "has the lists images and annotations"),
        ("b.json", '{"images": [1], "annotations": []}', "images is not a list of objects"),
        ("b.json", '{"images": [{"id": []}], "annotations": []}', "id must be a number or a text"),
        ("b.json", coco([{"id": 1}]), "image of the id 1 has no file_name"),
        ("b.json", coco(annotations=[{"image_id": 8, "bbox": [1, 2, 3, 4]}]),
         "annotation 0: there is no image of the id 8"),
        ("b.json", coco(annotations=[{"image_id": 7, "bbox": [1, 2, 3]}]),
         r"annotation 0: bbox must be \[x, y, width, height\]"),
        ("b.json", coco(annotations=[{"image_id": 7, "bbox": [1, 2, 3, "x"]}]),
         "annotation 0, bbox: 'x' is not a number"),
        ("b.csv", "", "is empty"),
        ("b.csv", "path,label\na.jpg,cat\n", "no columns of boxes"),
        ("b.csv", "hello\n", "no columns of boxes"),
        ("b.csv", "path,xmin,ymin,xmax,ymax\na.jpg,1,2,x,4\n", "line 2: 'x' is not a number"),
        ("b.csv", "path,xmin,ymin,xmax,ymax\n,1,2,3,4\n", "line 2: the path of the image"),
        ("b.csv", b"a.jpg,\xff\xfe,1,2\n", "UTF-8"),
        ("a.txt", "0 0.1 0.2 0.3\n", "line 1: 3 numbers after the class; a box has 4"),
        ("a.txt", "0.5 0.1 0.2 0.3 0.4\n", "line 1: the first number must be the number of a"),
        ("a.txt", "0 0.1 0.2 x 0.4\n", "line 1: 'x' is not a number"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_named(tmp_path, name, text, message):
    draw(tmp_path / "a.jpg")
    file = write(tmp_path / name, text)
    with pytest.raises(ValueError, match=message) as caught:
        read_boxes(file)
    assert str(caught.value).startswith(str(file))


def test_nothing_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no such file or folder"):
        read_boxes(tmp_path / "gone.xml")
    with pytest.raises(ValueError, match="no file of boxes in this folder"):
        read_boxes(tmp_path)


# written and read again

numbers = st.floats(-50, 500, allow_subnormal=False)
texts = st.text(st.characters(blacklist_categories=("C", "Z")), max_size=8)


@st.composite
def records(draw, whole=False, named=False):
    made = []
    for k in range(draw(st.integers(1, 4))):
        n = draw(st.integers(0, 4))
        low = draw(arrays(np.float64, (n, 2), elements=st.floats(-8, 30)))
        sides = draw(arrays(np.float64, (n, 2), elements=st.floats(9, 200)))
        boxes = np.hstack([low, low + sides])
        labels = draw(st.lists(texts.filter(bool) if named else texts, min_size=n, max_size=n))
        ignore = draw(arrays(bool, n))
        scores = draw(st.none() | arrays(np.float64, n, elements=st.floats(-5, 5)))
        boxes = np.rint(boxes) if whole else boxes
        made.append(ImageBoxes(f"folder/{k} photö.png", boxes, labels, ignore, scores))
    return made


def compare(found, expected, scores=True, atol=1e-9):
    assert [one.path.name for one in found] == [one.path.name for one in expected]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.boxes, other.boxes, rtol=0, atol=atol)
        assert one.labels.tolist() == other.labels.tolist()
        assert one.ignore.tolist() == other.ignore.tolist()
        if scores and other.scores is not None and len(other.scores):
            np.testing.assert_allclose(one.scores, other.scores)


@given(records())
def test_coco_and_csv_come_back(tmp_path_factory, drawn):
    for name in ("b.json", "b.csv"):
        file = tmp_path_factory.mktemp("boxes") / name
        write_boxes(drawn, file)
        compare(read_boxes(file), drawn)


@given(records(whole=True))
def test_imglab_comes_back(tmp_path_factory, drawn):
    file = tmp_path_factory.mktemp("boxes") / "b.xml"
    write_boxes(drawn, file)
    compare(read_boxes(file), drawn)


@given(records())
def test_voc_comes_back(tmp_path_factory, drawn):
    folder = tmp_path_factory.mktemp("boxes") / "Annotations"
    write_boxes(drawn, folder, format="voc")
    compare(read_boxes(folder), drawn, scores=False)


@given(records(named=True))
def test_yolo_comes_back(tmp_path_factory, drawn):
    root = tmp_path_factory.mktemp("boxes")
    kept = []
    for one in drawn:
        image = root / "images" / one.path.name
        draw(image, (320, 240))
        kept.append(ImageBoxes(image, one.boxes, one.labels, one.ignore & False, one.scores))
    write_boxes(kept, root / "labels", format="yolo")
    compare(read_boxes(root), kept, atol=1e-5)


def test_paths_are_relative_to_the_file(tmp_path):
    record = ImageBoxes(tmp_path / "images" / "a.jpg", [[1, 2, 3, 4]])
    for name in ("b.xml", "b.json", "b.csv"):
        file = tmp_path / "boxes" / name
        file.parent.mkdir(exist_ok=True)
        write_boxes([record], file)
        assert "../images/a.jpg" in file.read_text()


def test_imglab_rounds_to_whole_pixels(tmp_path):
    write_boxes([ImageBoxes("a.jpg", [[0.4, 0.6, 9.5, 0.7]])], tmp_path / "b.xml")
    assert only(read_boxes(tmp_path / "b.xml")).boxes.tolist() == [[0, 1, 10, 2]]


def test_yolo_has_no_ignored_boxes(tmp_path):
    image = draw(tmp_path / "a.png")
    record = ImageBoxes(image, [[0, 0, 5, 5], [1, 1, 9, 9]], ["a", "a"], [True, False])
    with pytest.warns(BoxWarning, match="no ignored boxes; 1 left out"):
        write_boxes([record], tmp_path, format="yolo")
    assert only(read_boxes(tmp_path)).boxes.shape == (1, 4)


@pytest.mark.parametrize(
    ("record", "name", "format", "message"),
    [
        (ImageBoxes("a.jpg", [[0, 0, 1, 1]]), "b.txt", None, "pass with format= which of imglab"),
        (ImageBoxes("a.jpg", [[0, 0, 1, 1]]), "b.xml", "png", "format must be one of"),
        (ImageBoxes("a.jpg", [[0, 0, 1, 1]], ["\x01"]), "b.xml", None, "XML cannot hold the text"),
        (ImageBoxes("a.jpg", [[0, 0, 1, 1]], ["a\nb"]), "b", "yolo", "a name of one line"),
        (ImageBoxes("classes.jpg", [], [], []), "b", "yolo", "YOLO needs the name classes.txt"),
        (ImageBoxes("gone.jpg", [[0, 0, 1, 1]], ["a"]), "b", "yolo", "gone.jpg: there is no such"),
    ],
)
def test_what_cannot_be_written_is_named(tmp_path, record, name, format, message):
    with pytest.raises(ValueError, match=message):
        write_boxes([record], tmp_path / name, format=format)


def test_files_of_folders_need_different_names(tmp_path):
    twice = [ImageBoxes("x/a.jpg", []), ImageBoxes("y/a.png", [])]
    with pytest.raises(ValueError, match="two images have this name"):
        write_boxes(twice, tmp_path, format="voc")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1, 2, 3]],), r"boxes must have the shape"),
        (([[1, 2, 3, 4]], ["a", "b"]), r"a\.jpg: labels has shape \(2,\) for 1 boxes"),
        (([[1, 2, 3, 4]], ["a"], [True, False]), r"a\.jpg: ignore has shape"),
    ],
)
def test_records_are_checked(arguments, message):
    with pytest.raises(ValueError, match=message):
        ImageBoxes("a.jpg", *arguments)
