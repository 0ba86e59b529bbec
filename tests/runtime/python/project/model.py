"""A chat model that answers by rule, word by word, and calls tools on request."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

CALL = re.compile(r"(\w+)\((\d+), *(\d+)\)")


def reply(messages: list[BaseMessage]) -> AIMessage:
    last = messages[-1]
    if isinstance(last, ToolMessage):
        return AIMessage(f"The result is {last.content}.")
    calls = [
        {"name": name, "args": {"a": int(a), "b": int(b)}, "id": f"call{i}"}
        for i, (name, a, b) in enumerate(CALL.findall(str(last.content)))
    ]
    if calls:
        return AIMessage("", tool_calls=calls)
    return AIMessage(f"You said: {last.content} (message {len(messages)})")


class ScriptedModel(BaseChatModel):
    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **options: Any) -> ScriptedModel:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=reply(messages))])

    def _stream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        answer = reply(messages)
        if answer.tool_calls:
            chunks = [
                {"name": call["name"], "args": str(call["args"]).replace("'", '"'), "id": call["id"], "index": i}
                for i, call in enumerate(answer.tool_calls)
            ]
            yield ChatGenerationChunk(message=AIMessageChunk("", tool_call_chunks=chunks))
            return
        for word in re.findall(r"\S+\s*", str(answer.content)):
            chunk = ChatGenerationChunk(message=AIMessageChunk(word))
            if run_manager:
                run_manager.on_llm_new_token(word, chunk=chunk)
            yield chunk
