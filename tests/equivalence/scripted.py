"""The scripted model of docs/graphs.md as a LangChain chat model."""

import asyncio
import json
import re
import time

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult


def pieces(text, by):
    """Returns the tokens of a text: words with the white space after them, or that many characters."""
    if by == "word":
        return re.findall(r"^\s+|\S+\s*", text)
    size = 1 if by == "character" else by
    return [text[i : i + size] for i in range(0, len(text), size)]


class ScriptedModel(BaseChatModel):
    """Replies with `reply`: a dict with `content`, `tool_calls`, `usage` or `error`.

    With `stream` (by word, character or a number of characters) the reply is sent in chunks: its
    text, one for each tool call, and an empty last one with the usage.
    """

    reply: dict
    stream_by: str | int | None = None
    delay: float = 0

    @property
    def _llm_type(self):
        return "scripted"

    def __init__(self, **members):
        members.setdefault("disable_streaming", members.get("stream_by") is None)
        super().__init__(**members)

    def _fail(self):
        if "error" in self.reply:
            raise RuntimeError(self.reply["error"])

    def _message(self):
        calls = [call | {"type": "tool_call"} for call in self.reply.get("tool_calls", [])]
        return AIMessage(
            content=self.reply.get("content", ""), tool_calls=calls, usage_metadata=self.reply.get("usage")
        )

    def _chunks(self):
        for piece in pieces(self.reply.get("content", ""), self.stream_by):
            yield AIMessageChunk(content=piece)
        for index, call in enumerate(self.reply.get("tool_calls", [])):
            args = json.dumps(call["args"], ensure_ascii=False, separators=(",", ":"))
            part = {"name": call["name"], "args": args, "id": call["id"], "index": index, "type": "tool_call_chunk"}
            yield AIMessageChunk(content="", tool_call_chunks=[part])
        # An error interrupts the reply, after its content so far.
        self._fail()
        yield AIMessageChunk(content="", usage_metadata=self.reply.get("usage"), chunk_position="last")

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        self._fail()
        return ChatResult(generations=[ChatGeneration(message=self._message())])

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        for message in self._chunks():
            time.sleep(self.delay)
            chunk = ChatGenerationChunk(message=message)
            if run_manager:
                run_manager.on_llm_new_token(message.content, chunk=chunk)
            yield chunk

    async def _astream(self, messages, stop=None, run_manager=None, **kwargs):
        for message in self._chunks():
            await asyncio.sleep(self.delay)
            chunk = ChatGenerationChunk(message=message)
            if run_manager:
                await run_manager.on_llm_new_token(message.content, chunk=chunk)
            yield chunk
