"""Rules about the structure of the source, checked without importing it.

A rule is a function that takes the folder of a package and returns the violations in it. Each
violation names its file, its line and what to do about it. `tests/test_architecture.py` applies
the rules to `src/told`, and checks every rule against small made-up packages.
"""

import ast
import graphlib
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

LAYERS = (
    ("errors", "ids", "runtime"),
    ("model", "text"),
    ("ports",),
    ("settings", "flow"),
    ("ledger",),
    ("ingest", "extraction", "curation"),
    ("retrieval",),
    ("maintenance",),
    ("plugins",),
    ("engine",),
    ("api",),
    ("tools",),
    ("cli",),
    ("__init__", "__main__", "ontology"),
)
"""The units of the package, lowest layer first. A unit imports its own layer and those below."""

BESIDE = ("backends", "providers", "testing")
"""Units loaded through entry points: nothing imports them."""
SEEN_FROM_BESIDE = {"errors", "ids", "runtime", "model", "text", "ports"}

ASYNC_FILES = ("flow.py", "api/", "providers/http/", "testing/fakes.py", "testing/contract/")
"""Files that may contain `async def`; add an asynchronous provider by name."""

PRINTING_UNITS = ("cli",)
BROAD_EXCEPT_FILE = "ledger/consumer.py"
STANDARD_LIBRARY_UNITS = ("errors", "ids", "runtime", "model", "text")
THIRD_PARTY_ALLOWED = {"model/kind.py": {"yaml"}, "runtime.py": {"platformdirs"}}
LOCKS = {"Lock", "RLock", "Condition", "Event", "Semaphore", "BoundedSemaphore", "Barrier", "local"}
LOCKS_REPLACED = {
    "backends/sqlite/connection.py": "the store opens its database again in a child process",
    "backends/sqlite/index.py": "the store makes an empty cache in a child process",
    "backends/sqlite/partition.py": "the store makes an empty cache in a child process",
    "backends/sqlite/group_commit.py": "the store makes a new writer in a child process",
    "testing/contract/harness.py": "only a test waits there",
    "testing/contract/ledger.py": "only a test waits there",
    "testing/contract/queue.py": "only a test waits there",
}
"""Files whose locks are replaced as a whole after a fork, and by what."""

MAX_FILE_LINES, MAX_FUNCTION_LINES = 800, 50
GENERATED_MARKER = "generated"
"""A file is exempt from the line limit if its first line contains this word."""

MAX_IMPORT_DEPTH = 20

SHARED_CLASS_NAMES = {"Fact": {"model", "api"}, "MemoryStore": {"api", "ontology"}}
"""Class names that may exist twice: `told.ontology` keeps the public names of its own model."""

RIDDLE = re.compile(r"(What|Who|Whom|Whose|Where|Whether|How|Which)\b")

LAYER_OF = {unit: number for number, units in enumerate(LAYERS) for unit in units}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SQL = re.compile(
    r"\s*(SELECT|INSERT|UPDATE|DELETE|REPLACE|CREATE|DROP|ALTER|WITH)\b", re.IGNORECASE
)

Rule = Callable[[Path], list[str]]
Placed = ast.stmt | ast.expr | ast.ExceptHandler
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


# Reading a package


@dataclass(frozen=True, slots=True)
class Module:
    """A source file: its dotted name inside the package, its path, text size and syntax tree."""

    name: str
    path: str
    lines: int
    first_line: str
    tree: ast.Module

    @property
    def unit(self) -> str:
        """Return the top-level folder or file it belongs to."""
        return self.name.partition(".")[0]

    def violation(self, line: int, problem: str, remedy: str) -> str:
        """Describe a violation in this file."""
        return f"{self.path}:{line}: {problem}. {remedy}"


@dataclass(frozen=True, slots=True)
class Import:
    """An import of a module of the same package."""

    target: str
    line: int
    for_types: bool
    at_top: bool

    @property
    def unit(self) -> str:
        """Return the unit of the imported module."""
        return self.target.partition(".")[0]


