"""One HTML file: a template of the package with its style and scripts inside.

Nothing is loaded from outside, and nothing can be: the content security policy of the templates
allows pictures inside the page, its own style, and the one script whose hash it names.
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from hilbin.report.markup import Html, fill, join


def document(template: str, style: str, scripts: Sequence[str], **values: Any) -> Html:
    """Fill a template of the package; ``values`` are escaped unless they are HTML."""
    script = join(_text(name) for name in scripts)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return fill(_text(template), hash=digest, style=_text(style), script=script, **values)


def json_data(data: Any) -> Html:
    """Return data for a script; ``<`` would end its element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Html(text)


@cache
def _text(name: str) -> Html:
    return Html(files("hilbin.report").joinpath(name).read_text(encoding="utf-8"))
