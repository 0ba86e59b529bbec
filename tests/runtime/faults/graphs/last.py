"""A graph whose worker dies when the last checkpoint is stored, before it reports the end of the
run.

Only if the test has created the file `last.waits`, and once.
"""

import os
import signal
from pathlib import Path

from heddle.runtime.saver import RuntimeSaver
from steps import build

stored = RuntimeSaver.aput
LAST_STEP = 3


async def aput(self, config, checkpoint, metadata, new_versions):
    answer = await stored(self, config, checkpoint, metadata, new_versions)
    folder = Path(config["configurable"].get("folder", "none"))
    if metadata["step"] == LAST_STEP and (folder / "last.waits").exists() and not (folder / "last.killed").exists():
        (folder / "last.killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return answer


RuntimeSaver.aput = aput
graph = build().compile()
