"""Results as a page with plots, and as the table in the README of the package.

Everything comes from ``results/*.json``: a new benchmark needs no change here. The README of the
package shows a few claims (``FRONT``), the page of results all.
"""

import json
from pathlib import Path
from typing import Any

import harness
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

README = Path(__file__).parents[1] / "README.md"
MISSES = Path(__file__).parent / "misses.md"
FRONT = {  # what the README shows: the benchmark, how the claim begins, and what a user reads
    ("defaults", "Tables at defaults, fresh splits, mean"): (
        "tables and counts at defaults: accuracy gained, mean of all sets"
    ),
    ("defaults", "Photographs, defaults: accuracy, scene15, 100 per class"): (
        "photographs of 15 kinds of scenes at defaults, 100 of each to learn from: accuracy"
    ),
    ("defaults", "Photographs, with the network: points gained, caltech101, 30"): (
        "photographs of 102 kinds of things, 30 of each, with a network: accuracy gained"
    ),
    ("icd_speed", "IntersectionSVC, whole fit, equal objectives, time, dense"): (
        "intersection SVM: time of a fit"
    ),
    ("kernel_machines", "exact SVM from features"): (
        "kernel SVM with χ² or intersection, from features: speed"
    ),
    ("maps", "AdditiveMap(Chi2), 5 features, less error"): "features for the χ² kernel: less error",
    ("images_speed", "Dense SIFT"): "dense SIFT: speed",
    ("pq_accuracy", "Codes of Fisher vectors, 40 times smaller"): (
        "features 40 times smaller: accuracy lost"
    ),
}
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
COLOURS = ("#2b6cb0", "#a9c8e8", "#dd8452")
CURVES = (  # colors and markers
    *(("#dd8452", "o"), ("#8172b3", "s"), ("#937860", "D"), ("#55a868", "^"), ("#c44e52", "v")),
    *(("#ccb974", "P"), ("#64b5cd", "X"), ("#e377c2", "<"), ("#7f7f7f", ">"), ("#1d4e4a", ".")),
)
INK = "#333333"
PANELS = 3  # side by side
INTRODUCTION = """\
# Benchmarks

Made by `make bench`. Claims are ratios measured within one run, except those of the installation.\
"""
LONGEST_TABLE = 15  # rows; longer ones are folded


def number(value: Any) -> str:
    """Three significant digits, or the text itself."""
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:#.3g}".rstrip(".")


def table(head: list[str], rows: list[list[str]], names: int = 1) -> str:
    """A Markdown table: columns of names to the left, of numbers to the right."""
    align = ["---"] * names + ["---:"] * (len(head) - names)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [head, align, *rows])


def claim_row(claim: dict[str, Any]) -> list[str]:
    """What, against what, measured, required."""
    sign = {">=": "≥", "<=": "≤", ">": ">"}[claim["relation"]]
    unit = claim["unit"]
    return [
        claim["what"],
        claim["against"],
        f"{number(claim['measured'])}{unit}",
        f"{sign} {claim['required']:g}{unit}",
    ]


def claims_table(claims: list[dict[str, Any]]) -> str:
    """All claims of one benchmark."""
    rows = [[*claim_row(c), "yes" if c["holds"] else "**no**"] for c in claims]
    return table(["what", "against", "measured", "required", "holds"], rows, names=2)


def figures_text(figures: dict[str, Any]) -> str:
    """Numbers as one line, dictionaries as tables under their names."""
    single = {k: v for k, v in figures.items() if not isinstance(v, dict)}
    parts = [", ".join(f"{k.replace('_', ' ')} {number(v)}" for k, v in single.items())]
    for name, content in figures.items():
        if isinstance(content, dict):
            shown = figure_table(content)
            if len(content) > LONGEST_TABLE:
                parts.append(f"<details><summary>{name}</summary>\n\n{shown}\n\n</details>")
            else:
                parts.append(f"**{name}**\n\n{shown}")
    return "\n\n".join(part for part in parts if part)


def figure_table(content: dict[str, Any]) -> str:
    """A dictionary of numbers, or of rows with named columns."""
    if not all(isinstance(row, dict) for row in content.values()):
        return table(["", ""], [[name, number(value)] for name, value in content.items()])
    columns = list(dict.fromkeys(c for row in content.values() for c in row))
    rows = [[name, *(number(row.get(c)) for c in columns)] for name, row in content.items()]
    return table(["", *columns], rows)


def machine_text(result: dict[str, Any]) -> str:
    """Where and with what it was measured."""
    m = result["machine"]
    when = f"Measured on {m['date']}: " if "date" in m else ""
    threads = f"threads {m['threads']}, " if "threads" in m else ""
    load = " → ".join(f"{m[key][0]:.2f}" for key in ("load_before", "load_after"))
    versions = ", ".join(f"{name} {value}" for name, value in result["versions"].items())
    where = f"{m['cpu']}, {m['cores']} cores, {threads}core `{m['level']}`, load {load}"
    return f"{when}{where}. {versions}."


