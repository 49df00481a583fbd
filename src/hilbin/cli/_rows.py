"""Images to rows, with the progress shown; :mod:`hilbin.auto.image_data` does the work."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hilbin.auto import image_data
from hilbin.auto.image_data import Cache, Described
from hilbin.cli._console import Console


def fitted(
    transformer: Any,
    paths: Sequence[Path],
    cache: Cache,
    console: Console,
    *,
    files: Sequence[Path] = (),
) -> Any:
    """Return the transformer fitted to the images, from the cache if it is there."""
    with console.stage("learning features"):
        return image_data.fitted(transformer, paths, cache, files=files)


def described(
    transformer: Any,
    paths: Sequence[Path],
    cache: Cache,
    console: Console,
    *,
    virtual: dict[str, Any] | None = None,
    seed: int = 0,
) -> Described:
    """Return the rows of all images that can be read, those in the cache from there."""
    done = [0]
    with console.stage("describing images", len(paths)) as advance:

        def callback(_: str, upto: int, __: int) -> None:
            advance(upto - done[0])
            done[0] = upto

        found = image_data.described(
            transformer, paths, cache, virtual=virtual, seed=seed, callback=callback
        )
    if found.n_resumed:
        console.say(f"continued: {found.n_resumed} of {len(paths)} images were done before")
    return found
