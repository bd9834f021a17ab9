"""A worker process on a shared file: it reads one JSON order per line from stdin and answers on
stdout.

The order `crowd` names a file and a list of orders. Each runs in a forked process, all started at
the same moment, so that sixteen processes cost one start of Python.
"""

import json
import os
import sys
import time
from typing import Any

from told import Memory
from told.errors import ToldError
from told.testing import hashing_embedder

PATIENCE = 20
"""Factor by which a reader waits longer for the first write on a busy machine."""


def open_memory(path: str) -> Memory:
    return Memory(f"sqlite:///{path}", embedder=hashing_embedder(dim=16, model="hash-16"))


def write(memory: Memory, name: str, seconds: float) -> dict[str, Any]:
    """Write to the worker's own scope until the time is up: adds, updates, deletes."""
    held: dict[str, str] = {}
    done = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        said = memory.add(
            [f"{name} says {done} {part}" for part in range(1 + done % 3)], user_id=name
        )
        held |= {row["id"]: row["memory"] for row in said["results"]}
        memory.add(f"shared thought {done % 20}", user_id="common")
        oldest = next(iter(held))
        if done % 4 == 1:
            held[oldest] = f"{name} corrects {done}"
            memory.update(oldest, held[oldest])
        if done % 4 == 3:
            memory.delete(oldest)
            del held[oldest]
        done += 1
    return {"held": held, "done": done}


def read(memory: Memory, name: str, seconds: float) -> dict[str, Any]:
    """Search one writer's scope until the time is up; report rows that are not its own."""
    looked = most = 0
    leaked: list[str] = []
    end, latest = time.monotonic() + seconds, time.monotonic() + PATIENCE * seconds
    while time.monotonic() < (end if most else latest):
        found = memory.search("says thought corrects", user_id=name, limit=1000)["results"]
        listed = memory.get_all(user_id=name, limit=1000)["results"]
        leaked += [
            row["memory"] for row in found + listed if not row["memory"].startswith(f"{name} ")
        ]
        most = max(most, len(listed))
        looked += 1
    return {"looked": looked, "most": most, "leaked": leaked}


def obey(memory: Memory, order: dict[str, Any]) -> Any:
    match order.pop("do"):
        case "write":
            return write(memory, **order)
        case "read":
            return read(memory, **order)
        case "add":
            return memory.add(order["text"], user_id=order["user"])
        case "search":
            return [
                row["id"]
                for row in memory.search(order["text"], user_id=order["user"], limit=3)["results"]
            ]
        case "get_all":
            return [row["memory"] for row in memory.get_all(user_id=order["user"])["results"]]


def answer(memory: Memory, order: dict[str, Any]) -> Any:
    try:
        return obey(memory, order)
    except ToldError as error:
        return {"error": f"{type(error).__name__}: {error}"}


def crowd(path: str, orders: list[dict[str, Any]]) -> list[Any]:
    gate, barrier = os.pipe()
    answers = []
    for order in orders:
        out, pipe = os.pipe()
        if os.fork() == 0:
            os.close(barrier)
            os.read(gate, 1)
            os.write(pipe, json.dumps(_life(path, order)).encode())
            os._exit(0)
        os.close(pipe)
        answers.append(out)
    os.close(barrier)
    told = []
    for out in answers:
        with os.fdopen(out, "rb") as lines:
            told.append(json.loads(lines.read() or '{"error": "the process died"}'))
    for _ in orders:
        os.wait()
    os.close(gate)
    return told


def _life(path: str, order: dict[str, Any]) -> Any:
    try:
        with open_memory(path) as memory:
            return answer(memory, order)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def main() -> None:
    if sys.argv[1] == "crowd":
        Memory("ram://").add(
            "I am the first of many, and I like tea.", user_id="crowd"
        )  # patterns are compiled once
        for line in sys.stdin:
            print(json.dumps(crowd(**json.loads(line))), flush=True)
        return
    with open_memory(sys.argv[1]) as memory:
        print(json.dumps("ready"), flush=True)
        for line in sys.stdin:
            print(json.dumps(answer(memory, json.loads(line))), flush=True)


main()
