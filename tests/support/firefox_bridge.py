"""Lets Playwright drive a Firefox that knows less of WebDriver BiDi than it asks for.

Playwright starts this file in the place of Firefox, with Firefox's own arguments after
the path of the program. It starts Firefox, and passes on what both say, but for one
thing: where Debian's Firefox (140) does not know a setting of Playwright's newest
version, Playwright gives up. Here it hears yes instead, for the settings below: so in
Firefox there is no dark scheme and no reduced motion.
"""

import asyncio
import json
import sys

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application
from tornado.websocket import (
    WebSocketClientConnection,
    WebSocketHandler,
    websocket_connect,
)

LISTENING = "WebDriver BiDi listening on "
FORGIVEN = {
    "browser.setDownloadBehavior",
    "emulation.setScreenOrientationOverride",
    "emulation.setScreenSettingsOverride",
    "emulation.setMediaFeaturesOverride",
    "network.addDataCollector",
}
LARGEST = 2**28  # bytes of a message


class Bridge(WebSocketHandler):
    """Passes messages between Playwright and Firefox."""

    firefox: WebSocketClientConnection

    def initialize(self, address: str) -> None:
        self.address = address
        self.forgiven: set[int] = set()

    async def open(self, *args: str, **kwargs: str) -> None:
        self.firefox = await websocket_connect(
            f"{self.address}/session", max_message_size=LARGEST
        )
        self.listening = asyncio.create_task(self.listen())

    async def on_message(self, message: str | bytes) -> None:
        asked = json.loads(message)
        if asked["method"] in FORGIVEN:
            self.forgiven.add(asked["id"])
        await self.firefox.write_message(message)

    async def listen(self) -> None:
        while (message := await self.firefox.read_message()) is not None:
            said = json.loads(message)
            if said.get("id") in self.forgiven and said["type"] == "error":
                result = {"collector": "none"}
                message = json.dumps(
                    {"type": "success", "id": said["id"], "result": result}
                )
            await self.write_message(message)
        self.close()

    def on_close(self) -> None:
        self.firefox.close()


async def main(program: str, *arguments: str) -> int:
    firefox = await asyncio.create_subprocess_exec(
        program, *arguments, stderr=asyncio.subprocess.PIPE
    )
    assert firefox.stderr is not None
    while line := (await firefox.stderr.readline()).decode():
        if LISTENING in line:
            address = line.split(LISTENING)[1].strip()
            sockets = bind_sockets(0, "127.0.0.1")
            app = Application(
                [("/session", Bridge, {"address": address})],
                websocket_max_message_size=LARGEST,
            )
            HTTPServer(app).add_sockets(sockets)
            port = sockets[0].getsockname()[1]
            line = f"{LISTENING}ws://127.0.0.1:{port}\n"
        print(line, end="", file=sys.stderr, flush=True)
    return await firefox.wait()


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))