@cache
def modules(root: Path) -> tuple[Module, ...]:
    """Read every source file of a package."""
    result = []
    for file in sorted(root.rglob("*.py")):
        path, text = file.relative_to(root), file.read_text(encoding="utf-8")
        parts = path.with_suffix("").parts
        name = ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)
        lines = text.splitlines()
        first = lines[0] if lines else ""
        result.append(Module(name, path.as_posix(), len(lines), first, ast.parse(text)))
    return tuple(result)


def nodes(tree: ast.AST) -> Iterator[Placed]:
    """Iterate over the nodes of a tree that have a line number."""
    return (node for node in ast.walk(tree) if isinstance(node, Placed))


def imported_names(node: ast.AST, module: Module, package: str) -> list[str]:
    """Return the dotted names an import statement or a call of import_module asks for."""
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=source, names=names, level=level):
            folders = module.path.split("/")[:-1]
            base = [package, *folders[: len(folders) - level + 1]] if level else []
            return [".".join([*base, *filter(None, [source]), alias.name]) for alias in names]
        case ast.Call(
            func=ast.Name(id=call) | ast.Attribute(attr=call),
            args=[ast.Constant(value=str(name)), *_],
        ):
            return [name] if call in ("import_module", "__import__") else []
    return []


def type_checking_lines(tree: ast.Module) -> set[int]:
    """Return the numbers of the lines below `if TYPE_CHECKING`."""
    lines: set[int] = set()
    for node in nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) in (
            "TYPE_CHECKING",
            "typing.TYPE_CHECKING",
        ):
            lines.update(range(node.body[0].lineno, (node.body[-1].end_lineno or 0) + 1))
    return lines


@cache
def imports(root: Path, module: Module) -> tuple[Import, ...]:
    """Return the imports of its own package, wherever in the file they are."""
    known = {other.name for other in modules(root)}
    for_types = type_checking_lines(module.tree)
    top = {id(node) for node in own_nodes(module.tree)}
    result = []
    for node in nodes(module.tree):
        for name in imported_names(node, module, root.name):
            package, *rest = name.split(".")
            if package != root.name:
                continue
            whole = ".".join(rest) in known or not isinstance(node, ast.ImportFrom)
            owner = ".".join(rest if whole else rest[:-1]) or "__init__"
            result.append(Import(owner, node.lineno, node.lineno in for_types, id(node) in top))
    return tuple(result)


# Rules about imports


def layers_import_downwards(root: Path) -> list[str]:
    """A unit imports its own layer and lower ones; backends and providers are loaded by name."""
    violations = []
    for module in modules(root):
        if module.unit not in LAYER_OF and module.unit not in BESIDE:
            violations.append(
                module.violation(
                    1, f"{module.unit} has no layer", "Move it, or give it a layer in LAYERS"
                )
            )
            continue
        violations += [
            module.violation(
                imported.line,
                f"{module.unit} imports {imported.target}, but {reason}",
                "Move the code down, or pass it in as an argument",
            )
            for imported in imports(root, module)
            if (reason := forbidden_import(module.unit, imported.unit))
        ]
    return violations


def forbidden_import(source: str, target: str) -> str:
    """Explain why a unit may not import another; empty if it may."""
    if source == target:
        return ""
    if target in BESIDE:
        return f"{target} is loaded through entry points only"
    if source in BESIDE:
        allowed = ", ".join(sorted(SEEN_FROM_BESIDE))
        return "" if target in SEEN_FROM_BESIDE else f"{source} may import {allowed} only"
    if target not in LAYER_OF:
        return f"{target} has no layer"
    return "" if LAYER_OF[target] <= LAYER_OF[source] else f"{target} is in a higher layer"


def ingest_and_retrieval_are_separate(root: Path) -> list[str]:
    """The write path and the read path never import each other."""
    sides = {"retrieval": {"ingest", "extraction", "curation"}}
    sides |= {unit: {"retrieval"} for unit in sides["retrieval"]}
    return [
        module.violation(
            imported.line,
            f"{module.unit} imports {imported.target}",
            "Move the shared code to ledger or model",
        )
        for module in modules(root)
        for imported in imports(root, module)
        if imported.unit in sides.get(module.unit, ())
    ]


