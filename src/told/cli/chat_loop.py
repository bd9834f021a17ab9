"""The read-reply loop of `told chat` and its slash commands."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.text import Text

from told.api.memory import Memory
from told.cli import charts, views
from told.cli.options import ScopeArgs
from told.cli.shell import EXIT_FAILED, EXIT_OK, Shell, decode_input
from told.errors import InvalidInput, ToldError
from told.plugins import open_llm
from told.runtime import lazy_regex
from told.tools.chat import ChatReply, ChatSession

PROMPT: Final = "you> "


COMMAND_PATTERN: Final = lazy_regex(r"/(?P<name>[a-zA-Z][\w-]*)(?:\s+(?P<rest>.*))?", re.DOTALL)


"""A slash command; not `/etc/hosts`, and not a line that starts with a blank."""


MIN_NAME_SIMILARITY: Final = 0.5


YES_WORDS, NO_WORDS = frozenset({"y", "yes"}), frozenset({"", "n", "no"})


def run_chat(
    shell: Shell, ids: ScopeArgs, model: str | None, *, as_of: str | None, yes: bool
) -> int:
    """Chat until the input ends; return 0 if every line succeeded."""
    settings = shell.load_settings().settings
    llm = open_llm(model or settings.llm, settings)
    with Memory(
        shell.store,
        embedder=shell.embedder,
        llm=llm or "none",
        account=shell.account,
        zone=shell.zone,
    ) as memory:
        chat = ChatSession(memory, llm, ids)
        if as_of is not None:
            chat.set_as_of(as_of)
        return ChatLoop(shell, chat, LineReader(), yes=yes).run()


class LineReader:
    """Lines typed or piped in, with one line of push-back."""

    def __init__(self) -> None:
        self.interactive = sys.stdin.isatty()
        self._pushed_back: list[str] = []

    def read(self, prompt: str) -> str | None:
        """Return the next line without its newline, or None at the end of input."""
        if self._pushed_back:
            return self._pushed_back.pop()
        if not self.interactive:
            line = sys.stdin.buffer.readline()
            return decode_input(line).rstrip("\r\n") if line else None
        try:
            return input(prompt)
        except EOFError:
            return None

    def put_back(self, line: str) -> None:
        """Make `read` return this line again."""
        self._pushed_back.append(line)


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """A slash command: its handler, its renderer and its one-line help."""

    summary: str
    run: Callable[[str], Mapping[str, Any] | None]
    render: Callable[[Any], RenderableType]
    argument: str = ""


class ChatLoop:
    """The read-reply loop of a chat."""

    def __init__(
        self, shell: Shell, chat: ChatSession, lines: LineReader, *, yes: bool = False
    ) -> None:
        self.shell, self.chat, self.lines, self.yes = shell, chat, lines, yes
        self.finished, self.exit_code = False, EXIT_OK
        self.shown_warnings: set[str] = set()
        self.commands = {
            "memory": SlashCommand(
                "what is remembered, its salience and when it fades",
                self._list_memories,
                charts.render_remembered,
            ),
            "explain": SlashCommand(
                "why the last reply used its memories", self._explain_reply, _render_explanation
            ),
            "why": SlashCommand(
                "why a memory was or was not used for the last reply",
                self._explain_memory,
                _render_why,
                "<id or words>",
            ),
            "forget": SlashCommand(
                "forget a memory", self._forget_memory, _render_forgotten, "<id or words>"
            ),
            "as-of": SlashCommand(
                "answer from what was known at that time; `now` goes back",
                self._set_as_of,
                _render_as_of,
                "<time>",
            ),
            "tiers": SlashCommand(
                "how memories are spread over the tiers", self._get_tiers, self._render_tiers
            ),
            "help": SlashCommand("these commands", self._list_commands, _render_help),
            "quit": SlashCommand("end; so do Ctrl-C and Ctrl-D", self._finish, _render_nothing),
        }

    def run(self) -> int:
        """Read and answer lines until the input ends or Ctrl-C."""
        if self.lines.interactive and not self.shell.json:
            self.shell.make_console().print(_render_greeting(self.chat))
        try:
            while not self.finished and (line := self.lines.read(PROMPT)) is not None:
                if line.strip():
                    self._handle_line(line)
        except KeyboardInterrupt:
            self.finished = True
        if self.lines.interactive and not self.shell.json:
            self.shell.make_console().print(
                Text("\nGoodbye. What was said is remembered.", style="dim")
            )
        return self.exit_code

    def _handle_line(self, line: str) -> None:
        """Handle one line; report errors and go on."""
        match = COMMAND_PATTERN.fullmatch(line.rstrip())
        try:
            if match:
                self._run_command(match["name"].lower(), (match["rest"] or "").strip())
            else:
                self._print_reply(self.chat.say(line.strip()))
        except ToldError as error:
            self.exit_code = EXIT_FAILED
            self._print_error(error)
        except KeyboardInterrupt:
            if not self.lines.interactive:
                raise
            self.shell.print_note("Stopped.")

    def _print_error(self, error: ToldError) -> None:
        if self.shell.json:
            self.shell.print_json(error.as_dict())
        else:
            self.shell.print_note(f"error: {error}")

    def _print_reply(self, reply: ChatReply) -> None:
        if self.shell.json:
            self.shell.print_json(reply.as_dict())
            return
        self.shell.make_console().print(_render_reply(reply))
        for warning in reply.warnings:
            if warning not in self.shown_warnings:
                self.shell.print_note(f"warning: {warning}")
        self.shown_warnings.update(reply.warnings)

    # Commands

    def _run_command(self, name: str, argument: str) -> None:
        command = self.commands.get(name)
        if command is None:
            raise InvalidInput(
                f"There is no /{name}.", hint=_suggest_command(name, list(self.commands))
            )
        if command.argument and not argument and name != "as-of":
            raise InvalidInput(
                f"/{name} needs to know which memory.", hint=f"/{name} {command.argument}"
            )
        body = command.run(argument)
        if body is None:
            return
        if self.shell.json:
            self.shell.print_json({"command": name, **body})
        else:
            self.shell.make_console().print(command.render(body))

    def _list_memories(self, _: str) -> Mapping[str, Any]:
        return self.chat.list_memories()

    def _explain_reply(self, _: str) -> Mapping[str, Any]:
        return self.chat.explain_reply()

    def _explain_memory(self, id_or_words: str) -> Mapping[str, Any]:
        return self.chat.explain_memory(id_or_words)

    def _forget_memory(self, id_or_words: str) -> Mapping[str, Any]:
        row = self.chat.find_memory(id_or_words)
        if not self.yes and not self._confirm_forget(row["memory"]):
            return {"forgotten": None, "memory": row["memory"]}
        return {"forgotten": row["id"], "memory": row["memory"], **self.chat.forget(row["id"])}

    def _confirm_forget(self, text: str) -> bool:
        """Return True if the next line confirms; push any other line back."""
        question = views.safe_text(f"Forget “{text}”? [y/N] ").plain
        if not self.lines.interactive:
            self.shell.print_note(question)
        answer = self.lines.read(question)
        if answer is not None and answer.strip().lower() not in YES_WORDS | NO_WORDS:
            self.lines.put_back(answer)
        return answer is not None and answer.strip().lower() in YES_WORDS

    def _set_as_of(self, time: str) -> Mapping[str, Any]:
        return {"as_of": self.chat.set_as_of(time)}

    def _get_tiers(self, _: str) -> Mapping[str, Any]:
        return self.chat.get_tiers()

    def _render_tiers(self, body: Mapping[str, Any]) -> RenderableType:
        return (
            charts.render_tier_panel(body)
            if self.shell.make_console().is_terminal
            else charts.render_tier_lines(body)
        )

    def _list_commands(self, _: str) -> Mapping[str, Any]:
        return {
            "commands": {
                f"/{name} {command.argument}".strip(): command.summary
                for name, command in self.commands.items()
            }
        }

    def _finish(self, _: str) -> None:
        self.finished = True


def _suggest_command(name: str, names: list[str]) -> str:
    matches = get_close_matches(name, names, 1, MIN_NAME_SIMILARITY)
    return (
        f"Did you mean /{matches[0]}?"
        if matches
        else "/help lists the commands; start a line with a blank to send it as a message."
    )


def _render_greeting(chat: ChatSession) -> Text:
    who = (
        f"{chat.llm.model} answers"
        if chat.llm is not None
        else "no model is configured: replies come from memory alone"
    )
    return Text.assemble(("told", "bold"), (f" · {who} · /help lists the commands", "dim"))


def _render_reply(reply: ChatReply) -> RenderableType:
    notes = (
        [f"{len(reply.used)} {'memory' if len(reply.used) == 1 else 'memories'} used"]
        if reply.used
        else []
    )
    if reply.model is not None:
        notes += [f"learned: {row['memory'] or row['previous_memory']}" for row in reply.learned]
    notes += [f"not remembered: {row['reason']}" for row in reply.skipped]
    return Group(
        views.safe_text(reply.text), *([views.safe_text(" · ".join(notes), "dim")] if notes else [])
    )


def _render_explanation(body: Mapping[str, Any]) -> RenderableType:
    who = body["model"] or "memory itself"
    count = len(body["used"])
    return Group(
        views.dim_text(f"{who} answered with {count} of these"),
        Text(),
        views.render_explanation(body),
    )


def _render_why(body: Mapping[str, Any]) -> RenderableType:
    verdict = Text("✓ used: ", style="green") if body["used"] else Text("✗ not used: ", style="red")
    always = body["used"] and not body["found"]
    reason = (
        views.dim_text("Memories of its kind are always shown.")
        if always
        else views.render_why_not(body, None)
    )
    return Group(Text.assemble(verdict, views.safe_text(body["memory"]["memory"])), reason)


def _render_forgotten(body: Mapping[str, Any]) -> RenderableType:
    if body["forgotten"] is None:
        return views.dim_text("Nothing was changed.")
    return Group(
        Text.assemble(("Forgotten: ", "red"), views.safe_text(body["memory"])),
        views.safe_text(
            f"Its history is kept. To erase the text too: told erase {body['forgotten']}", "dim"
        ),
    )


def _render_as_of(body: Mapping[str, Any]) -> RenderableType:
    as_of = body["as_of"]
    return views.safe_text(
        f"Answering as of {as_of}; /as-of now goes back." if as_of else "Answering as of now."
    )


def _render_help(body: Mapping[str, Any]) -> RenderableType:
    return views.render_pairs(body["commands"])


def _render_nothing(_: Any) -> RenderableType:
    return Text()
