"""Runtime helpers: fork hooks, cached properties, lazily compiled patterns and user folders."""

from __future__ import annotations

import os
import re
import sys
import weakref
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, AnyStr, Final, Generic, TypeVar, cast

T = TypeVar("T")

BEFORE, IN_PARENT, IN_CHILD = "before", "after_in_parent", "after_in_child"
_HOOK_IDS: Final = count()
_HOOKS: Final[dict[int, tuple[weakref.ref[Any], Mapping[str, str]]]] = {}
"""Registered fork hooks in registration order; hooks of collected objects are removed."""


def at_fork(target: object, *, in_child: str, before: str = "", in_parent: str = "") -> None:
    """Call methods of an object, by name, around every fork.

    The object is referenced weakly; its hooks disappear with it.
    """
    hook_id = next(_HOOK_IDS)
    reference = weakref.ref(target, lambda _: _HOOKS.pop(hook_id, None))
    _HOOKS[hook_id] = reference, {BEFORE: before, IN_PARENT: in_parent, IN_CHILD: in_child}


def reset_on_fork(lock: T) -> T:
    """Release a lock in a forked child.

    Use it for state that stays valid when its holder is interrupted.
    """
    at_fork(lock, in_child="_at_fork_reinit")
    return lock


def acquire_on_fork(lock: T) -> T:
    """Hold a lock across every fork.

    Use it for state that is valid only while nobody holds the lock.
    """
    at_fork(lock, before="acquire", in_parent="release", in_child="release")
    return lock


def _list_hooks(moment: str) -> list[Callable[[], Any]]:
    targets = [(ref(), names[moment]) for ref, names in list(_HOOKS.values())]
    return [getattr(target, name) for target, name in targets if target is not None and name]


def _run_hooks(moment: str) -> None:
    """Run the hooks of one moment, each even if another raises.

    Before a fork the newest runs first, after it the oldest.
    """
    methods = _list_hooks(moment)
    with ExitStack() as calls:  # ExitStack calls the last callback first
        for method in methods if moment == BEFORE else reversed(methods):
            calls.callback(method)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        **{moment: partial(_run_hooks, moment) for moment in (BEFORE, IN_PARENT, IN_CHILD)}
    )


class cached_property(Generic[T]):  # noqa: N801
    """A property computed once per object; concurrent threads may compute it more than once.

    Before Python 3.12, functools.cached_property holds one lock per class, and a child forked
    meanwhile waits for it forever.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute, self._name, self.__doc__ = compute, compute.__name__, compute.__doc__

    def __get__(self, instance: object, owner: type | None = None) -> T:
        value = instance.__dict__[self._name] = self._compute(instance)
        return value


def lazy_regex(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern that is compiled on first use."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(pattern, flags))


class _LazyPattern:
    """A pattern compiled on first use; used attributes are cached on the instance."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self.pattern, self._flags = pattern, flags

    @cached_property
    def _compiled(self) -> re.Pattern[Any]:
        return re.compile(self.pattern, self._flags)

    def __reduce__(self) -> tuple[Any, ...]:
        return lazy_regex, (self.pattern, self._flags)

    def __getattr__(self, name: str) -> Any:
        value = self.__dict__[name] = getattr(self._compiled, name)
        return value


_UNIX_FOLDERS: Final = {"data": ".local/share", "config": ".config", "cache": ".cache"}


def user_folder(kind: str, environment: Mapping[str, str] | None = None) -> Path:
    """Return told's folder for the user's "data", "config" or "cache".

    `XDG_*_HOME` counts on every system; without it the folder is the usual one of the platform. A
    folder under `~/.local/share` or `~/.config`, as earlier versions used everywhere, is kept.
    """
    environment = os.environ if environment is None else environment
    if base := environment.get(f"XDG_{kind.upper()}_HOME"):
        return Path(base) / "told"
    unix_folder = Path("~", _UNIX_FOLDERS[kind], "told").expanduser()
    if sys.platform not in ("darwin", "win32") or unix_folder.is_dir():
        return unix_folder
    import platformdirs

    locate = {
        "data": platformdirs.user_data_path,
        "config": platformdirs.user_config_path,
        "cache": platformdirs.user_cache_path,
    }[kind]
    return locate("told", appauthor=False)


def config_folders(environment: Mapping[str, str] | None = None) -> tuple[Path, Path]:
    """Return the configuration folders: the project's, then the user's."""
    return Path(".told"), user_folder("config", environment)
