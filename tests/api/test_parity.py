"""Every verb is declared once: the spec, the engine, both clients and the command line agree."""

import inspect

import pytest

from told import AsyncMemory, Memory
from told.api import generate, serialize
from told.api.spec import VERBS
from told.api.verb import SCOPE_NAMES, Interface
from told.engine import VERB_ACTIONS, Engine
from told.errors import Denied
from told.model.policy import Action
from told.model.scope import Caller

CLIENTS = [Memory, AsyncMemory]
NOT_VERBS = {"close", "from_config", "engine", "embedder"}
INTERNAL = {
    "extract_pending": "the background worker calls it; `wait` is the verb",
    "is_extraction_due": "the background worker asks it before it calls a model",
    "count_pending": "`stats` and `wait` return the count",
    "judge_importance": "`wait` and `consolidate` rate the importance of turns",
    "upsert_value": "`told.ontology.MemoryStore.upsert` calls it",
    "list_beliefs": "`told.ontology.MemoryStore` calls it; `about` lists a scope's memories",
    "forget_beliefs": "`told.ontology.MemoryStore.forget` calls it",
    "record_turns": "`told.ontology.MemoryStore.tick` calls it",
    "count_turns": "`told.ontology.MemoryStore` counts its turns with it",
}
HELPERS = {
    "account",
    "flush_accesses",
    "image_context",
    "read_context",
    "resolve_optional_scope",
    "resolve_point",
    "resolve_scope",
    "topic_context",
    "write_context",
}


def list_public(client):
    return {name for name in dir(client) if not name.startswith("_")} - NOT_VERBS


def list_parameters(function):
    """Return the parameters of a method with their kinds, defaults and annotations."""
    parameters = [*inspect.signature(function).parameters.values()][1:]
    return [(p.name, p.kind, p.default, p.annotation) for p in parameters]


def declare_parameters(verb):
    """Return the parameters that the spec declares, in the same form."""
    positional, keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    return [
        (
            param.name,
            positional if param.positional else keyword,
            inspect.Parameter.empty if param.is_required else param.default,
            param.type,
        )
        for param in verb.params
    ]


# The spec


@pytest.mark.parametrize("verb", VERBS.values(), ids=lambda verb: verb.name)
def test_verb_is_documented_and_typed(verb):
    assert verb.summary.endswith(".")
    assert not verb.summary.startswith(("What", "Who", "Where", "How", "Whether"))
    assert verb.result
    assert all(param.help.endswith(".") for param in verb.params), verb.name
    assert len({param.name for param in verb.params}) == len(verb.params)
    assert getattr(serialize, verb.serialize.__name__) is verb.serialize


@pytest.mark.parametrize("verb", VERBS.values(), ids=lambda verb: verb.name)
def test_scope_ids_are_declared_together(verb):
    names = [param.name for param in verb.params if param.name in SCOPE_NAMES]
    assert names in ([], [*SCOPE_NAMES])


# The clients


def test_the_generated_clients_are_up_to_date():
    assert [path.name for path in generate.find_stale_files()] == [], "run `make generate`"


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_has_the_verbs_of_the_spec_and_no_others(client):
    exposed = {name for name, verb in VERBS.items() if Interface.SDK in verb.interfaces}
    assert list_public(client) == exposed
    assert exposed <= vars(client).keys(), "a verb is inherited"


@pytest.mark.parametrize("verb", VERBS.values(), ids=lambda verb: verb.name)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_method_has_the_declared_signature(client, verb):
    method = getattr(client, verb.name)
    assert list_parameters(method) == declare_parameters(verb)
    assert inspect.signature(method).return_annotation == verb.returns
    assert inspect.getdoc(method).startswith(verb.summary)
    assert inspect.iscoroutinefunction(method) == (client is AsyncMemory)


def test_both_clients_open_and_close_alike():
    assert Memory.__init__ is AsyncMemory.__init__
    assert Memory.close is AsyncMemory.close
    assert Memory.from_config.__func__ is AsyncMemory.from_config.__func__
    assert {"__enter__", "__exit__"} <= vars(Memory).keys()
    assert {"__aenter__", "__aexit__"} <= vars(AsyncMemory).keys()


# The engine


def test_the_engine_has_a_flow_for_every_verb_with_its_action():
    public_actions = {name: verb.action for name, verb in VERBS.items()}
    internal_actions = {name: VERB_ACTIONS[name] for name in INTERNAL}
    assert public_actions | internal_actions == VERB_ACTIONS
    assert not VERBS.keys() & INTERNAL.keys()


def test_every_method_of_the_engine_requires_an_action_or_is_a_helper():
    members = {name: getattr(Engine, name) for name in dir(Engine) if name[0] != "_"}
    guarded = {name for name, member in members.items() if hasattr(member, "__wrapped__")}
    assert guarded == set(VERB_ACTIONS)
    assert members.keys() - guarded - set(Engine.__dataclass_fields__) == HELPERS


@pytest.mark.parametrize("verb", VERBS.values(), ids=lambda verb: verb.name)
def test_a_flow_accepts_the_declared_parameters(verb):
    names = {param.name for param in verb.params} - set(SCOPE_NAMES)
    arguments = dict.fromkeys([*names, *(["ids"] if verb.is_scoped else [])])
    inspect.signature(getattr(Engine, verb.name)).bind(None, **arguments)


def test_caller_without_a_role_is_denied_everything_but_metadata():
    with Memory("ram://", embedder="none") as memory:
        engine = memory.engine
        stranger = Engine(
            engine.store, engine.settings, engine.embedder, Caller("stranger", roles=frozenset())
        )
        for name, action in VERB_ACTIONS.items():
            if action is not Action.READ_METADATA:
                with pytest.raises(Denied):
                    getattr(stranger, name)()


# The command line

COMMANDS = [verb for verb in VERBS.values() if Interface.CLI in verb.interfaces]
PROMISED = (
    "add search get list update delete history timeline diff context explain why-not erase verify "
    "rebuild reindex stats export import backup eval demo doctor where config version"
).split()


def load_commands():
    import typer

    from told.cli.app import app

    top = typer.main.get_command(app).commands
    below = {
        f"{group_name} {name}": command
        for group_name, group in top.items()
        for name, command in getattr(group, "commands", {}).items()
    }
    return {**top, **below}


def list_options(command):
    return {option for param in command.params for option in param.opts}


@pytest.mark.parametrize("verb", COMMANDS, ids=lambda verb: verb.name)
def test_a_verb_is_a_command_with_json_output_and_the_ids_of_its_scope(verb):
    options = list_options(load_commands()[verb.command_name])
    assert "--json" in options
    if verb.is_scoped:
        short, long = {"--user", "--agent", "--run"}, {"--user-id", "--agent-id", "--run-id"}
        assert short <= options or long <= options


@pytest.mark.parametrize("name", PROMISED)
def test_every_promised_command_has_a_help_text(name):
    assert load_commands()[name].help