def no_import_cycles(root: Path) -> list[str]:
    """No module imports itself through others, imports inside functions included."""
    graph = {
        module.name: sorted(
            {imported.target for imported in imports(root, module) if not imported.for_types}
            - {module.name}
        )
        for module in modules(root)
    }
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        first, *rest = reversed(error.args[1])
        module = next(module for module in modules(root) if module.name == first)
        line = next(found.line for found in imports(root, module) if found.target == rest[0])
        cycle = " → ".join([first, *rest])
        return [
            module.violation(
                line, f"an import cycle: {cycle}", "Move the shared code into a lower module"
            )
        ]
    return []


def imports_are_shallow(root: Path) -> list[str]:
    """A module is reached by a short chain of imports; a package that only re-exports is free."""
    chain = longest_import_chain(root)
    if len(chain) <= MAX_IMPORT_DEPTH:
        return []
    problem = (
        f"the longest import chain has {len(chain)} modules, more than {MAX_IMPORT_DEPTH}: "
        f"{' → '.join(chain)}"
    )
    return [f"{problem}. Import later, or merge modules that have one importer"]


def longest_import_chain(root: Path) -> list[str]:
    """Return the longest chain of modules that import each other at their top level."""
    graph = {
        module.name: sorted(
            {
                found.target
                for found in imports(root, module)
                if found.at_top and not found.for_types and found.target != module.name
            }
        )
        for module in modules(root)
    }
    free = {module.name for module in modules(root) if is_facade(module)}
    longest: dict[str, list[str]] = {}
    for name in graphlib.TopologicalSorter(graph).static_order():
        below = max(
            (longest.get(target, []) for target in graph.get(name, ())), key=len, default=[]
        )
        longest[name] = below if name in free else [name, *below]
    return max(longest.values(), key=len, default=[])


def is_facade(module: Module) -> bool:
    """Tell if a module is an `__init__.py` without functions or classes of its own."""
    return module.path.endswith("__init__.py") and not any(
        isinstance(node, (*FUNCTIONS, ast.ClassDef)) and not node.name.startswith("__")
        for node in module.tree.body
    )


def low_layers_need_only_the_standard_library(root: Path) -> list[str]:
    """The model and the text functions import nothing but Python; kinds are read from YAML."""
    return [
        module.violation(
            node.lineno, f"{module.unit} imports {top}", "Move it to the layer that needs it"
        )
        for module in modules(root)
        if module.unit in STANDARD_LIBRARY_UNITS
        for node in nodes(module.tree)
        for top in sorted(
            {name.partition(".")[0] for name in imported_names(node, module, root.name)}
        )
        if top
        not in sys.stdlib_module_names | {root.name} | THIRD_PARTY_ALLOWED.get(module.path, set())
    ]


# Rules about size and names


def files_are_short(root: Path) -> list[str]:
    """A file has at most 800 lines, unless a program writes it."""
    return [
        module.violation(
            MAX_FILE_LINES + 1,
            f"{module.lines} lines, more than {MAX_FILE_LINES}",
            "Split it by subject",
        )
        for module in modules(root)
        if module.lines > MAX_FILE_LINES and GENERATED_MARKER not in module.first_line.lower()
    ]


def functions_are_short(root: Path) -> list[str]:
    """A function has at most 50 lines; its parameters, one a line, and docstring do not count."""
    return [
        module.violation(
            node.lineno,
            f"{node.name} has {length} lines, more than {MAX_FUNCTION_LINES}",
            "Move its steps into functions",
        )
        for module in modules(root)
        if GENERATED_MARKER not in module.first_line.lower()
        for node in nodes(module.tree)
        if isinstance(node, FUNCTIONS) and (length := function_length(node)) > MAX_FUNCTION_LINES
    ]


