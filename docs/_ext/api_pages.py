"""Pages of the reference: which guides a name has, and which inherited methods are left out."""

import re
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent.parent
MOST = 3  # guides that a page names
PACKAGES = {  # where no guide names the object itself
    "hilbin": "quickstart",
    "hilbin.auto": "auto",
    "hilbin.dependence": "dependence",
    "hilbin.detect": "detect",
    "hilbin.estimators": "choose",
    "hilbin.images": "images",
    "hilbin.inspection": "inspection",
    "hilbin.kernels": "kernels",
    "hilbin.maps": "maps",
    "hilbin.persist": "saving",
    "hilbin.plot": "inspection",
    "hilbin.report": "inspection",
    "hilbin.solvers": "solvers",
    "hilbin.stats": "bigger_than_memory",
    "hilbin.stream": "bigger_than_memory",
}
OTHERS = "api architecture choose coming_from errata faq glossary how_fast index internals papers"

INHERITED = ["fit_predict", "fit_transform", "score", "set_output", "get_params", "set_params"]


def guides(module: str, name: str) -> list[str]:
    """Return the guides that use a name most often, or that of its package."""
    counts: Counter[str] = Counter()
    for page in sorted(DOCS.glob("*.rst")):
        if page.stem not in OTHERS.split() and not page.stem.startswith("paper_"):
            text = page.read_text(encoding="utf-8")
            roles = re.findall(rf":(?:class|func):`~?(?:hilbin\.)?(?:\w+\.)?{name}`", text)
            calls = re.findall(rf"^(?:>>>|\.\.\.) .*\b{name}\(", text, re.M)
            counts[page.stem] = len(roles) + len(calls)
    named = [stem for stem, count in counts.most_common(MOST) if count]
    return named or [PACKAGES[module]]


def guide_table() -> dict[str, list[str]]:
    """Return the guides of every name that the reference lists."""
    table: dict[str, list[str]] = {}
    module = "hilbin"
    for line in (DOCS / "api.rst").read_text(encoding="utf-8").splitlines():
        if found := re.match(r"\.\. (?:current)?module:: (\S+)", line):
            module = found[1]
        elif found := re.fullmatch(r"   (\w+)", line):
            table[f"{module}.{found[1]}"] = guides(module, found[1])
    return table


def inherited_table() -> dict[str, list[str]]:
    """Return the methods that classes of the reference inherit from scikit-learn unchanged."""
    table: dict[str, list[str]] = {}
    for full in guide_table():
        module, _, name = full.rpartition(".")
        found = getattr(import_module(module), name)
        methods = {one: getattr(found, one, None) for one in INHERITED if isinstance(found, type)}
        table[full] = [
            one
            for one, method in methods.items()
            if (getattr(method, "__module__", None) or "").startswith("sklearn.")
        ]
    return table


def skip(app: Any, what: str, name: str, obj: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn's mix-ins add; its texts refer to its own pages."""
    del app, what, options
    ours = not (getattr(obj, "__module__", None) or "").startswith("sklearn.")
    return None if ours or name.startswith("__") else True


def setup(app: Any) -> dict[str, bool]:
    """Connect the rule to autodoc."""
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True}