def section(result: dict[str, Any]) -> str:
    """One benchmark."""
    images = [f"![{p['title']}]({p['name']}.png)" for p in result["plots"]]
    parts = [
        f"## {result['title']}",
        result["text"],
        claims_table(result["claims"]) if result["claims"] else "",
        *images,
        "### Figures",
        figures_text(result["figures"]),
        machine_text(result),
    ]
    return "\n\n".join(part for part in parts if part)


def draw(plot: dict[str, Any], path: Path) -> None:
    """Horizontal bars, one group per label, with what is required as ticks."""
    series, labels = plot["series"], plot["labels"]
    start = 1 if plot.get("log") else 0  # a ratio of 1 is no bar
    required = plot.get("required") or [None] * len(labels)
    height = 0.8 / len(series)
    figure, axes = plt.subplots(figsize=(7.2, 1.3 + len(labels) * max(0.42, 0.24 * len(series))))
    for s, (name, values) in enumerate(series.items()):
        at = [i + (s - (len(series) - 1) / 2) * height for i in range(len(labels))]
        lengths = [v - start for v in values]
        axes.barh(at, lengths, 0.9 * height, left=start, color=COLOURS[s], label=name)
        for y, v, r in zip(at, values, required, strict=True):
            missed = r is not None and v < r  # then the tick stands where the number would
            look = {"ha": "right", "color": "white"} if missed else {"color": INK}
            text = f" {number(v)}{plot.get('unit', '')} "
            axes.text(v if missed else max(v, start), y, text, va="center", fontsize=8, **look)
    ticks = [(r, i) for i, r in enumerate(required) if r is not None]
    if ticks:
        style = {"color": COLOURS[2], "markersize": 16, "markeredgewidth": 2}
        axes.plot(*zip(*ticks, strict=True), "|", label="required", **style)
    for label, x in plot.get("lines", {}).items():
        axes.axvline(x, color=COLOURS[2], linewidth=1.2, label=label)
    finish(figure, axes, plot)
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


