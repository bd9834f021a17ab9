"""A fork server for the crash suite: each line on stdin runs one writer process until SIGKILL.

A writer opens the store, writes from one or more threads, and reports each write twice through a
pipe: before the call and after it returned. Once the process is dead, everything in the pipe is
printed as one line on stdout.
"""

import json
import os
import random
import signal
import sys
import threading
import time
from typing import Any

from told import Memory
from told.testing import hashing_embedder

OPERATIONS = (
    "add",
    "add",
    "add",
    "several",
    "several",
    "bulk",
    "update",
    "update",
    "delete",
    "say again",
)


class Life:
    """One thread of one writer process: its memory and its report pipe."""

    def __init__(self, memory: Memory, pipe: int, name: str, dice: random.Random) -> None:
        self.memory = memory
        self.pipe = pipe
        self.name = name
        self.dice = dice
        self.held: list[str] = []
        self.number = 0

    def say(self, **line: object) -> None:
        """Write one line, shorter than a pipe's buffer and therefore written atomically."""
        os.write(self.pipe, json.dumps(line).encode() + b"\n")

    def live(self, writes: int) -> None:
        for self.number in range(writes):
            operation = self.dice.choice(OPERATIONS)
            if operation in ("update", "delete", "say again") and not self.held:
                operation = "add"
            self.write(operation, f"{self.name}-{self.number}")

    def write(self, operation: str, mark: str) -> None:
        count = {"several": self.dice.randint(2, 5), "bulk": 25}.get(operation, 1)
        id_ = (
            self.dice.choice(self.held) if operation in ("update", "delete", "say again") else None
        )
        self.say(tried=mark, op=operation, count=count, id=id_)
        if operation == "update":
            ids = [row["id"] for row in self.memory.update(id_, f"{mark} updated")["results"]]
        elif operation == "delete":
            ids = [row["id"] for row in self.memory.delete(id_)["results"]]
            self.held.remove(id_)
        elif operation == "say again":
            text = self.memory.get(id_)["memory"]
            said = self.memory.add(
                {"role": "assistant", "content": text}, user_id="writer", idempotency_key=mark
            )
            ids = [row["id"] for row in said["results"]]
        else:
            texts = [{"role": "user", "content": f"{mark} part {part}"} for part in range(count)]
            said = self.memory.add(texts, user_id="writer", idempotency_key=mark)
            ids = [row["id"] for row in said["results"]]
            self.held += ids
        self.say(done=mark, ids=ids)


def live(order: dict[str, Any], pipe: int) -> None:
    """Open, write until killed or done, and leave without any farewell."""
    os.write(pipe, b'{"born": true}\n')
    memory = Memory(
        f"sqlite:///{order['path']}", embedder=hashing_embedder(dim=16, model="hash-16")
    )
    if order["step"]:
        memory.engine.store.watch(_killer(order["step"], order["nth"]))
    seed = order["seed"]
    lives = [
        Life(memory, pipe, f"s{seed}t{number}", random.Random(f"{seed}/{number}"))
        for number in range(order["threads"])
    ]
    threads = [threading.Thread(target=life.live, args=(order["writes"],)) for life in lives]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.kill(os.getpid(), signal.SIGKILL)


def _killer(step: str, nth: int):
    met = 0

    def watch(name: str) -> None:
        nonlocal met
        met += name == step
        if met == nth:
            os.kill(os.getpid(), signal.SIGKILL)

    return watch


def report(order: dict[str, Any]) -> list[str]:
    """Fork a writer, wait for its end, and return every line it reported."""
    out, pipe = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(out)
        try:
            live(order, pipe)
        except BaseException as error:
            os.write(
                pipe, json.dumps({"failed": f"{type(error).__name__}: {error}"}).encode() + b"\n"
            )
        finally:
            os._exit(1)
    os.close(pipe)
    with os.fdopen(out, "rb") as lines:
        said = [lines.readline() for _ in range(order["lines"])]
        if not order["step"]:
            time.sleep(order["delay"])
            os.kill(child, signal.SIGKILL)
        said += lines
    os.waitpid(child, 0)
    return [line.decode() for line in said if line]


for command in sys.stdin:
    print(json.dumps(report(json.loads(command))), flush=True)
