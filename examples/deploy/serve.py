"""Serve a model over HTTP: python serve.py digits.hilbin [port].

POST {"rows": [[...], ...]} and get {"labels": [...], "probabilities": [[...], ...]}.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

import hilbin

LARGEST = 10_000_000  # bytes of a request


def answer(model: Any, request: bytes) -> dict[str, Any]:
    """Return labels and probabilities of the rows of a request."""
    content = json.loads(request)
    if not isinstance(content, dict) or "rows" not in content:
        raise ValueError('the request must be {"rows": [[...], ...]}')
    rows = np.asarray(content["rows"], dtype=float)
    labels = model.predict(rows).tolist()
    return {"labels": labels, "probabilities": model.predict_proba(rows).tolist()}


def server(model: Any, port: int) -> ThreadingHTTPServer:
    """Return a local server of the model; many threads may query a fitted model."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            if length > LARGEST:
                self.send_error(413)
                return
            try:
                status, body = 200, answer(model, self.rfile.read(length))
            except (ValueError, TypeError) as error:
                status, body = 400, {"error": str(error)}  # names the row and the column
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: Any) -> None:
            pass

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


if __name__ == "__main__":
    port = int(sys.argv[2]) if len(sys.argv) > 2 else 8000
    server(hilbin.load(sys.argv[1]), port).serve_forever()
