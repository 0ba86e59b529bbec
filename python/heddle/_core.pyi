from asyncio import Future
from collections.abc import Callable, Sequence
from typing import Any, final

__version__: str

# (thread_id, ns, id, parent, checkpoint, metadata, writes, sends)
Row = tuple[
    str,
    str,
    str,
    str | None,
    dict[str, Any],
    dict[str, Any],
    list[tuple[str, str, Any]],
    list[Any],
]

def open(url: str, /) -> Store: ...
def open_async(url: str, /) -> Future[Store]: ...
def wait_closed() -> None: ...

@final
class Classes:
    def __new__(
        cls,
        types: dict[str, type | None],
        parse_datetime: Callable[[str], Any],
        has_response_schema: bool,
    ) -> Classes: ...
    def add_message(
        self,
        cls: type,
        tag: str,
        fields: tuple[tuple[str, str, Any, int], ...],
        has_extra: bool,
        is_ai: bool,
        is_chunk: bool,
        /,
    ) -> None: ...
    def set_bypass(self, cls: type, allowed: bool, /) -> None: ...

@final
class Codec:
    def __new__(
        cls,
        classes: Classes,
        dumps_typed: Callable[[Any], tuple[str, bytes]] | None,
        loads_typed: Callable[[tuple[str, bytes]], Any] | None,
        canonical: bool = True,
    ) -> Codec: ...
    def dumps_typed(self, obj: Any, /) -> tuple[str, bytes]: ...
    def loads_typed(self, data: tuple[str, bytes], /) -> Any: ...
    def encode(self, obj: Any, /) -> bytes: ...
    def decode(self, text: bytes, /) -> Any: ...

@final
class Cursor:
    def page(self) -> list[Row]: ...
    def page_async(self) -> Future[list[Row]] | None: ...
    def close(self) -> None: ...

@final
class Store:
    @property
    def closed(self) -> bool: ...
    def close(self) -> None: ...
    def close_async(self) -> Future[None]: ...
    def put(
        self,
        codec: Codec,
        principal: str,
        thread_id: str,
        ns: str,
        parent: str | None,
        checkpoint: dict[str, Any],
        metadata: dict[str, Any],
        new_versions: dict[str, Any],
        /,
    ) -> None: ...
    def put_async(
        self,
        codec: Codec,
        principal: str,
        thread_id: str,
        ns: str,
        parent: str | None,
        checkpoint: dict[str, Any],
        metadata: dict[str, Any],
        new_versions: dict[str, Any],
        /,
    ) -> Future[None]: ...
    def put_writes(
        self,
        codec: Codec,
        principal: str,
        thread_id: str,
        ns: str,
        checkpoint_id: str,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str,
        /,
    ) -> None: ...
    def put_writes_async(
        self,
        codec: Codec,
        principal: str,
        thread_id: str,
        ns: str,
        checkpoint_id: str,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str,
        /,
    ) -> Future[None]: ...
    def get(self, codec: Codec, principal: str, thread_id: str, ns: str, id: str | None, /) -> Row | None: ...
    def get_async(
        self, codec: Codec, principal: str, thread_id: str, ns: str, id: str | None, /
    ) -> Future[Row | None]: ...
    def list(
        self,
        codec: Codec,
        principal: str,
        thread_id: str | None,
        ns: str | None,
        checkpoint_id: str | None,
        before: str | None,
        filter: dict[str, Any] | None,
        limit: int,
        headers: bool,
        /,
    ) -> Cursor: ...
    def delta_history(
        self,
        codec: Codec,
        principal: str,
        thread_id: str,
        ns: str,
        id: str | None,
        channels: Sequence[str],
        /,
    ) -> dict[str, Any]: ...
    def delta_history_async(
        self,
        codec: Codec,
        principal: str,
        thread_id: str,
        ns: str,
        id: str | None,
        channels: Sequence[str],
        /,
    ) -> Future[dict[str, Any]]: ...
    def threads(self, principal: str, after: str, limit: int, /) -> Sequence[tuple[str, int, int]]: ...
    def threads_async(self, principal: str, after: str, limit: int, /) -> Future[Sequence[tuple[str, int, int]]]: ...
    def usage(self, principal: str, thread_id: str, /) -> tuple[int, int, int, int]: ...
    def usage_async(self, principal: str, thread_id: str, /) -> Future[tuple[int, int, int, int]]: ...
    def delete_thread(self, principal: str, thread_id: str, /) -> None: ...
    def delete_thread_async(self, principal: str, thread_id: str, /) -> Future[None]: ...
    def delete_runs(self, principal: str, run_ids: Sequence[str], /) -> None: ...
    def delete_runs_async(self, principal: str, run_ids: Sequence[str], /) -> Future[None]: ...
    def copy_thread(self, principal: str, source: str, target: str, /) -> None: ...
    def copy_thread_async(self, principal: str, source: str, target: str, /) -> Future[None]: ...
    def prune(self, principal: str, thread_ids: Sequence[str], keep_latest: bool, /) -> None: ...
    def prune_async(self, principal: str, thread_ids: Sequence[str], keep_latest: bool, /) -> Future[None]: ...
    def compact(self) -> None: ...
    def compact_async(self) -> Future[None]: ...
    def check(self) -> None: ...
    def check_async(self) -> Future[None]: ...
