"""Servers that children of the tests run: the same face as a scheduler or worker, and nothing behind it."""

from __future__ import annotations

import asyncio
import atexit
import os
import signal
import subprocess
import sys
import tempfile
import time


class Quiet:
    """Starts, waits, closes. What it was given can be read from its address."""

    def __init__(self, *arguments, **options):
        self.arguments = arguments
        self.options = options
        self.address = ""
        self.end = asyncio.Event()

    async def start(self):
        self.address = f"stand-in://{os.getpid()}"

    async def close(self, reason=""):
        self.end.set()

    async def finished(self):
        await self.end.wait()


class Telltale(Quiet):
    """Its address is what an expression over its options and process says."""

    async def start(self):
        self.address = str(eval(self.options["expression"], {"os": os, "sys": sys, "options": self.options}))


class Refuses(Quiet):
    async def start(self):
        print("some last words", file=sys.stderr)
        raise ValueError("not in the mood")


class Dies(Quiet):
    async def start(self):
        print("some last words", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)


class DiesLater(Quiet):
    """Dies by the file named in its options, if that is there when it starts, or appears later."""

    async def start(self):
        await super().start()
        self.fuse = asyncio.ensure_future(self.burn())

    async def burn(self):
        while not os.path.exists(self.options["fuse"]):
            await asyncio.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)

    async def close(self, reason=""):
        self.fuse.cancel()
        await super().close(reason)


class Leaves(Quiet):
    """Closes by itself at once."""

    async def start(self):
        await super().start()
        self.end.set()


class Stubborn(Quiet):
    """Never closes, and has a child of its own that never ends."""

    async def start(self):
        self.child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        self.directory = tempfile.mkdtemp(dir=self.options["folder"])
        self.address = f"stand-in://{os.getpid()}/{self.child.pid}"

    async def close(self, reason=""):
        time.sleep(600)


class SlowStart(Quiet):
    async def start(self):
        await asyncio.sleep(600)


class HangsUp(Leaves):
    """Closes by itself at once, and its process lives on until there is the file named in its options."""

    async def start(self):
        await super().start()
        atexit.register(self.linger)

    def linger(self):
        while not os.path.exists(self.options["until"]):
            time.sleep(0.01)
