"""Every verb of the engine is on every face, in both colours, or is left out by name and for a reason."""

import importlib.util
import inspect

import pytest

from told import AsyncMemory, Memory
from told.api import verbs
from told.engine import VERB_ACTIONS, Engine
from told.errors import Denied
from told.model.policy import Action
from told.model.scope import Caller

OTHERWISE = {
    "retract_all": "delete_all",  # the name that code written for other memories knows
    "catch_up": "wait",  # who calls it waits; the worker behind a memory does not
}
DECLINED = {
    "waiting": "`stats` counts what waits for a model",
    "enough": "what the worker behind a memory asks itself before it asks a model",
    "reach": "`erase(dry_run=True)` is the same question",
    "upsert": "`told.ontology.MemoryStore` is its face: it goes by an ontology of its own",
    "tick": "`told.ontology.MemoryStore` is its face: `add` lets a turn pass by itself",
    "beliefs": "`told.ontology.MemoryStore` is its face; `about` lists everything a scope remembers",
    "turns": "`told.ontology.MemoryStore` is its face: the number of its turn",
    "let_go": "`told.ontology.MemoryStore.forget` is its face; `forget` gives up any memory",
    "judge": "`wait` and `consolidate` ask the model about everything it has not judged yet",
}
BESIDES = {
    "delete": "`retract` under the name that code written for other memories knows",
    "infer_kinds": "what `quarantine` lists, as the kinds it asks for",
}
NO_VERBS = {"close", "from_config", "engine", "embedder"}


def public(face):
    return {name for name in dir(face) if not name.startswith("_")} - NO_VERBS


def parameters(function):
    """The parameters of a method with their kinds, defaults and annotations."""
    return [
        (p.name, p.kind, p.default, p.annotation)
        for p in inspect.signature(function).parameters.values()
    ]


def spelled(verb):
    return OTHERWISE.get(verb, verb)


@pytest.mark.parametrize("face", [Memory, AsyncMemory])
def test_every_verb_of_the_engine_is_exposed_or_declined(face):
    offered = {spelled(verb) for verb in VERB_ACTIONS if verb not in DECLINED} | BESIDES.keys()
    assert public(face) == offered


def test_what_is_declined_is_declined_for_a_reason_and_is_really_a_verb():
    assert DECLINED.keys() <= VERB_ACTIONS.keys()
    assert OTHERWISE.keys() <= VERB_ACTIONS.keys()
    assert not DECLINED.keys() & public(Memory)
    assert all(len(reason) > 20 for reason in DECLINED.values())


def test_every_verb_names_the_action_it_needs():
    members = {name: getattr(Engine, name) for name in dir(Engine) if name[0] != "_"}
    marked = {name for name, member in members.items() if hasattr(member, "__wrapped__")}
    assert marked == set(VERB_ACTIONS)
    plain = {
        "account",
        "allow",
        "ask",
        "desk",
        "eye",
        "flush",
        "look",
        "looking",
        "point",
        "scope",
        "within",
    }
    fields = set(Engine.__dataclass_fields__)
    assert members.keys() - marked - fields == plain


@pytest.mark.parametrize("verb", sorted(public(Memory)))
def test_both_colours_take_the_same_arguments(verb):
    blocking, waiting = getattr(Memory, verb), getattr(AsyncMemory, verb)
    assert parameters(blocking) == parameters(waiting)
    assert (
        inspect.signature(blocking).return_annotation
        == inspect.signature(waiting).return_annotation
    )
    assert inspect.iscoroutinefunction(waiting)
    assert not inspect.iscoroutinefunction(blocking)
    assert blocking.__doc__ == waiting.__doc__


def test_both_colours_open_and_close_alike():
    assert parameters(Memory.__init__) == parameters(AsyncMemory.__init__)
    assert Memory.close is AsyncMemory.close
    assert Memory.from_config.__func__ is AsyncMemory.from_config.__func__
    assert {"__enter__", "__exit__"} <= vars(Memory).keys()
    assert {"__aenter__", "__aexit__"} <= vars(AsyncMemory).keys()


