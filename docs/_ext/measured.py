"""Tables of the pages that show measured figures, made from ``benchmarks/results`` at build.

``.. measured:: readme`` is the table of the README. ``.. measured:: FILE, TITLE`` is a table of
figures of ``benchmarks/results/FILE.json``; ``:columns:`` chooses and orders its columns, and
``:first:`` is the heading of the first one.
"""

import json
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive, directives
from sphinx.application import Sphinx

ROOT = Path(__file__).parent.parent.parent


def readme_rows() -> list[list[str]]:
    """Return the cells of the table between the markers of the README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text.split("<!-- bench:begin -->")[1].split("<!-- bench:end -->")[0]
    rows = [line.strip("| ").split(" | ") for line in table.strip().splitlines()]
    cells = [[cell.strip(" |") for cell in row] for row in rows if not row[0].startswith("---")]
    return [row if len(row) == 3 else [row[0], "", row[-1]] for row in cells]


def result_rows(name: str, title: str, columns: list[str], first: str) -> list[list[str]]:
    """Return the cells of figures: a heading, then one row per entry."""
    path = ROOT / "benchmarks" / "results" / f"{name}.json"
    figures = json.loads(path.read_text(encoding="utf-8"))["figures"][title]
    return [[first, *columns]] + [
        [entry, *(_number(found.get(column)) for column in columns)]
        for entry, found in figures.items()
    ]


def _number(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def table_node(rows: list[list[str]]) -> nodes.table:
    """Return a table whose first row is its heading."""
    table = nodes.table("", classes=["table-sm"])
    group = nodes.tgroup("", cols=len(rows[0]))
    table += group
    for _ in rows[0]:
        group += nodes.colspec("", colwidth=1)
    for part, some in ((nodes.thead(), rows[:1]), (nodes.tbody(), rows[1:])):
        group += part
        for cells in some:
            row = nodes.row()
            for cell in cells:
                row += nodes.entry("", nodes.paragraph("", cell))
            part += row
    return table


class Measured(Directive):
    """A table of measured figures."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {"columns": directives.unchanged, "first": directives.unchanged}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        if self.arguments[0] == "readme":
            return [table_node(readme_rows())]
        name, title = (part.strip() for part in self.arguments[0].split(",", 1))
        columns = [column.strip() for column in self.options["columns"].split(";")]
        return [table_node(result_rows(name, title, columns, self.options.get("first", "")))]


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive to Sphinx."""
    app.add_directive("measured", Measured)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
