/** A chat model without a network: it answers as the script in the last message defines. */
import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, AIMessageChunk, type BaseMessage } from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";

/** "add 1 2" calls the tool `add`, "wait" calls the tool `wait`; other texts are repeated. */
export class ScriptedModel extends BaseChatModel {
    override lc_namespace = ["heddle", "tests"];

    override _llmType(): string {
        return "scripted";
    }

    override bindTools(): this {
        return this;
    }

    #answer(messages: BaseMessage[]): AIMessage {
        const last = messages.at(-1)!;
        const words = last.text.split(" ");
        if (last.type === "tool") return new AIMessage(`the sum is ${last.text}`);
        const name = words[0]!;
        if (name !== "add" && name !== "wait") return new AIMessage(`you said: ${last.text}`);
        const args = name === "add" ? { a: Number(words[1]), b: Number(words[2]) } : {};
        return new AIMessage({
            content: "",
            tool_calls: [{ name, args, id: `call-${messages.length}`, type: "tool_call" }],
        });
    }

    override async _generate(messages: BaseMessage[]): Promise<ChatResult> {
        const message = this.#answer(messages);
        return { generations: [{ message, text: message.text }] };
    }

    override async *_streamResponseChunks(
        messages: BaseMessage[],
        _options: this["ParsedCallOptions"],
        manager?: CallbackManagerForLLMRun,
    ): AsyncGenerator<ChatGenerationChunk> {
        const answer = this.#answer(messages);
        const parts = answer.text === "" ? [""] : answer.text.split(/(?<= )/);
        for (const [i, text] of parts.entries()) {
            const tool_call_chunks =
                i > 0
                    ? []
                    : answer.tool_calls!.map(({ name, args, id }, index) => ({
                          name,
                          args: JSON.stringify(args),
                          id: id!,
                          index,
                      }));
            const chunk = new ChatGenerationChunk({
                text,
                message: new AIMessageChunk({ content: text, tool_call_chunks }),
            });
            yield chunk;
            await manager?.handleLLMNewToken(text, undefined, undefined, undefined, undefined, {
                chunk,
            });
        }
    }
}
