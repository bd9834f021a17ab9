"""The rules of the house, read from its source; nothing of told is imported here.

A rule is a function from the folder of a package to the faults in it, each naming its file, its line and the way out.
`tests/test_architecture.py` holds `src/told` against them, and holds them against small made-up packages.
"""

import ast
import graphlib
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FLOORS = (
    ("core",),
    ("settings", "flow", "ports"),
    ("views", "ledger"),
    ("read", "write", "tend"),
    ("engine", "loop", "open"),
    ("faces",),
    ("__init__", "__main__", "ontology"),
)
BESIDE = ("backends", "testing")
SEEN_FROM_BESIDE = {"core", "ports"}

ASYNC_HOMES = ("flow.py", "faces/", "backends/http/", "testing/replay.py")
"""Where `async def` may stand; a backend that speaks an asynchronous protocol is added by name."""

BROAD_EXCEPT_HOME = "ledger/consume.py"
THIRD_PARTY_IN_CORE = {"core/yaml_once.py": {"yaml"}}
LOCKS = {"Lock", "RLock", "Condition", "Event", "Semaphore", "BoundedSemaphore", "Barrier", "local"}
LOCKS_MADE_ANEW = {
    "backends/sqlite/connect.py": "SqliteStore.renew renews the database of a store",
    "backends/sqlite/index.py": "SqliteStore.renew makes an empty cache",
    "backends/sqlite/partition.py": "SqliteStore.renew makes an empty cache",
    "backends/sqlite/writer.py": "SqliteStore.renew makes a new writer, once nobody writes",
    "testing/contract/overlaying.py": "only a test waits there",
    "testing/contract/writing.py": "only a test waits there",
}
"""Files whose locks need no care of their own at a fork, and why."""
FILE_LINES, FUNCTION_LINES = 500, 50

PLACE = {
    unit: (floor, column) for floor, units in enumerate(FLOORS) for column, unit in enumerate(units)
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SQL = re.compile(
    r"\s*(SELECT|INSERT|UPDATE|DELETE|REPLACE|CREATE|DROP|ALTER|WITH)\b", re.IGNORECASE
)

Rule = Callable[[Path], list[str]]
Placed = ast.stmt | ast.expr | ast.ExceptHandler


# Reading a package


@dataclass(frozen=True, slots=True)
class Module:
    """One source file of a package: its dotted name inside it, its path and its tree."""

    name: str
    path: str
    lines: int
    tree: ast.Module

    @property
    def unit(self) -> str:
        """The part of the house it stands in: a folder or a file at the top."""
        return self.name.partition(".")[0]

    def fault(self, line: int, what: str, fix: str) -> str:
        return f"{self.path}:{line}: {what}. {fix}"


@dataclass(frozen=True, slots=True)
class Import:
    """One import of a module of the same package, wherever in the file it stands."""

    target: str
    line: int
    for_types: bool

    @property
    def unit(self) -> str:
        return self.target.partition(".")[0]


@cache
def modules(root: Path) -> tuple[Module, ...]:
    """Every source file below the folder of a package."""
    found = []
    for file in sorted(root.rglob("*.py")):
        path, text = file.relative_to(root), file.read_text(encoding="utf-8")
        parts = path.with_suffix("").parts
        name = ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)
        found.append(Module(name, path.as_posix(), len(text.splitlines()), ast.parse(text)))
    return tuple(found)


def nodes(tree: ast.AST) -> Iterator[Placed]:
    """Every node of a tree that stands on a line."""
    return (node for node in ast.walk(tree) if isinstance(node, Placed))


def package_of(module: Module) -> list[str]:
    """The folder a relative import of the module starts from."""
    return module.path.split("/")[:-1]


def named(node: ast.AST, module: Module, package: str) -> list[str]:
    """The dotted names an import statement, or a call of import_module, asks for."""
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=source, names=names, level=level):
            above = package_of(module)
            base = [package, *above[: len(above) - level + 1]] if level else []
            return [".".join([*base, *filter(None, [source]), alias.name]) for alias in names]
        case ast.Call(
            func=ast.Name(id=call) | ast.Attribute(attr=call),
            args=[ast.Constant(value=str(name)), *_],
        ):
            return [name] if call in ("import_module", "__import__") else []
    return []


