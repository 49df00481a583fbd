"""Record the commands of the quickstart as docs/images/terminal.svg: python tools/terminal.py."""

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from rich.console import Console
from rich.text import Text
from sklearn.datasets import load_sample_images

TARGET = Path(__file__).parent.parent / "docs" / "images" / "terminal.svg"
COMMANDS = (
    "hilbin train photos -o flowers.hilbin --features centrist+color",
    "hilbin eval flowers.hilbin held_out --report report.html",
    "hilbin predict flowers.hilbin held_out/flower/1.png",
)


def cut(folder: Path) -> None:
    """Cut two photographs that come with scikit-learn into pieces, as the quickstart does."""
    for name, image in zip(["temple", "flower"], load_sample_images().images, strict=True):
        for number in range(48):
            row, column = divmod(number, 8)
            where = folder / ("photos", "held_out")[(row + column) % 2] / name
            where.mkdir(parents=True, exist_ok=True)
            piece = image[70 * row : 70 * row + 70, 80 * column : 80 * column + 80]
            Image.fromarray(piece).save(where / f"{number}.png")


def record(folder: Path) -> Console:
    """Run the commands in the folder, and print what a terminal of 96 columns shows."""
    console = Console(record=True, width=96, file=io.StringIO(), force_terminal=True)
    environment = os.environ | {"COLUMNS": "96", "FORCE_COLOR": "1", "TTY_COMPATIBLE": "0"}
    for command in COMMANDS:
        console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
        call = [sys.executable, "-m", *command.split()]
        ran = subprocess.run(
            call, cwd=folder, env=environment, check=True, capture_output=True, text=True
        )
        console.print(Text.from_ansi(ran.stdout.rstrip()))
        console.print()
    return console


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        cut(Path(folder))
        record(Path(folder)).save_svg(str(TARGET), title="hilbin", font_aspect_ratio=0.6)
    text = TARGET.read_text(encoding="utf-8")
    # The fonts of the page, since those of the network may not be there.
    start, end = text.index("@font-face"), text.rindex("@font-face")
    end = text.index("}", end) + 1
    TARGET.write_text(text[:start] + text[end:], encoding="utf-8")
