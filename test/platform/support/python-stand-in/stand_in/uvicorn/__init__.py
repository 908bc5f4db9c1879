"""Stand-in for the HTTP server: as much of its interface as the agent server uses, on the standard library alone."""

import asyncio
import json
import logging
import signal


class Config:
    def __init__(self, app, host, port, timeout_graceful_shutdown, **settings):
        self.app = app
        self.grace = timeout_graceful_shutdown
        logging.basicConfig(level=logging.INFO, format="%(message)s", force=True)


class Server:
    def __init__(self, config):
        self.config = config
        self.started = False
        self.should_exit = False

    def run(self, sockets):
        asyncio.run(self._serve(sockets[0]))

    async def _serve(self, listener):
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, lambda: setattr(self, "should_exit", True))
        incoming, outgoing = asyncio.Queue(), asyncio.Queue()
        lifespan = asyncio.ensure_future(self.config.app({"type": "lifespan"}, incoming.get, outgoing.put))
        await incoming.put({"type": "lifespan.startup"})
        if (await outgoing.get())["type"] != "lifespan.startup.complete":
            await asyncio.wait([lifespan])
            raise SystemExit(3)
        listener.listen()
        listener.setblocking(False)
        server = await asyncio.start_server(self._answer, sock=listener)
        self.started = True
        while not self.should_exit:
            await asyncio.sleep(0.02)
        server.close()
        await incoming.put({"type": "lifespan.shutdown"})
        await lifespan

    async def _answer(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, path, _ = head.split(" ", 2)
        length = next((int(line.split(":")[1]) for line in head.split("\r\n") if line.lower().startswith("content-length:")), 0)
        body = await reader.readexactly(length)

        async def receive():
            return {"type": "http.request", "body": body}

        async def send(message):
            if message["type"] == "http.response.start":
                writer.write(f"HTTP/1.1 {message['status']} OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n".encode())
            else:
                writer.write(message["body"])

        try:
            await self.config.app({"type": "http", "method": method, "path": path}, receive, send)
        except Exception as error:
            writer.write(b"HTTP/1.1 500 Error\r\nconnection: close\r\n\r\n" + json.dumps({"error": str(error)}).encode())
        finally:
            writer.close()


def run(app, **settings):
    raise RuntimeError("the launcher serves by itself")
