"""Pages for a browser, served from this machine."""

import functools
import gzip
import mimetypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

COMPRESSED = {".html", ".css", ".js", ".json", ".svg", ".xml", ".txt", ".md", ".ipynb"}
# From a path, what stands there, or None, and headers beside its type and length.
Read = Callable[[str], tuple[bytes | None, dict[str, str]]]


class Handler(BaseHTTPRequestHandler):
    """Answers, and says nothing."""

    protocol_version = "HTTP/1.1"

    def __init__(self, read: Read, *args: object) -> None:
        self.read = read
        super().__init__(*args)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        path = unquote(self.path.partition("?")[0])
        content, headers = self.read(path)
        kind = "text/html" if path[-1] == "/" else mimetypes.guess_type(path)[0]
        self.send_response(404 if content is None else 200)
        self.send_header("Content-Type", kind or "application/octet-stream")
        self.send_header("Content-Length", str(len(content or b"")))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content or b"")

    def log_message(self, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    """Does not mind a browser that has left the page."""

    def handle_error(self, *args: object) -> None:
        pass


@contextmanager
def served(read: Read) -> Iterator[str]:
    """Serve what `read` finds; yield the address, without a slash at its end."""
    with Server(("127.0.0.1", 0), functools.partial(Handler, read)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@functools.cache
def compressed(file: Path) -> bytes:
    """Return a file as a host sends it."""
    content = file.read_bytes()
    return gzip.compress(content, 6) if file.suffix in COMPRESSED else content


def in_folder(folder: Path, path: str) -> tuple[bytes | None, dict[str, str]]:
    """Find a file of a built site, compressed as a host sends it."""
    file = folder / path[1:] / ("index.html" if path[-1] == "/" else "")
    headers = {"Cache-Control": "max-age=600"}
    if file.suffix in COMPRESSED:
        headers["Content-Encoding"] = "gzip"
    return (compressed(file), headers) if file.is_file() else (None, {})