def finish(figure: Any, axes: Any, plot: dict[str, Any]) -> None:
    """Scale, labels and legend."""
    values = [v for values in plot["series"].values() for v in values]
    values += [v for v in plot.get("required", []) if v] + list(plot.get("lines", {}).values())
    axes.set_yticks(range(len(plot["labels"])), plot["labels"])
    axes.invert_yaxis()
    axes.set_xlabel(plot["axis"], fontsize=9, color=INK)
    figure.suptitle(plot["title"], fontsize=10, x=0.01, ha="left", color=INK)
    if plot.get("log"):
        axes.set_xscale("log")
        axes.set_xlim(min(1, *values) * 0.9, max(values) * 1.6)
        ticks = [t for t in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
                 if axes.get_xlim()[0] <= t <= axes.get_xlim()[1]]  # fmt: skip
        axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
        axes.set_xticks([], minor=True)
        axes.axvline(1, color=INK, linewidth=0.8)
    else:
        axes.set_xlim(0, 1.15 * max(values))
    axes.tick_params(axis="both", length=0, labelsize=8, colors=INK)
    axes.grid(axis="x", color="#e5e5e5", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left", "bottom"]].set_visible(False)
    if len(axes.get_legend_handles_labels()[1]) > 1:
        figure.legend(loc="outside lower center", ncols=4, fontsize=8, frameon=False)


def draw_curves(plot: dict[str, Any], path: Path) -> None:
    """Panels of curves over ``x``, heights on a log scale; see :func:`curve_style`.

    With ``alike`` the panels below each other have the same heights.
    """
    panels, width = plot["panels"], min(PANELS, len(plot["panels"]))
    rows = -(-len(panels) // width)
    figure, grid = plt.subplots(
        rows, width, figsize=(3.3 * width, 2.9 * rows + 0.9), sharex=True, squeeze=False,
        sharey="col" if plot.get("alike") else False,
    )  # fmt: skip
    styles: dict[str, dict[str, Any]] = {}
    for axes, (title, curves) in zip(grid.flat, panels.items(), strict=False):
        for name, values in curves.items():
            style = styles.setdefault(name, curve_style(plot, name, len(styles)))
            points = [(x, v) for x, v in zip(plot["x"], values, strict=True) if v]
            axes.plot(*zip(*points, strict=True), **style)
        if title not in plot.get("linear", ()):
            axes.set_yscale("log")
        if plot.get("log"):
            axes.set_xscale("log")
            axes.set_xticks([], minor=True)
        ticks = plot.get("ticks", plot["x"])
        axes.set_xticks(ticks, [f"{x:g}" for x in ticks])
        axes.set_title(title, fontsize=9, loc="left", color=INK)
        axes.tick_params(axis="both", which="both", length=0, labelsize=8, colors=INK)
        axes.grid(color="#e5e5e5", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right", "left", "bottom"]].set_visible(False)
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_visible(False)
    for axes in grid[-1]:
        axes.set_xlabel(plot["axis"], fontsize=9, color=INK)
    figure.supylabel(plot["height"], fontsize=9, color=INK)
    figure.suptitle(plot["title"], fontsize=10, x=0.01, ha="left", color=INK)
    handles = [plt.Line2D([], [], label=name, **style) for name, style in styles.items()]
    figure.legend(
        handles=handles, loc="outside lower center", ncols=4 if width == PANELS else 2, fontsize=8,
        frameon=False, handlelength=3,
    )  # fmt: skip
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


def curve_style(plot: dict[str, Any], name: str, number: int) -> dict[str, Any]:
    """How a curve looks in every panel: ``strong`` ones are wide, ``bounds`` dashed."""
    if name in plot.get("bounds", ()):
        return {"color": INK, "linestyle": "--", "linewidth": 1.2, "zorder": 4}
    if name in plot.get("strong", ()):
        return {"color": COLOURS[1], "linewidth": 6, "solid_capstyle": "round", "zorder": 1}
    color, marker = CURVES[number % len(CURVES)]
    return {"color": color, "marker": marker, "markersize": 4, "linewidth": 1}


def draw_roofline(plot: dict[str, Any], path: Path) -> None:
    """Points of loops, operations per byte across and operations per second up, under ceilings.

    ``slopes`` are bytes per second, ``tops`` operations per second, in billions.
    """
    figure, axes = plt.subplots(figsize=(7.2, 5.4))
    xs = [x for x, _ in plot["points"].values()]
    low, high = min(xs) / 3, max(xs) * 6
    top = max(plot["tops"].values())
    for i, (name, rate) in enumerate(plot["slopes"].items()):
        end = min(high, top / rate)
        axes.plot([low, end], [rate * low, rate * end], color=INK, linewidth=1.2 - 0.3 * i)
        axes.text(1.15 * low, 1.35 * rate * low, f"{name}, {rate:.0f} GB/s", fontsize=7, color=INK,
                  rotation=40, rotation_mode="anchor")  # fmt: skip
    for name, rate in plot["tops"].items():
        axes.axhline(rate, color=COLOURS[2], linewidth=1.2)
        axes.text(high, rate * 1.04, f"{name}, {number(rate)}", ha="right", fontsize=7, color=INK)
    for i, (name, (x, y)) in enumerate(plot["points"].items()):
        color, marker = CURVES[i % len(CURVES)]
        axes.plot(x, y, marker, color=color, markersize=8, label=name, linestyle="none")
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(None, 1.8 * top))
    axes.set_xlabel("operations per byte that has to come from memory", fontsize=9, color=INK)
    axes.set_ylabel("billion operations per second", fontsize=9, color=INK)
    axes.tick_params(axis="both", which="both", length=0, labelsize=8, colors=INK)
    axes.grid(color="#e5e5e5", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left", "bottom"]].set_visible(False)
    figure.suptitle(plot["title"], fontsize=10, x=0.01, ha="left", color=INK)
    figure.legend(loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


def drawing(plot: dict[str, Any]) -> Any:
    """The function that draws a plot."""
    if "points" in plot:
        return draw_roofline
    return draw_curves if "panels" in plot else draw


def draw_all(results: list[dict[str, Any]]) -> None:
    """Draw the plots of results beside them."""
    with plt.rc_context({"figure.constrained_layout.use": True}):
        for result in results:
            for plot in result["plots"]:
                drawing(plot)(plot, harness.RESULTS / f"{plot['name']}.png")


def front_rows(results: list[dict[str, Any]]) -> list[list[str]]:
    """The claims that the README shows: what, measured, against."""
    claims = {result["name"]: result["claims"] for result in results}
    rows = []
    for (name, begin), text in FRONT.items():
        found = [c for c in claims.get(name, ()) if c["what"].startswith(begin)]
        if found:
            rest = found[0]["what"].rpartition(", worst of ")
            what = f"{text}, worst of {rest[2]}" if rest[1] else text
            rows.append([what, found[0]["against"], claim_row(found[0])[2]])
    return rows


def update_readme(path: Path, results: list[dict[str, Any]]) -> None:
    """Put some claims between the marks, if the marks are there."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if BEGIN not in text or END not in text:
        return
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    shown = table(["what", "against", "measured"], front_rows(results), names=2)
    path.write_text(f"{before}{BEGIN}\n{shown}\n{END}{after}", encoding="utf-8")


def overview(results: list[dict[str, Any]]) -> str:
    """The headlines of all benchmarks, and how many claims fail."""
    claims = [c for r in results for c in r["claims"]]
    failing = sum(not c["holds"] for c in claims)
    return (
        f"{len(claims)} claims, of which {failing} miss their requirement. The headlines:\n\n"
        f"{claims_table([c for c in claims if c['headline']])}"
    )


def main() -> None:
    """Write the page, the plots and the table."""
    paths = sorted(harness.RESULTS.glob("*.json"))
    results = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    if not results:
        raise SystemExit(f"no results in {harness.RESULTS}: run the benchmarks first")
    draw_all(results)
    reasons = MISSES.read_text(encoding="utf-8").strip()
    sections = [INTRODUCTION, overview(results), reasons, *map(section, results)]
    page = "\n\n".join(sections) + "\n"
    (harness.RESULTS / "README.md").write_text(page, encoding="utf-8")
    update_readme(README, results)


if __name__ == "__main__":
    main()
