"""A conversation on a terminal or through a pipe: lines in, replies out, and commands that begin with a slash."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.text import Text

from told.core.errors import InvalidInput, ToldError
from told.core.lazy import regex
from told.faces.chat import Chat, Reply
from told.faces.cli import curves, reasons, tiers, views
from told.faces.cli.options import Ids
from told.faces.cli.shell import FAILED, OK, Shell
from told.faces.cli.streams import decoded
from told.faces.sdk import Memory
from told.open.llm import open_llm

PROMPT: Final = "you> "
SPOKEN: Final = regex(r"/(?P<name>[a-zA-Z][\w-]*)(?:\s+(?P<rest>.*))?", re.DOTALL)
"""A command; `/etc/hosts` is none, and neither is a line that begins with a blank."""

NEAR: Final = 0.5
YES, NO = frozenset({"y", "yes"}), frozenset({"", "n", "no"})


def talk(shell: Shell, ids: Ids, model: str | None, *, as_of: str | None, yes: bool) -> int:
    """Talk until the lines end, and give the exit code: whether every line could be done."""
    settings = shell.loaded().settings
    llm = open_llm(model or settings.llm, settings)
    with Memory(
        shell.store, embedder=shell.embedder, llm=llm or "none", account=shell.account, zone=shell.zone
    ) as memory:
        chat = Chat(memory, llm, ids)
        if as_of is not None:
            chat.at(as_of)
        return Talk(shell, chat, Lines(), yes=yes).run()


class Lines:
    """The lines somebody types or pipes in; one that was read too early can be put back."""

    def __init__(self) -> None:
        self.typed = sys.stdin.isatty()
        self._again: list[str] = []

    def read(self, prompt: str) -> str | None:
        """The next line without its end, or nothing at the end."""
        if self._again:
            return self._again.pop()
        if not self.typed:
            line = sys.stdin.buffer.readline()
            return decoded(line).rstrip("\r\n") if line else None
        try:
            return input(prompt)
        except EOFError:
            return None

    def put_back(self, line: str) -> None:
        """Read this line again."""
        self._again.append(line)


@dataclass(frozen=True, slots=True)
class Command:
    """What a slash leads to: its result, how people see that, and what it does in one line."""

    about: str
    run: Callable[[str], Mapping[str, Any] | None]
    view: Callable[[Any], RenderableType]
    takes: str = ""


class Talk:
    """The loop around a conversation."""

    def __init__(self, shell: Shell, chat: Chat, lines: Lines, *, yes: bool = False) -> None:
        self.shell, self.chat, self.lines, self.yes = shell, chat, lines, yes
        self.over, self.code = False, OK
        self.warned: set[str] = set()
        self.commands = {
            "memory": Command("what is held, how strong it is and when it will fade", self._memory, curves.remembered),
            "explain": Command("why the last reply used what it used", self._explain, _explained),
            "why": Command("why a memory was or was not used for it", self._why, _why, "<id or words>"),
            "forget": Command("give up a memory", self._forget, _forgotten, "<id or words>"),
            "as-of": Command("answer from what was known then; `now` goes back", self._as_of, _moved, "<time>"),
            "tiers": Command("where memories are", self._tiers, self._glance),
            "help": Command("these commands", self._help, _help),
            "quit": Command("end; so do Ctrl-C and Ctrl-D", self._quit, _said),
        }

    def run(self) -> int:
        """Read and answer until there is no more to read; Ctrl-C is an end, not an accident."""
        if self.lines.typed and not self.shell.json:
            self.shell.console().print(_greeting(self.chat))
        try:
            while not self.over and (line := self.lines.read(PROMPT)) is not None:
                if line.strip():
                    self._line(line)
        except KeyboardInterrupt:
            self.over = True
        if self.lines.typed and not self.shell.json:
            self.shell.console().print(Text("\nGoodbye. What was said is remembered.", style="dim"))
        return self.code

    def _line(self, line: str) -> None:
        """Do what a line says; what cannot be done is said, and the conversation goes on."""
        spoken = SPOKEN.fullmatch(line.rstrip())
        try:
            if spoken:
                self._command(spoken["name"].lower(), (spoken["rest"] or "").strip())
            else:
                self._show(self.chat.say(line.strip()))
        except ToldError as error:
            self.code = FAILED
            self._refuse(error)
        except KeyboardInterrupt:
            if not self.lines.typed:
                raise
            self.shell.note("Stopped.")

    def _refuse(self, error: ToldError) -> None:
        if self.shell.json:
            self.shell.print_json(error.as_dict())
        else:
            self.shell.note(f"error: {error}")

    def _show(self, reply: Reply) -> None:
        if self.shell.json:
            self.shell.print_json(reply.as_dict())
            return
        self.shell.console().print(_reply(reply))
        for warning in reply.warnings:
            if warning not in self.warned:
                self.shell.note(f"warning: {warning}")
        self.warned.update(reply.warnings)

    # Commands ---------------------------------------------------------------------------------------------------------

    def _command(self, name: str, rest: str) -> None:
        command = self.commands.get(name)
        if command is None:
            raise InvalidInput(f"There is no /{name}.", hint=_nearest(name, list(self.commands)))
        if command.takes and not rest and name != "as-of":
            raise InvalidInput(f"/{name} needs to know which memory.", hint=f"/{name} {command.takes}")
        body = command.run(rest)
        if body is None:
            return
        if self.shell.json:
            self.shell.print_json({"command": name, **body})
        else:
            self.shell.console().print(command.view(body))

    def _memory(self, _: str) -> Mapping[str, Any]:
        return self.chat.memories()

    def _explain(self, _: str) -> Mapping[str, Any]:
        return self.chat.explain()

    def _why(self, which: str) -> Mapping[str, Any]:
        return self.chat.why(which)

    def _forget(self, which: str) -> Mapping[str, Any]:
        row = self.chat.find(which)
        if not self.yes and not self._sure(row["memory"]):
            return {"forgotten": None, "memory": row["memory"]}
        return {"forgotten": row["id"], "memory": row["memory"], **self.chat.forget(row["id"])}

    def _sure(self, text: str) -> bool:
        """Whether the next line agrees; one that is no answer means no, and is a line of its own."""
        question = views.safe(f"Give up “{text}”? [y/N] ").plain
        if not self.lines.typed:
            self.shell.note(question)
        answer = self.lines.read(question)
        if answer is not None and answer.strip().lower() not in YES | NO:
            self.lines.put_back(answer)
        return answer is not None and answer.strip().lower() in YES

    def _as_of(self, time: str) -> Mapping[str, Any]:
        return {"as_of": self.chat.at(time)}

    def _tiers(self, _: str) -> Mapping[str, Any]:
        return self.chat.tiers()

    def _glance(self, body: Mapping[str, Any]) -> RenderableType:
        return tiers.glance(body) if self.shell.console().is_terminal else tiers.plain(body)

    def _help(self, _: str) -> Mapping[str, Any]:
        return {"commands": {f"/{name} {one.takes}".strip(): one.about for name, one in self.commands.items()}}

    def _quit(self, _: str) -> None:
        self.over = True


def _nearest(name: str, names: list[str]) -> str:
    near = get_close_matches(name, names, 1, NEAR)
    return f"Did you mean /{near[0]}?" if near else "/help lists them; a line that begins with a blank is said."


# What people see ------------------------------------------------------------------------------------------------------


def _greeting(chat: Chat) -> Text:
    who = f"{chat.llm.model} answers" if chat.llm is not None else "no model is configured, so memory itself answers"
    return Text.assemble(("told", "bold"), (f" · {who} · /help lists the commands", "dim"))


def _reply(reply: Reply) -> RenderableType:
    notes = [f"{len(reply.used)} {'memory' if len(reply.used) == 1 else 'memories'} used"] if reply.used else []
    if reply.model is not None:
        notes += [f"learned: {row['memory'] or row['previous_memory']}" for row in reply.learned]
    notes += [f"not remembered: {row['reason']}" for row in reply.skipped]
    return Group(views.safe(reply.text), *([views.safe(" · ".join(notes), "dim")] if notes else []))


def _explained(body: Mapping[str, Any]) -> RenderableType:
    who = body["model"] or "memory itself"
    count = len(body["used"])
    return Group(views.quiet(f"{who} answered with {count} of these"), Text(), reasons.explanation(body))


def _why(body: Mapping[str, Any]) -> RenderableType:
    verdict = Text("✓ used: ", style="green") if body["used"] else Text("✗ not used: ", style="red")
    always = body["used"] and not body["found"]
    reason = views.quiet("Memories of its kind are always shown.") if always else reasons.why_not(body, None)
    return Group(Text.assemble(verdict, views.safe(body["memory"]["memory"])), reason)


def _forgotten(body: Mapping[str, Any]) -> RenderableType:
    if body["forgotten"] is None:
        return views.quiet("Nothing was changed.")
    return Group(
        Text.assemble(("Given up: ", "red"), views.safe(body["memory"])),
        views.safe(f"Its history stays. To destroy the words too: told erase {body['forgotten']}", "dim"),
    )


def _moved(body: Mapping[str, Any]) -> RenderableType:
    then = body["as_of"]
    return views.safe(f"Answering as of {then}; /as-of now goes back." if then else "Answering as of now.")


def _help(body: Mapping[str, Any]) -> RenderableType:
    return views.pairs(body["commands"])


def _said(_: Any) -> RenderableType:
    return Text()
