"""References to short names, as ``hilbin.save``, lead to the page of the long one."""

from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

import hilbin


def resolve(app: Sphinx, env: BuildEnvironment, node: pending_xref, text: nodes.Node) -> Any:
    """Return a reference to the name where it is documented."""
    package, _, name = str(node.get("reftarget", "")).partition(".")
    if package != "hilbin" or name not in hilbin.__all__:
        return None
    domain = env.get_domain("py")
    for home in ("hilbin.auto", "hilbin.persist"):
        found = domain.resolve_xref(
            env, node["refdoc"], app.builder, node["reftype"], f"{home}.{name}", node, text
        )
        if found is not None:
            return found
    return None


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect to Sphinx."""
    app.connect("missing-reference", resolve)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
