"""The directive ``results``: tables of ``benchmarks/results`` as they were measured last.

``.. results:: roofline`` followed by the name of a table as content puts that table of
``benchmarks/results/roofline.json`` into the page, so that no figure is written twice.
"""

import json
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


def shown(value: Any) -> str:
    """Three significant digits, or the text."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:#.3g}".rstrip(".")
    return str(value)


def row_of(cells: list[str]) -> nodes.row:
    """A row of a table."""
    return nodes.row(
        "", *(nodes.entry("", nodes.paragraph("", nodes.Text(cell))) for cell in cells)
    )


def table_of(content: dict[str, Any]) -> nodes.table:
    """A dictionary of numbers, or of rows with named columns, as a table."""
    rows = {k: v if isinstance(v, dict) else {"": v} for k, v in content.items()}
    columns = list(dict.fromkeys(c for row in rows.values() for c in row))
    group = nodes.tgroup("", cols=1 + len(columns))
    group += [nodes.colspec(colwidth=1) for _ in range(1 + len(columns))]
    if any(columns):
        group += nodes.thead("", row_of(["", *columns]))
    body = [row_of([name, *(shown(row.get(c)) for c in columns)]) for name, row in rows.items()]
    group += nodes.tbody("", *body)
    return nodes.table("", group, classes=["table-sm"])


class Results(Directive):
    """A table of a benchmark, and when and where it was measured."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {}

    def run(self) -> list[nodes.Node]:
        """Read the results and make the table."""
        path = RESULTS / f"{self.arguments[0]}.json"
        self.state.document.settings.record_dependencies.add(str(path))
        result = json.loads(path.read_text(encoding="utf-8"))
        name = " ".join(self.content)
        if name not in result["figures"]:
            raise self.error(f"{path.name} has no table {name!r}")
        machine = result["machine"]
        threads = f", threads {machine['threads']}" if "threads" in machine else ""
        when = f" on {machine['date']}" if "date" in machine else ""
        load = machine["load_before"][0]
        where = f"Measured{when}: {machine['cpu']}{threads}, load before {load:g}."
        return [
            table_of(result["figures"][name]),
            nodes.paragraph("", "", nodes.emphasis("", where)),
        ]


def setup(app: Any) -> dict[str, Any]:
    """Tell Sphinx of the directive."""
    app.add_directive("results", Results)
    return {"parallel_read_safe": True}