def type_checking_lines(tree: ast.Module) -> set[int]:
    """The lines only a type checker reads."""
    lines: set[int] = set()
    for node in nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) in (
            "TYPE_CHECKING",
            "typing.TYPE_CHECKING",
        ):
            lines.update(range(node.body[0].lineno, (node.body[-1].end_lineno or 0) + 1))
    return lines


def imports(root: Path, module: Module) -> Iterator[Import]:
    """What a module asks of its own package, at the top, inside functions and for types."""
    known = {other.name for other in modules(root)}
    for_types = type_checking_lines(module.tree)
    for node in nodes(module.tree):
        for name in named(node, module, root.name):
            top, *rest = name.split(".")
            if top != root.name:
                continue
            whole = ".".join(rest) in known or not isinstance(node, ast.ImportFrom)
            owner = ".".join(rest if whole else rest[:-1])
            yield Import(owner or "__init__", node.lineno, node.lineno in for_types)


# The rules


def floors(root: Path) -> list[str]:
    """Imports point down, or left on their own floor; what stands beside sees core and ports and is seen by nobody."""
    faults = []
    for module in modules(root):
        if module.unit not in PLACE and module.unit not in BESIDE:
            faults.append(
                module.fault(
                    1, f"{module.unit} stands on no floor", "Move it, or give it a place in FLOORS"
                )
            )
            continue
        for asked in imports(root, module):
            if reason := wrong_way(module.unit, asked.unit):
                what = f"{module.unit} imports {asked.target}, but {reason}"
                faults.append(
                    module.fault(
                        asked.line, what, "Move the code down, or pass it in as an argument"
                    )
                )
    return faults


def wrong_way(source: str, target: str) -> str:
    """Why one unit may not import another; empty if it may."""
    if source == target:
        return ""
    if target in BESIDE:
        return f"{target} is reached through entry points only"
    if source in BESIDE:
        return "" if target in SEEN_FROM_BESIDE else f"{source} sees core and ports only"
    if target not in PLACE:
        return f"{target} stands on no floor"
    return "" if PLACE[target] <= PLACE[source] else f"{target} is above it or to its right"


def writing_apart_from_reading(root: Path) -> list[str]:
    """The write path never imports the read path."""
    return [
        module.fault(
            asked.line, f"write imports {asked.target}", "Move what both need to ledger or views"
        )
        for module in modules(root)
        if module.unit == "write"
        for asked in imports(root, module)
        if asked.unit == "read"
    ]


def no_cycles(root: Path) -> list[str]:
    """No module reaches itself through imports, those hidden inside functions included."""
    graph = {
        module.name: sorted(
            {asked.target for asked in imports(root, module) if not asked.for_types} - {module.name}
        )
        for module in modules(root)
    }
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        first, *rest = reversed(error.args[1])
        module = next(module for module in modules(root) if module.name == first)
        line = next(asked.line for asked in imports(root, module) if asked.target == rest[0])
        path = " → ".join([first, *rest])
        return [
            module.fault(
                line, f"imports run in a circle: {path}", "Move what both need into a module below"
            )
        ]
    return []


def short_files(root: Path) -> list[str]:
    """A file fits in the head."""
    return [
        module.fault(
            FILE_LINES + 1,
            f"{module.lines} lines, more than {FILE_LINES}",
            "Split it by what it is about",
        )
        for module in modules(root)
        if module.lines > FILE_LINES
    ]


def short_functions(root: Path) -> list[str]:
    """A function fits on a screen."""
    return [
        module.fault(
            node.lineno,
            f"{node.name} has {length} lines, more than {FUNCTION_LINES}",
            "Name its steps",
        )
        for module in modules(root)
        for node in nodes(module.tree)
        if isinstance(node, FUNCTIONS)
        and (length := (node.end_lineno or 0) - node.lineno + 1) > FUNCTION_LINES
    ]


