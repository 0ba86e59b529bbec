"""Embeddings by a function of the project."""

from __future__ import annotations

import sys
from array import array
from typing import Any

import orjson
from langchain_core.embeddings import Embeddings
from langgraph.store.base.embed import ensure_embeddings

from heddle.runtime.errors import LoadError
from heddle.runtime.link import Call

Reply = tuple[bytes, tuple[bytes, ...]]


class Embedder:
    """A function of texts, sync or async, or an `Embeddings`."""

    def __init__(self, value: Any, dims: int | None) -> None:
        if not isinstance(value, Embeddings) and not callable(value):
            raise LoadError(f"{type(value).__name__} is not an embedding function")
        self._embeddings = ensure_embeddings(value)
        self._dims = dims

    async def embed(self, call: Call) -> Reply:
        texts: list[str] = orjson.loads(call.blobs[0])
        found = await self._embeddings.aembed_documents(texts)
        if len(found) != len(texts):
            raise ValueError(f"{len(found)} embeddings for {len(texts)} texts")
        numbers = array("f")
        for vector in found:
            if self._dims is not None and len(vector) != self._dims:
                raise ValueError(f"an embedding has {len(vector)} numbers, store.index requires {self._dims}")
            numbers.extend(float(each) for each in vector)
        if sys.byteorder == "big":
            numbers.byteswap()
        return b"{}", (numbers.tobytes(),)
