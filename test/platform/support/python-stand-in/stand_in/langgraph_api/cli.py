"""Stand-in for the agent server's own start."""

import json
import os


def run_server(host, port, reload, graphs, n_jobs_per_worker=None, open_browser=False, allow_blocking=False, auth=None, studio_url=None):
    import uvicorn

    assert not reload and not open_browser and allow_blocking and studio_url
    os.environ["LANGSERVE_GRAPHS"] = json.dumps(graphs)
    os.environ["LANGGRAPH_AUTH"] = json.dumps(auth)
    uvicorn.run("langgraph_api.server:app", host=host, port=port, reload=reload)