def async_at_the_edge(root: Path) -> list[str]:
    """The engine is written once, as flows; only the drivers and the faces know of the event loop."""
    return [
        module.fault(
            node.lineno,
            f"async def {node.name}",
            f"Write a flow, or list the file beside {ASYNC_HOMES}",
        )
        for module in modules(root)
        if not module.path.startswith(ASYNC_HOMES)
        for node in nodes(module.tree)
        if isinstance(node, ast.AsyncFunctionDef)
    ]


def narrow_excepts(root: Path) -> list[str]:
    """Nothing is swallowed by a net cast too wide, save by the consumer loop, which writes a fault."""
    fix = f"Name the errors you expect; only {BROAD_EXCEPT_HOME} may catch all"
    return [
        module.fault(node.lineno, what, fix)
        for module in modules(root)
        if module.path != BROAD_EXCEPT_HOME
        for node in nodes(module.tree)
        if (what := broad_catch(node))
    ]


def broad_catch(node: ast.AST) -> str:
    """What a node catches too much of; catching BaseException to clean up and pass it on is no fault."""
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
    """Whether a handler raises again at its end, or keeps the error for whoever asked: a future, a flow."""
    again = isinstance(last := handler.body[-1], ast.Raise) and last.exc is None
    return again or any(hands_over(node, handler.name) for node in ast.walk(handler))


def hands_over(node: ast.AST, error: str | None) -> bool:
    match node:
        case ast.Assign(value=ast.Name(id=name)):
            return name == error
        case ast.Call(func=ast.Attribute(attr="set_exception"), args=[ast.Name(id=name)]):
            return name == error
    return False


def true_exports(root: Path) -> list[str]:
    """`told/__init__.py` says what it offers, in sorted order, and offers what it says."""
    module = next((module for module in modules(root) if module.name == "__init__"), None)
    if module is None:
        return ["__init__.py:1: there is none. Write it, with the public names in __all__"]
    listed, line = exported(module.tree)
    if listed is None:
        return [module.fault(1, "no __all__ of plain strings", "List the public names")]
    bound = bound_names(module.tree)
    faults = []
    if listed != sorted(set(listed)):
        faults.append(
            module.fault(
                line, "__all__ is not sorted, or repeats itself", f"Write {sorted(set(listed))}"
            )
        )
    if missing := sorted(set(listed) - bound):
        faults.append(
            module.fault(line, f"__all__ promises {missing}", "Bind the names, or take them out")
        )
    if hidden := sorted(name for name in bound - set(listed) if not name.startswith("_")):
        faults.append(
            module.fault(
                line, f"{hidden} are bound but not in __all__", "List them, or rename them"
            )
        )
    return faults


def exported(tree: ast.Module) -> tuple[list[str] | None, int]:
    """The names in `__all__` and the line they start on."""
    for node in tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id="__all__")], value=value)
                | ast.AnnAssign(target=ast.Name(id="__all__"), value=ast.expr() as value)
            ):
                return ast.literal_eval(value), node.lineno
    return None, 1


def bound_names(tree: ast.Module) -> set[str]:
    """What a module binds at its top, and what its `__getattr__` serves from a dictionary."""
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


def core_of_the_standard_library(root: Path) -> list[str]:
    """Values need nothing but Python; kinds are read from YAML."""
    return [
        module.fault(node.lineno, f"core imports {top}", "Take it to the floor that needs it")
        for module in modules(root)
        if module.unit == "core"
        for node in nodes(module.tree)
        for top in sorted({name.partition(".")[0] for name in named(node, module, root.name)})
        if top
        not in sys.stdlib_module_names | {root.name} | THIRD_PARTY_IN_CORE.get(module.path, set())
    ]


def named_queries(root: Path) -> list[str]:
    """SQL is read from .sql files by name and never put together where it is executed."""
    faults: dict[str, None] = {}
    for module in modules(root):
        for scope in [
            module.tree,
            *(node for node in nodes(module.tree) if isinstance(node, FUNCTIONS)),
        ]:
            built = {name for node in own_nodes(scope) for name in names_of_built_text(node)}
            for node in own_nodes(scope):
                if what := bad_query(node, built):
                    faults[
                        module.fault(
                            node.lineno, what, "Write a named query with parameters in a .sql file"
                        )
                    ] = None
    return list(faults)


