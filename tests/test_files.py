"""Files are written whole, through links, and never over what is no file."""

import os
import stat

import pytest

from hilbin.files import require_regular, require_writable, write_whole, written_whole


def test_links_are_written_through(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to("target")
    write_whole(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "later")
    write_whole(dangling, "here")
    assert (tmp_path / "later").read_text() == "here"


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
@pytest.mark.parametrize("linked", [False, True])
def test_what_is_no_file_is_left_alone(tmp_path, kind, linked):
    path = tmp_path / kind
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        try:
            os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        except OSError:
            pytest.skip("devices cannot be made here")
    before = os.lstat(path)
    if linked:
        (tmp_path / "link").symlink_to(path)
        path = tmp_path / "link"
    for refused in (lambda: write_whole(path, "over it"), lambda: require_writable(path)):
        with pytest.raises(OSError, match=f"is a {kind}, not a file"):
            refused()
    with pytest.raises(OSError, match=str(path)):
        require_regular(path)
    assert os.lstat(tmp_path / kind).st_mode == before.st_mode
    assert not list(tmp_path.glob(".hilbin-*"))


def test_an_error_leaves_the_old_file(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")

    def fail():
        with written_whole(path) as file:
            file.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    assert path.read_text() == "old"


def test_writing_is_tried_not_guessed(tmp_path):
    """Root may write anywhere by the permissions, and cannot make a file in /proc."""
    require_writable(tmp_path / "new")
    assert not list(tmp_path.iterdir())
    (tmp_path / "old").write_text("old")
    require_writable(tmp_path / "old")
    assert (tmp_path / "old").read_text() == "old"
    with pytest.raises(FileNotFoundError, match="no such folder to write to"):
        require_writable(tmp_path / "none" / "new")
    with pytest.raises(OSError, match=r"cannot write there.*/proc"):
        require_writable("/proc/model.hilbin")
