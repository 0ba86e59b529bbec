"""Heddle: checkpoints of agent conversations, as a LangGraph checkpointer.

from heddle import HeddleSaver

with HeddleSaver.from_conn_string("sqlite:chat.db") as saver:
    graph = builder.compile(checkpointer=saver)
"""

from heddle._core import __version__
from heddle._errors import HeddleError, HeddleValueError
from heddle._foreign import Foreign
from heddle.saver import CheckpointHeader, HeddleSaver, ThreadInfo, ThreadUsage
from heddle.serializer import CanonicalSerializer

__all__ = [
    "CanonicalSerializer",
    "CheckpointHeader",
    "Foreign",
    "HeddleError",
    "HeddleSaver",
    "HeddleValueError",
    "ThreadInfo",
    "ThreadUsage",
    "__version__",
]
