"""The built site, served from this machine as a host serves it: compressed."""

import functools
import gzip
import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import BinaryIO

COMPRESSED = {".html", ".css", ".js", ".json", ".svg", ".xml", ".txt", ".md", ".ipynb"}


@functools.cache
def compressed(path: Path) -> bytes:
    """Return a file as a host sends it."""
    content = path.read_bytes()
    return gzip.compress(content, 6) if path.suffix in COMPRESSED else content


class Handler(SimpleHTTPRequestHandler):
    """Serves files, compressed where that helps, and says nothing."""

    def send_head(self) -> io.BytesIO | BinaryIO | None:
        path = Path(self.translate_path(self.path))
        path = (
            path / "index.html" if self.path.partition("?")[0].endswith("/") else path
        )
        if not path.is_file() or path.suffix not in COMPRESSED:
            return super().send_head()
        content = compressed(path)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "max-age=600")
        self.end_headers()
        return io.BytesIO(content)

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder; yield its address."""
    handler = functools.partial(Handler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
