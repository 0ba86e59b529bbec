"""The last test: did the other tests call every public method of the clients?

It reads what the clients recorded, so it is meaningful only after a complete run.
"""

import inspect

import clients
import pytest
from langgraph.pregel.remote import RemoteGraph
from langgraph_sdk import get_client, get_sync_client

# Methods that these tests do not call, and why.
LEFT_OUT = {
    "stream": {
        "ThreadsClient": "the thread-centric protocol has tests of its own",
        "SyncThreadsClient": "the thread-centric protocol has tests of its own",
    }
}
REMOTE_GRAPH = {  # the methods that call a server; the rest of the class is about Runnables
    "invoke", "ainvoke", "stream", "astream", "get_state", "aget_state", "get_state_history", "aget_state_history",
    "update_state", "aupdate_state", "get_graph", "aget_graph", "with_config",
}  # fmt: skip


def wanted():
    for client in (get_client(url="http://unused"), get_sync_client(url="http://unused")):
        for resource in clients.RESOURCES:
            kind = type(getattr(client, resource))
            for method in clients.public_methods(kind):
                if kind.__name__ not in LEFT_OUT.get(method, {}):
                    yield kind.__name__, method
    assert {name for name, _ in inspect.getmembers(RemoteGraph, inspect.isfunction)} >= REMOTE_GRAPH
    for method in REMOTE_GRAPH:
        yield "RemoteGraph", method


@pytest.mark.beyond_peer("not every method has something to call there")
def test_every_public_method_was_called(request):
    if request.config.getoption("-k") or not request.config.getoption("--whole", default=False):
        pytest.skip("not the whole suite")
    assert not sorted(set(wanted()) - clients.called)
