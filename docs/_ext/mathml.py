"""Formulas become MathML when the pages are built, so that they need no script and no network."""

import re
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

TOKEN = r"\s*(\\[a-zA-Z]+|[^\s{\\])"  # an argument without braces: a command or one character


def _mathml(tex: str, block: bool) -> str:
    """Return MathML of a formula, in the part of LaTeX that docutils knows."""
    tex = re.sub(r"\\([td]?frac)" + TOKEN + TOKEN, r"\\\1{\2}{\3}", tex)
    tex = re.sub(r"\\([td]?frac)" + TOKEN + r"\s*(?=\{)", r"\\\1{\2}", tex)
    tex = re.sub(r"\\([td]?frac)(\{[^{}]*\})" + TOKEN, r"\\\1\2{\3}", tex)
    tex = re.sub(r"\\sqrt" + TOKEN, r"\\sqrt{\1}", tex)
    tex = tex.replace(r"\dots", r"\ldots")
    tex = tex.replace(r"\textstyle\sum", r"{\textstyle\sum}")
    tex = re.sub(r"\\([bB]ig)(?=[(\[]|\\\{)", r"\\\1l", tex)
    tex = re.sub(r"\\([bB]ig)(?=[)\]]|\\\})", r"\\\1r", tex)
    tex = re.sub(r"\\[bB]ig(?=\\?\|)", "", tex)
    return tex2mathml(tex, as_block=block)


def visit_inline(writer: Any, node: nodes.math) -> None:
    """Write a formula in a line of text."""
    writer.body.append(_mathml(node.astext(), block=False))
    raise nodes.SkipNode


def visit_block(writer: Any, node: nodes.math_block) -> None:
    """Write a formula in lines of its own, which scroll where the window is narrow."""
    writer.body.append('<div class="math-block" tabindex="0">')
    writer.body.append(_mathml(node.astext(), block=True) + "</div>")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the renderer to Sphinx."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
