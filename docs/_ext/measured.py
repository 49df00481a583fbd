"""Tables of the pages that show measured figures, made from ``benchmarks/results`` at build.

``.. measured:: readme`` is the table of the README. ``.. measured:: FILE, TITLE`` is a table of
figures of ``benchmarks/results/FILE.json``, and when and where it was measured; ``:columns:``
chooses and orders its columns, and ``:first:`` is the heading of the first one.
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


def result_rows(content: dict[str, Any], columns: list[str], first: str) -> list[list[str]]:
    """Return the cells of figures: a heading, then one row per entry."""
    rows = {k: v if isinstance(v, dict) else {"": v} for k, v in content.items()}
    columns = columns or list(dict.fromkeys(c for row in rows.values() for c in row))
    cells = [[name, *(_number(row.get(c)) for c in columns)] for name, row in rows.items()]
    return [[first, *columns], *cells]


def _number(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:#.3g}".rstrip(".")
    return str(value)


def where(machine: dict[str, Any]) -> nodes.paragraph:
    """Return when and where something was measured."""
    when = f" on {machine['date']}" if "date" in machine else ""
    threads = f", threads {machine['threads']}" if "threads" in machine else ""
    load = f"load before {machine['load_before'][0]:g}"
    return nodes.paragraph(
        "", "", nodes.emphasis("", f"Measured{when}: {machine['cpu']}{threads}, {load}.")
    )


def table_node(rows: list[list[str]]) -> nodes.table:
    """Return a table whose first row is its heading, unless that is empty."""
    table = nodes.table("", classes=["table-sm"])
    group = nodes.tgroup("", cols=len(rows[0]))
    table += group
    for _ in rows[0]:
        group += nodes.colspec("", colwidth=1)
    for part, some in (
        (nodes.thead(), rows[:1] if any(rows[0]) else []),
        (nodes.tbody(), rows[1:]),
    ):
        if not some:
            continue
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
        path = ROOT / "benchmarks" / "results" / f"{name}.json"
        self.state.document.settings.record_dependencies.add(str(path))
        result = json.loads(path.read_text(encoding="utf-8"))
        if title not in result["figures"]:
            raise self.error(f"{path.name} has no table {title!r}")
        columns = [c.strip() for c in self.options.get("columns", "").split(";") if c.strip()]
        rows = result_rows(result["figures"][title], columns, self.options.get("first", ""))
        return [table_node(rows), where(result["machine"])]


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive to Sphinx."""
    app.add_directive("measured", Measured)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
