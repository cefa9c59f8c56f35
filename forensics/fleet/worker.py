"""How a worker process of this machine begins."""

from __future__ import annotations

import os
import signal
import threading
import time


def begin_worker(parent: int) -> None:
    """Ctrl-C is the parent's business: it stops handing out work and ends the workers. Where the parent was killed, its
    workers would wait for ever: they end themselves."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
