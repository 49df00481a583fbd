"""The recorded items as reStructuredText, one file per paper, for ``docs/reproduce.rst``."""

from pathlib import Path
from typing import Any

from render import number

from redrawn.items import Item, Picture, Table

VERDICTS, PICTURES = "verdicts", "pictures"
COLUMNS = ("about", "paper", "ours", "verdict", "reason")
LONGEST = 8  # columns of a table; wider ones are turned


def flattened(paper: str, items: list[Item]) -> dict[str, Any]:
    """Items as named tables of plain values, as benchmarks are recorded."""
    found: dict[str, Any] = {
        f"{paper}: {VERDICTS}": {i.name: {c: getattr(i, c) for c in COLUMNS} for i in items},
        f"{paper}: {PICTURES}": {
            p.name: {"of": i.name, "text": p.text} for i in items for p in i.pictures
        },
    }
    for item in items:
        for title, table in item.tables.items():
            found[f"{paper}, {item.name}: {title}"] = table
    return found


def restored(paper: str, figures: dict[str, Any]) -> list[Item]:
    """The items that were flattened."""
    drawn = figures.get(f"{paper}: {PICTURES}", {})
    items = []
    for name, row in figures.get(f"{paper}: {VERDICTS}", {}).items():
        begin = f"{paper}, {name}: "
        tables = {k.removeprefix(begin): t for k, t in figures.items() if k.startswith(begin)}
        own = tuple(Picture(file, p["text"]) for file, p in drawn.items() if p["of"] == name)
        items.append(Item(name, *(row[c] for c in COLUMNS), tables=tables, pictures=own))
    return items


def list_table(head: list[str], rows: list[list[str]], widths: list[int], stub: int = 0) -> str:
    """A table whose cells are lines of text."""
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {' '.join(map(str, widths))}"]
    lines += [f"   :stub-columns: {stub}"] if stub else []
    lines.append("")
    for row in [head, *rows]:
        for place, cell in enumerate(row):
            lines.append(f"   {'* -' if place == 0 else '  -'} {cell}".rstrip())
    return "\n".join(lines)


def numbers(table: Table) -> str:
    """A table of figures; one of many columns is turned on its side."""
    columns = list(dict.fromkeys(c for row in table.values() for c in row))
    if len(columns) > LONGEST and len(table) < len(columns):
        table = {c: {name: row.get(c) for name, row in table.items()} for c in columns}
        columns = list(next(iter(table.values())))
    rows = [[name, *(number(row.get(c)) for c in columns)] for name, row in table.items()]
    return list_table(["", *columns], rows, [3, *[2] * len(columns)], stub=1)


def section(paper: str, item: Item) -> str:
    """What was found, the figures, and the pictures."""
    title = f"{item.name}: {item.about}"
    parts = [
        title + "\n" + "~" * len(title),
        f"| **Paper**: {item.paper}.\n| **Here**: {item.ours}.\n| **Verdict**: {item.verdict}.",
        item.reason,
    ]
    for picture in item.pictures:
        parts.append(f".. image:: images/papers/{picture.name}\n   :alt: {picture.text}")
    for name, table in item.tables.items():
        parts += [f"*{name}*:", numbers(table)]
    return "\n\n".join(parts)


def page(paper: str, items: list[Item]) -> str:
    """The overview of a paper, and a section for every item."""
    rows = [[i.name, i.about, i.verdict] for i in items]
    overview = list_table(["", "about", "verdict"], rows, [2, 6, 3])
    parts = [".. Written by benchmarks/papers.py from benchmarks/results/papers.json.", overview]
    return "\n\n".join([*parts, *(section(paper, item) for item in items)]) + "\n"


def write(figures: dict[str, Any], papers: tuple[str, ...], folder: Path) -> None:
    """A file for every paper that is recorded."""
    folder.mkdir(parents=True, exist_ok=True)
    for paper in papers:
        if f"{paper}: {VERDICTS}" in figures:
            text = page(paper, restored(paper, figures))
            (folder / f"{paper.replace(' ', '')}.inc").write_text(text, encoding="utf-8")
