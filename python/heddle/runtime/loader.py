"""Resolves the paths of a langgraph.json: graphs, auth, an app, embeddings."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import os
import sys
import typing
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any, get_args, get_origin

from langgraph.graph import StateGraph
from langgraph.pregel import Pregel

from heddle.runtime.errors import LoadError


def prepare(folder: str, dependencies: list[str]) -> None:
    """Makes the project's code importable: its folder, and dependencies that are folders."""
    paths = []
    for each in dependencies:
        if not each.startswith((".", "/")):
            continue
        path = os.path.normpath(os.path.join(folder, each))
        if os.path.isdir(path):
            paths.append(path)
            if os.path.isfile(os.path.join(path, "__init__.py")):
                paths.append(os.path.dirname(path))
            if os.path.isdir(source := os.path.join(path, "src")):
                paths.append(source)
    for path in reversed([folder, *paths]):
        if path not in sys.path:
            sys.path.insert(0, path)
    importlib.invalidate_caches()


def load(folder: str, path: str) -> Any:
    """The object of `./file.py:name` or `module.name:name`."""
    where, separator, name = path.rpartition(":")
    if not separator or not where or not name:
        raise LoadError(f'"{path}" has no variable name: write "./file.py:name" or "module:name"')
    module = _module(folder, where)
    found: Any = module
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise LoadError(f'"{where}" has no "{name}"{_suggest(module)}') from None
    return found


def _suggest(module: ModuleType) -> str:
    names = [name for name, value in vars(module).items() if isinstance(value, Pregel | StateGraph)]
    return f"; it has the graphs {', '.join(names)}" if names else ""


def _module(folder: str, where: str) -> ModuleType:
    if not where.endswith(".py") and "/" not in where:
        return importlib.import_module(where)
    file = os.path.normpath(os.path.join(folder, where))
    if not os.path.isfile(file) or not file.endswith(".py"):
        raise LoadError(f'no Python file "{where}" in {folder}')
    if (name := _importable(file)) is not None:
        return importlib.import_module(name)
    name = "heddle_project_" + "".join(c if c.isalnum() else f"_{ord(c):x}_" for c in os.path.relpath(file, folder))
    if name in sys.modules:
        return sys.modules[name]
    return _execute(name, file)


def _importable(file: str) -> str | None:
    """The module name under which `import` finds the same file, so that it is loaded once."""
    folder, name = os.path.split(file[: -len(".py")])
    parts = [] if name == "__init__" else [name]
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, name = os.path.split(folder)
        parts.insert(0, name)
    if not parts or not all(part.isidentifier() for part in parts):
        return None
    name = ".".join(parts)
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    if spec is None or not spec.origin or not os.path.isfile(spec.origin):
        return None
    return name if os.path.samefile(spec.origin, file) else None


def _execute(name: str, file: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise LoadError(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


# -- graphs -------------------------------------------------------------------


class Source:
    """The source of a graph: loaded once, or built for each use."""

    def __init__(self, graph_id: str, value: Any) -> None:
        self.id = graph_id
        self.compiled: Pregel[Any, Any, Any, Any] | None = None
        self._arguments: Callable[[Any, Any], dict[str, Any]] | None = None
        self._make: Callable[..., Any] | None = None
        if isinstance(value, Pregel):
            self.compiled = value
        elif isinstance(value, StateGraph):
            self.compiled = value.compile()
        elif callable(value):
            self._make = value
            self._arguments = _parameters(value)
        else:
            raise LoadError(
                f"{type(value).__name__} is not a graph: expected a compiled graph, a StateGraph "
                "or a function that returns one"
            )

    @asynccontextmanager
    async def open(
        self, config: dict[str, Any], runtime: Callable[[], Any]
    ) -> AsyncIterator[Pregel[Any, Any, Any, Any]]:
        """The graph, for the duration of its use. `runtime` creates the arguments that a factory
        requests."""
        if self.compiled is not None:
            yield self.compiled
            return
        assert self._make is not None and self._arguments is not None
        made = self._make(**self._arguments(config, runtime))
        if inspect.isawaitable(made):
            made = await made
        if hasattr(made, "__aenter__"):
            async with made as graph:
                yield _compiled(self.id, graph)
        elif hasattr(made, "__enter__") and not isinstance(made, Pregel):
            with made as graph:
                yield _compiled(self.id, graph)
        elif inspect.isasyncgen(made):
            async for graph in made:
                yield _compiled(self.id, graph)
                break
            await made.aclose()
        else:
            yield _compiled(self.id, made)


def _compiled(graph_id: str, value: Any) -> Pregel[Any, Any, Any, Any]:
    if isinstance(value, StateGraph):
        value = value.compile()
    if not isinstance(value, Pregel):
        raise LoadError(f'the graph function of "{graph_id}" returned {type(value).__name__}, not a graph')
    return value


def _parameters(make: Callable[..., Any]) -> Callable[[Any, Any], dict[str, Any]]:
    """The arguments of a factory: none, a config, a runtime, or both."""
    function = make.func if isinstance(make, functools.partial) else make
    parameters = [
        each
        for each in inspect.signature(make).parameters.values()
        if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        and (each.default is each.empty or each.name in ("config", "runtime"))
    ]
    try:
        hints = typing.get_type_hints(function, localns=_names())
    except Exception:
        hints = {}
    kinds: dict[str, str] = {}
    for each in parameters:
        hint = hints.get(each.name, each.annotation)
        is_runtime = _is_runtime(hint) or (each.name == "runtime" and hint is each.empty)
        kinds[each.name] = "runtime" if is_runtime else "config"
    if len(kinds) > 2 or len(set(kinds.values())) != len(kinds):
        raise LoadError(
            "a function that makes a graph takes a config, a runtime (annotated with "
            f"ServerRuntime), both or nothing, not {', '.join(kinds)}"
        )

    def arguments(config: Any, runtime: Callable[[], Any]) -> dict[str, Any]:
        return {name: runtime() if kind == "runtime" else config for name, kind in kinds.items()}

    return arguments


def _names() -> dict[str, Any]:
    # Text annotations may name imports that exist for type checkers only.
    from langchain_core.runnables import RunnableConfig

    names: dict[str, Any] = {"RunnableConfig": RunnableConfig}
    try:
        from langgraph_sdk import runtime
    except ImportError:
        return names
    return {**names, "ServerRuntime": runtime.ServerRuntime}


def _is_runtime(hint: Any) -> bool:
    try:
        from langgraph_sdk import runtime
    except ImportError:
        return False
    if hint is runtime.ServerRuntime:
        return True
    if isinstance(hint, type):
        return issubclass(hint, runtime._ServerRuntimeBase)
    if (origin := get_origin(hint)) is None:
        return False
    if origin is runtime.ServerRuntime:
        return True
    return any(_is_runtime(each) for each in (origin, *get_args(hint)[:1]))
