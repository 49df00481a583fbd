"""Redraw the tables and figures of the five papers on the data sets here: ``make papers``.

Writes ``results/papers.json``, pictures in ``docs/images/papers`` and the tables of
``docs/reproduce.rst``. What other benchmarks have recorded is read, not measured again. With
``--only`` the other papers stay as they were; with ``--pages`` nothing is measured.
"""

import importlib
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import harness
import matplotlib.pyplot as plt
from redrawn import page
from redrawn.items import STYLE, VERDICTS, Item, Plan, Work

DOCS = Path(__file__).parents[1] / "docs"
PAPERS = tuple(f"paper {number}" for number in range(1, 6))
MINUTES, MOST_MINUTES = "minutes", 60
TITLE = "The five papers, redrawn"
TEXT = (
    "Every table and figure of the five papers beside what was measured here; docs/reproduce.rst "
    "has them with pictures. Minutes are of the clock, one thread, without what is read from the "
    "results of other benchmarks."
)


def before() -> dict[str, Any]:
    """What an earlier run recorded."""
    path = harness.RESULTS / "papers.json"
    return json.loads(path.read_text(encoding="utf-8"))["figures"] if path.exists() else {}


def redrawn(plan: Plan) -> list[Item]:
    """Compute what is planned; a verdict that is none of the five is a mistake."""
    items: list[Item] = []
    for name, make in plan.items():
        begin = time.perf_counter()
        item = make()
        if item.verdict not in VERDICTS or item.name != name:
            raise ValueError(f"{name}: got {item.name!r} with the verdict {item.verdict!r}")
        items.append(item)
        took = time.perf_counter() - begin
        print(f"{took:6.0f} s  {item.verdict:18} {name}: {item.ours}", flush=True)
    return items


def measure(papers: list[str], work: Work, wanted: list[str]) -> None:
    """Replace the figures of these papers, or of the wanted items."""
    for paper in papers:
        print(f"--- {paper}", flush=True)
        plan: Plan = importlib.import_module(f"redrawn.{paper.replace(' ', '')}").plan(work)
        begin = time.perf_counter()
        items = redrawn({k: make for k, make in plan.items() if not wanted or k in wanted})
        took = (time.perf_counter() - begin) / 60
        figures = {} if work.quick else before()  # of now: papers can be measured side by side
        if not wanted:
            figures.setdefault(MINUTES, {})[paper] = took
        else:
            kept = {i.name: i for i in [*page.restored(paper, figures), *items]}  # new ones last
            items = [kept[name] for name in plan if name in kept]
        for old in [k for k in figures if k.startswith((f"{paper}:", f"{paper},"))]:
            del figures[old]
        save(figures | page.flattened(paper, items), work)


def save(figures: dict[str, Any], work: Work) -> None:
    """Record, and write the tables of the page."""
    minutes, claims = figures.get(MINUTES, {}), []
    if set(PAPERS) <= set(minutes):
        total = sum(minutes.values())
        claims = [harness.claim("make papers", total, MOST_MINUTES, "<=", unit=" minutes")]
    harness.record("papers", figures, claims, title=TITLE, text=TEXT, quick=work.quick)
    if not work.quick:
        page.write(figures, PAPERS, DOCS / "reproduce")


def main() -> None:
    """Measure what is asked for, and write the page."""
    parser = harness.parser(__doc__)
    names = [paper.replace(" ", "") for paper in PAPERS]
    parser.add_argument("--only", choices=names, help="one paper; the others stay")
    parser.add_argument(
        "--item", nargs="+", default=[], help="some of its tables and figures, such as 'Table 3'"
    )
    parser.add_argument("--pages", action="store_true", help="only write the tables of the page")
    args = parser.parse_args()
    if args.pages:
        page.write(before(), PAPERS, DOCS / "reproduce")
        return
    if args.item and not args.only:
        parser.error("--item needs --only")
    if args.data is None:
        raise SystemExit("the papers need the folder of data sets: --data, or make papers DATA=")
    wanted = [p for p in PAPERS if args.only in (None, p.replace(" ", ""))]
    with tempfile.TemporaryDirectory() as scratch, harness.threads(1), plt.rc_context(STYLE):
        images = Path(scratch) if args.quick else DOCS / "images" / "papers"
        work = Work(args.data, images, args.quick)
        measure(wanted, work, args.item)


if __name__ == "__main__":
    main()