def function_length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of a function: one for its signature, and those of its body."""
    body = node.body[1:] if ast.get_docstring(node) else node.body
    return 1 + (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 1


def class_names_are_unique(root: Path) -> list[str]:
    """A class name exists once in the package."""
    places: dict[str, list[tuple[Module, int]]] = defaultdict(list)
    for module in modules(root):
        for node in nodes(module.tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append((module, node.lineno))
    return [
        module.violation(
            line,
            f"class {name} exists in {found[0][0].path} too",
            "Name it after the difference",
        )
        for name, found in places.items()
        if {module.unit for module, _ in found} != SHARED_CLASS_NAMES.get(name)
        for module, line in found[1:]
    ]


def docstrings_state_facts(root: Path) -> list[str]:
    """A docstring says what the thing is or does; it does not open with a question word."""
    return [
        module.violation(
            node.body[0].lineno,
            f"the docstring of {getattr(node, 'name', 'the module')} opens with {opening[0]}",
            "Say what it is, or what it does in the imperative",
        )
        for module in modules(root)
        for node in ast.walk(module.tree)
        if isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Module))
        and (opening := RIDDLE.match(ast.get_docstring(node) or ""))
    ]


def public_code_is_documented(root: Path) -> list[str]:
    """Every module, public function, public class and method of a port has a docstring."""
    remedy = "Say in one sentence what it is"
    silent = [
        module
        for module in modules(root)
        if module.tree.body and not ast.get_docstring(module.tree)
    ]
    return [module.violation(1, "the module has no docstring", remedy) for module in silent] + [
        module.violation(node.lineno, f"{node.name} has no docstring", remedy)
        for module in modules(root)
        for node in public_definitions(module.tree)
        if not ast.get_docstring(node)
    ]


def public_definitions(tree: ast.Module) -> Iterator[Definition]:
    """Iterate over the public definitions at the top of a module, and the methods of protocols."""
    for node in tree.body:
        if (
            not isinstance(node, (*FUNCTIONS, ast.ClassDef))
            or node.name.startswith("_")
            or is_overload(node)
        ):
            continue
        yield node
        if isinstance(node, ast.ClassDef) and any(
            "Protocol" in ast.unparse(base) for base in node.bases
        ):
            yield from (
                part
                for part in node.body
                if isinstance(part, FUNCTIONS) and not part.name.startswith("_")
            )


def is_overload(node: Definition) -> bool:
    """Tell if a definition is marked as an overload."""
    return any(ast.unparse(mark) in ("overload", "typing.overload") for mark in node.decorator_list)


# Rules about behaviour


def async_is_at_the_edge(root: Path) -> list[str]:
    """The engine is written once, as flows; only drivers, clients and providers are async."""
    return [
        module.violation(
            node.lineno,
            f"async def {node.name}",
            f"Write a flow, or add the file to {ASYNC_FILES}",
        )
        for module in modules(root)
        if not module.path.startswith(ASYNC_FILES)
        for node in nodes(module.tree)
        if isinstance(node, ast.AsyncFunctionDef) and not is_protocol_method(node, module.tree)
    ]


def is_protocol_method(method: ast.AsyncFunctionDef, tree: ast.Module) -> bool:
    """Tell if a method only declares part of a protocol."""
    return any(
        isinstance(node, ast.ClassDef)
        and method in node.body
        and any("Protocol" in ast.unparse(base) for base in node.bases)
        for node in ast.walk(tree)
    )


def excepts_are_narrow(root: Path) -> list[str]:
    """Only the consumer loop catches every error; it records a fault."""
    remedy = f"Name the errors you expect; only {BROAD_EXCEPT_FILE} may catch all"
    return [
        module.violation(node.lineno, problem, remedy)
        for module in modules(root)
        if module.path != BROAD_EXCEPT_FILE
        for node in nodes(module.tree)
        if (problem := broad_catch(node))
    ]


def broad_catch(node: ast.AST) -> str:
    """Describe what a node catches too much of; cleaning up and raising again is allowed."""
    match node:
        case ast.ExceptHandler(type=None):
            return "a bare except"
        case ast.ExceptHandler(type=ast.expr() as kind):
            names = {
                ast.unparse(part) for part in (kind.elts if isinstance(kind, ast.Tuple) else [kind])
            }
        case ast.Call(func=ast.Name(id="suppress") | ast.Attribute(attr="suppress"), args=args):
            names = {ast.unparse(arg) for arg in args}
        case _:
            return ""
    if "BaseException" in names and isinstance(node, ast.ExceptHandler) and passes_on(node):
        return ""
    caught = names & {"Exception", "BaseException"}
    return f"catches every {min(caught)}" if caught else ""


def passes_on(handler: ast.ExceptHandler) -> bool:
    """Tell if a handler raises again at its end, or stores the error for a future or a flow."""
    again = isinstance(last := handler.body[-1], ast.Raise) and last.exc is None
    return again or any(stores_error(node, handler.name) for node in ast.walk(handler))


def stores_error(node: ast.AST, error: str | None) -> bool:
    """Tell if a node assigns an error, or sets it on a future."""
    match node:
        case ast.Assign(value=ast.Name(id=name)):
            return name == error
        case ast.Call(func=ast.Attribute(attr="set_exception"), args=[ast.Name(id=name)]):
            return name == error
    return False


def only_the_cli_prints(root: Path) -> list[str]:
    """Only the command line writes to the terminal."""
    return [
        module.violation(node.lineno, "print()", "Return the text, or log it")
        for module in modules(root)
        if module.unit not in PRINTING_UNITS
        for node in nodes(module.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    ]


def exports_are_true(root: Path) -> list[str]:
    """`told/__init__.py` lists its public names in sorted order, and binds every one of them."""
    module = next((module for module in modules(root) if module.name == "__init__"), None)
    if module is None:
        return ["__init__.py:1: there is none. Write it, with the public names in __all__"]
    listed, line = exported(module.tree)
    if listed is None:
        return [module.violation(1, "no __all__ of plain strings", "List the public names")]
    bound = bound_names(module.tree)
    violations = []
    if listed != sorted(set(listed)):
        violations.append(
            module.violation(
                line, "__all__ is not sorted, or repeats a name", f"Write {sorted(set(listed))}"
            )
        )
    if missing := sorted(set(listed) - bound):
        violations.append(
            module.violation(line, f"__all__ lists {missing}", "Bind the names, or remove them")
        )
    if hidden := sorted(name for name in bound - set(listed) if not name.startswith("_")):
        violations.append(
            module.violation(
                line, f"{hidden} are bound but not in __all__", "List them, or rename them"
            )
        )
    return violations


def exported(tree: ast.Module) -> tuple[list[str] | None, int]:
    """Return the names in `__all__` and the line they start on."""
    for node in tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id="__all__")], value=value)
                | ast.AnnAssign(target=ast.Name(id="__all__"), value=ast.expr() as value)
            ):
                return ast.literal_eval(value), node.lineno
    return None, 1


def bound_names(tree: ast.Module) -> set[str]:
    """Return the names a module binds, with those its `__getattr__` serves from a dictionary."""
    names: set[str] = set()
    lazy: set[str] = set()
    for node in tree.body:
        match node:
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names.update(alias.asname or alias.name.partition(".")[0] for alias in aliases)
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                names.add(name)
            case ast.Assign() | ast.AnnAssign():
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names.update(target.id for target in targets if isinstance(target, ast.Name))
                if isinstance(node.value, ast.Dict):
                    lazy.update(
                        str(key.value) for key in node.value.keys if isinstance(key, ast.Constant)
                    )
    typing_names = {"TYPE_CHECKING", "annotations", "Any", "Final"}
    return (names | (lazy if "__getattr__" in names else set())) - typing_names


# Rules about SQL


def queries_are_named(root: Path) -> list[str]:
    """SQL is read from .sql files by name, and never assembled where it is executed."""
    violations: dict[str, None] = {}
    for module in modules(root):
        for scope in [
            module.tree,
            *(node for node in nodes(module.tree) if isinstance(node, FUNCTIONS)),
        ]:
            built = {name for node in own_nodes(scope) for name in names_of_built_text(node)}
            for node in own_nodes(scope):
                if problem := bad_query(node, built):
                    violations[
                        module.violation(
                            node.lineno,
                            problem,
                            "Write a named query with parameters in a .sql file",
                        )
                    ] = None
    return list(violations)


def own_nodes(scope: ast.AST) -> Iterator[Placed]:
    """Iterate over the nodes of a scope without those of the functions inside it."""
    for child in ast.iter_child_nodes(scope):
        if isinstance(child, Placed):
            yield child
        if not isinstance(child, FUNCTIONS):
            yield from own_nodes(child)


def names_of_built_text(node: ast.AST) -> list[str]:
    """Return the variables a statement assigns assembled text to."""
    match node:
        case ast.Assign(targets=targets, value=value) if is_built(value):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) if is_built(value):
            return [name]
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value) if is_built(
            value
        ) or is_text(value):
            return [name]
    return []


def is_text(node: ast.AST) -> bool:
    """Tell if a node is a string or an f-string."""
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def is_built(node: ast.AST) -> bool:
    """Tell if an expression assembles text: an f-string, +, %, format or join."""
    match node:
        case ast.JoinedStr(values=values):
            return any(isinstance(value, ast.FormattedValue) for value in values)
        case ast.BinOp(left=left, op=ast.Add() | ast.Mod(), right=right):
            return any(is_text(side) or is_built(side) for side in (left, right))
        case ast.Call(func=ast.Attribute(attr="format" | "format_map" | "join")):
            return True
    return False


def bad_query(node: ast.AST, built: set[str]) -> str:
    """Describe the problem with the query a call executes; empty if there is none."""
    match node:
        case ast.Call(
            func=ast.Attribute(attr="execute" | "executemany" | "executescript" as verb),
            args=[query, *_],
        ):
            if (
                is_built(query)
                or isinstance(query, ast.BinOp)
                or (isinstance(query, ast.Name) and query.id in built)
            ):
                return f"{verb}() of assembled SQL"
            if isinstance(query, ast.Constant) and SQL.match(str(query.value)):
                return f"{verb}() of a query written inline"
    return ""


# Rules about forks


def locks_survive_forks(root: Path) -> list[str]:
    """No lock stays locked in a child process because a thread of the parent held it."""
    remedy = (
        "Wrap it in reset_on_fork() or acquire_on_fork(), or make it in the method at_fork() calls"
    )
    return [
        module.violation(line, "a fork may leave this lock locked", remedy)
        for module in modules(root)
        if module.path not in LOCKS_REPLACED
        for line in sorted(unprotected_locks(module.tree))
    ]


def unprotected_locks(tree: ast.Module) -> Iterator[int]:
    """Iterate over the lines that make a lock which nothing resets in a child process."""
    protected = {
        id(inner)
        for node in ast.walk(tree)
        for part in protected_parts(node)
        for inner in ast.walk(part)
    }
    for node in nodes(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "threading":
            yield from (node.lineno for alias in node.names if alias.name in LOCKS)
        elif isinstance(node, ast.Attribute) and id(node) not in protected:
            yield from (node.lineno for lock in LOCKS if ast.unparse(node) == f"threading.{lock}")


def protected_parts(node: ast.AST) -> Iterator[ast.AST]:
    """Iterate over the parts of a node where a lock may be named.

    These are annotations, the arguments of reset_on_fork and acquire_on_fork, and the methods that
    run in every child process.
    """
    if isinstance(node, ast.AnnAssign | ast.arg) and node.annotation is not None:
        yield node.annotation
    elif (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("reset_on_fork", "acquire_on_fork")
    ):
        yield from node.args
    elif isinstance(node, ast.ClassDef):
        hooks = {hook for part in ast.walk(node) if (hook := child_hook(part))}
        yield from (
            part for part in node.body if isinstance(part, FUNCTIONS) and part.name in hooks
        )


def child_hook(node: ast.AST) -> str:
    """Return the method that a call of at_fork runs in every child process; empty if none."""
    if (
        isinstance(node, ast.Call)
        and ast.unparse(node.func) == "at_fork"
        and [ast.unparse(arg) for arg in node.args] == ["self"]
    ):
        for keyword in node.keywords:
            if keyword.arg == "in_child" and isinstance(keyword.value, ast.Constant):
                return str(keyword.value.value)
    return ""
