"""Stand-in for the agent server: loads the graphs, answers a few routes, keeps what it was told in a file."""

import asyncio
import importlib.util
import json
import os
import pathlib
import types

GRAPHS = {}
BUSY = []
MEMORY = pathlib.Path(".langgraph_api/memory.json")


class GraphLoadError(RuntimeError):
    def __init__(self, graph_id, path, cause):
        self.spec = types.SimpleNamespace(id=graph_id, path=path, module=None)
        self.cause = cause
        super().__init__(f"Failed to load graph '{graph_id}'")


def load_graphs():
    for graph_id, spec in json.loads(os.environ["LANGSERVE_GRAPHS"]).items():
        path, _, name = spec.rpartition(":")
        try:
            found = importlib.util.spec_from_file_location(graph_id, path)
            module = importlib.util.module_from_spec(found)
            found.loader.exec_module(module)
            GRAPHS[graph_id] = getattr(module, name)
        except Exception as error:
            raise GraphLoadError(graph_id, path, error) from error


async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        try:
            load_graphs()
        except BaseException:
            await send({"type": "lifespan.startup.failed"})
            raise
        await send({"type": "lifespan.startup.complete"})
        await receive()
        while BUSY:
            await asyncio.sleep(0.02)
        return
    message = await receive()
    body = json.loads(message["body"] or b"null")
    answer = await route(scope["path"], body)
    await send({"type": "http.response.start", "status": 404 if answer is None else 200})
    await send({"type": "http.response.body", "body": json.dumps(answer).encode()})


async def route(path, body):
    if path == "/ok":
        return {"ok": True}
    if path == "/assistants/search":
        return [{"graph_id": graph_id} for graph_id in GRAPHS]
    if path == "/threads/search":
        return BUSY
    if path == "/memory":
        return json.loads(MEMORY.read_text()) if MEMORY.exists() else []
    if path == "/auth":
        return json.loads(os.environ["LANGGRAPH_AUTH"])
    if path == "/runs/wait":
        answer = GRAPHS[body["assistant_id"]](body["input"])
        answer = await answer if asyncio.iscoroutine(answer) else answer
        MEMORY.write_text(json.dumps([*(await route("/memory", None)), answer]))
        return answer
    return None