def own_nodes(scope: ast.AST) -> Iterator[Placed]:
    """The nodes of a scope without those of the functions inside it."""
    for child in ast.iter_child_nodes(scope):
        if isinstance(child, Placed):
            yield child
        if not isinstance(child, FUNCTIONS):
            yield from own_nodes(child)


def names_of_built_text(node: ast.AST) -> list[str]:
    """The variables a statement fills with text put together from parts."""
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
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def is_built(node: ast.AST) -> bool:
    """Whether an expression puts text together: an f-string, +, %, format or join."""
    match node:
        case ast.JoinedStr(values=values):
            return any(isinstance(value, ast.FormattedValue) for value in values)
        case ast.BinOp(left=left, op=ast.Add() | ast.Mod(), right=right):
            return any(is_text(side) or is_built(side) for side in (left, right))
        case ast.Call(func=ast.Attribute(attr="format" | "format_map" | "join")):
            return True
    return False


def bad_query(node: ast.AST, built: set[str]) -> str:
    """What is wrong with the query a call executes; empty if it is no such call or all is well."""
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
                return f"{verb}() of SQL put together from parts"
            if isinstance(query, ast.Constant) and SQL.match(str(query.value)):
                return f"{verb}() of a query written inline"
    return ""


def quiet_inside(root: Path) -> list[str]:
    """Only the faces speak to the terminal."""
    return [
        module.fault(node.lineno, "print()", "Return the text, or log it; faces print")
        for module in modules(root)
        if module.unit != "faces"
        for node in nodes(module.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    ]


def locks_over_forks(root: Path) -> list[str]:
    """No lock is held in a child process by a thread that stayed with the parent."""
    fix = "Write freed(…) or awaited(…) of told.runtime around it, or make it in renew() and call at_fork"
    return [
        module.fault(line, "a lock that a fork may leave locked", fix)
        for module in modules(root)
        if module.path not in LOCKS_MADE_ANEW
        for line in sorted(stranded(module.tree))
    ]


def stranded(tree: ast.Module) -> Iterator[int]:
    """The lines that make a lock which nothing renews in a child process."""
    cared = {
        id(inner) for node in ast.walk(tree) for part in cared_for(node) for inner in ast.walk(part)
    }
    for node in nodes(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "threading":
            yield from (node.lineno for alias in node.names if alias.name in LOCKS)
        elif isinstance(node, ast.Attribute) and id(node) not in cared:
            yield from (node.lineno for lock in LOCKS if ast.unparse(node) == f"threading.{lock}")


def cared_for(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a node where a lock may be named: annotations, what is freed or awaited, and what `renew` does."""
    if isinstance(node, ast.AnnAssign | ast.arg) and node.annotation is not None:
        yield node.annotation
    elif (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("freed", "awaited")
    ):
        yield from node.args
    elif isinstance(node, ast.ClassDef) and any(map(renews, ast.walk(node))):
        yield from (
            part for part in node.body if isinstance(part, ast.FunctionDef) and part.name == "renew"
        )


def renews(node: ast.AST) -> bool:
    """Whether a node is a call that has `renew` called in every child process."""
    return (
        isinstance(node, ast.Call)
        and ast.unparse(node.func) == "at_fork"
        and [ast.unparse(arg) for arg in node.args] == ["self"]
        and "in_child='renew'" in {ast.unparse(word) for word in node.keywords}
    )


def documented(root: Path) -> list[str]:
    """Every module, public function, public class and method of a port opens with a sentence."""
    fix = "Say in one sentence what it is"
    silent = [
        module
        for module in modules(root)
        if module.tree.body and not ast.get_docstring(module.tree)
    ]
    return [module.fault(1, "the module has no docstring", fix) for module in silent] + [
        module.fault(node.lineno, f"{node.name} has no docstring", fix)
        for module in modules(root)
        for node in public(module.tree)
        if not ast.get_docstring(node)
    ]


def public(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """The definitions a reader meets: those at the top without an underscore, and the methods of protocols."""
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


def is_overload(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    return any(ast.unparse(mark) in ("overload", "typing.overload") for mark in node.decorator_list)
