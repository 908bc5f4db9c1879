"""The main program of a Python agent's process: what launcher.ts is for JavaScript, with the same messages over the same channel.

Serves the graphs with the vendor's open-source server, tells the platform the port, and ends in an orderly way.
Its one argument is the platform's launch options as JSON.
"""

import inspect
import json
import logging
import os
import socket
import sys
import threading
import time
import traceback
import urllib.request

# What is left to an agent whose platform has gone.
ORPHAN_GRACE_S = 1.5
POLL_S = 0.1
# Streams that outlast the grace are cut after this time (whole seconds, as the HTTP server wants them).
CUT_S = 1


class Channel:
    """The platform's end of Node's IPC: one JSON value a line."""

    def __init__(self) -> None:
        number = int(os.environ.pop("NODE_CHANNEL_FD"))
        os.environ.pop("NODE_CHANNEL_SERIALIZATION_MODE", None)
        os.set_inheritable(number, False)
        self._socket = socket.socket(fileno=number)
        self._socket.setblocking(True)

    def tell(self, message: dict) -> None:
        try:
            self._socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            # Nobody hears it: the platform has gone.
            pass

    def orders(self):
        """Yields what the platform says; ends when it has gone."""
        with self._socket.makefile("r", encoding="utf-8") as lines:
            for line in lines:
                try:
                    order = json.loads(line)
                except ValueError:
                    continue
                if isinstance(order, dict):
                    yield order


class Watched:
    """The server's application: counts the requests in flight, and keeps the error that its start ended with."""

    def __init__(self) -> None:
        self.app = None
        self.open = 0
        self.error: BaseException | None = None

    async def __call__(self, scope, receive, send) -> None:
        request = scope["type"] in ("http", "websocket")
        self.open += request
        try:
            await self.app(scope, receive, send)
        except BaseException as error:
            if scope["type"] == "lifespan" and self.error is None:
                self.error = error
            raise
        finally:
            self.open -= request


def main() -> None:
    options = json.loads(sys.argv[1])
    channel = Channel()
    for folder in options["paths"]:
        if folder not in sys.path:
            sys.path.append(folder)
    # Its banner invites to a Studio that nobody has opened.
    logging.getLogger("langgraph_api.cli").setLevel(logging.WARNING)
    app = Watched()
    try:
        import uvicorn
        from langgraph_api import cli

        # Bound, and not listening yet: the server looks whether the port is free, and must find it so.
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((options["host"], 0))
        port = listener.getsockname()[1]
        address = f"http://{options['host']}:{port}"

        def serve(name, **settings) -> None:
            os.environ["PORT"] = str(port)
            os.environ["LANGGRAPH_API_URL"] = address
            settings.update(host=options["host"], port=port, reload=False, workers=1, timeout_graceful_shutdown=CUT_S)
            # This sets the log up, so that what the application says while it is loaded comes as JSON.
            server = uvicorn.Server(uvicorn.Config(app, **settings))
            app.app = load(name)
            threading.Thread(target=obey, args=(server, app, channel, address), daemon=True).start()
            server.run(sockets=[listener])

        cli.uvicorn = uvicorn
        uvicorn.run = serve
        wanted = dict(
            host=options["host"],
            port=port,
            reload=False,
            graphs=options["graphs"],
            n_jobs_per_worker=options["workers"],
            open_browser=False,
            auth=authorisation(options.get("auth")),
            http=options.get("http"),
            # Spares the server the question where the user's Studio is.
            studio_url="http://localhost",
            # As in production: a blocking call in an async node is the agent's own matter.
            allow_blocking=True,
        )
        known = inspect.signature(cli.run_server).parameters
        cli.run_server(**{name: value for name, value in wanted.items() if name in known})
    except BaseException as error:
        cause = error if app.error is None else app.error
        if isinstance(cause, SystemExit) and cause.code in (None, 0):
            leave(0)
        traceback.print_exception(cause)
        channel.tell({"type": "failed", "message": describe(cause)[:4000]})
        leave(1)
    leave(0)


def authorisation(auth):
    # Nobody here knows Studio's users: let in, a header that anyone can send would open an agent that has an authorisation of its own.
    return None if auth is None else {**auth, "disable_studio_auth": True}


def load(name):
    """`langgraph_api.server:app`: its configuration is read when it is imported, which must not be sooner."""
    from uvicorn.importer import import_from_string

    return import_from_string(name)


def describe(error: BaseException) -> str:
    """An error in one sentence; the innermost of a group that has one member."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    spec = getattr(error, "spec", None)
    if spec is None:
        return f"{type(error).__name__}: {one_line(error)}"
    cause = getattr(error, "cause", None) or error
    shown = os.path.relpath(spec.path) if getattr(spec, "path", None) else getattr(spec, "module", None)
    return f"graph '{spec.id}': {shown} could not be loaded: {type(cause).__name__}: {one_line(cause)}"


def one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def obey(server, app: Watched, channel: Channel, address: str) -> None:
    """Tells when the server listens, and then does as it is told. Runs in a thread of its own."""
    while not server.started:
        time.sleep(0.02)
        if server.should_exit:
            return
    channel.tell({"type": "listening", "port": int(address.rpartition(":")[2])})
    grace = ORPHAN_GRACE_S
    for order in channel.orders():
        if order.get("type") == "stop":
            grace = float(order.get("graceMs", 0)) / 1000
            break
    deadline = time.monotonic() + grace
    while time.monotonic() < deadline and (app.open > 0 or has_busy_thread(address)):
        time.sleep(POLL_S)
    server.should_exit = True


def has_busy_thread(address: str) -> bool:
    """A background run has no request in flight: its thread tells of it."""
    question = urllib.request.Request(
        f"{address}/threads/search",
        data=json.dumps({"status": "busy", "limit": 1}).encode(),
        headers={"content-type": "application/json"},
    )
    try:
        # No proxy between a process and itself.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(question, timeout=1) as answer:
            return len(json.load(answer)) > 0
    except Exception:
        # The agent has an authorisation of its own, or has no threads: then only requests count.
        return False


def leave(code: int) -> None:
    """Ends for good: a thread that the agent's code left behind must not hold the process."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            pass
    os._exit(code)


if __name__ == "__main__":
    main()