def test_every_verb_of_the_sdk_is_a_flow_for_other_faces():
    assert set(verbs.VERBS) == public(Memory)
    assert all(inspect.isgeneratorfunction(flow) for flow in verbs.VERBS.values())


SCOPED = {"add", "search", "context", "explain", "why_not", "get", "get_all", "update", "delete", "delete_all",
          "retract", "history", "timeline", "diff", "link", "erase", "upload", "blob", "blobs", "contradictions",
          "entities", "relations", "identify", "quarantine", "review", "infer_kinds", "tool_result",
          "reveal", "decay", "about", "forget", "consolidate", "tiers", "registry", "recalls", "enqueue", "apply_delta",
          "topics", "topic", "merge_topics", "abstract_topics"}  # fmt: skip
ACCOUNT_WIDE = {"reset", "verify", "rebuild", "reindex", "stats", "users", "export", "import_", "backup", "wait",
                "faults", "retry_faults", "drop_faults", "revoke", "queue", "reflect", "file_topics"}  # fmt: skip


@pytest.mark.parametrize("face", [Memory, AsyncMemory])
def test_every_verb_about_memories_takes_the_three_ids(face):
    assert public(face) == SCOPED | ACCOUNT_WIDE
    for verb in SCOPED:
        assert {"user_id", "agent_id", "run_id"} <= inspect.signature(
            getattr(face, verb)
        ).parameters.keys(), verb


def test_no_way_round_the_guard():
    """A caller without a role may read figures and nothing else: every verb asks before its first step."""
    with Memory("ram://", embedder="none") as memory:
        engine = memory.engine
        stranger = Engine(
            engine.store, engine.settings, engine.embedder, Caller("stranger", roles=frozenset())
        )
        for name, action in VERB_ACTIONS.items():
            if action is not Action.READ_METADATA:
                with pytest.raises(Denied):
                    getattr(stranger, name)()


# The command line -----------------------------------------------------------------------------------------------------

CLI = importlib.util.find_spec("told.cli") is not None
needs_cli = pytest.mark.skipif(not CLI, reason="there is no command line in this build")
PROMISED = (
    "add search get list update delete history timeline diff context explain why-not erase verify rebuild reindex "
    "stats export import backup eval demo doctor where config version"
).split()


def commands():
    import typer

    from told.cli.main import app

    top = typer.main.get_command(app).commands
    groups = {name: getattr(group, "commands", {}) for name, group in top.items()}
    below = {
        f"{name} {each}": command
        for name, group in groups.items()
        for each, command in group.items()
    }
    return {**top, **below}


@needs_cli
def test_every_verb_is_a_command_or_is_declined():
    from told.cli.main import COMMAND_NAMES
    from told.cli.main import OMITTED_VERBS as LEFT_OUT

    for verb in public(Memory) - set(LEFT_OUT):
        assert COMMAND_NAMES.get(verb, verb).replace("_", "-") in commands(), verb
    assert set(LEFT_OUT) | set(COMMAND_NAMES) <= public(Memory)


@needs_cli
@pytest.mark.parametrize("name", PROMISED)
def test_every_promised_command_is_there_and_says_what_it_does(name):
    assert commands()[name].help


@needs_cli
@pytest.mark.parametrize("verb", sorted(SCOPED - {"tool_result"}))
def test_a_command_takes_the_three_ids_its_verb_takes(verb):
    from told.cli.main import COMMAND_NAMES

    command = commands()[COMMAND_NAMES.get(verb, verb)]
    options = {option for param in command.params for option in param.opts}
    assert {"--user", "--agent", "--run"} <= options or {
        "--user-id",
        "--agent-id",
        "--run-id",
    } <= options, options


@needs_cli
@pytest.mark.parametrize("verb", sorted((SCOPED | ACCOUNT_WIDE) - {"tool_result"}))
def test_every_command_can_answer_in_json(verb):
    from told.cli.main import COMMAND_NAMES

    command = commands()[COMMAND_NAMES.get(verb, verb)]
    assert "--json" in {option for param in command.params for option in param.opts}
