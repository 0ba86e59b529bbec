// The graphs of tests/api/lib/graphs, written for LangGraph: same nodes, same state, same words.
import { AIMessage, AIMessageChunk, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { ChatGenerationChunk } from "@langchain/core/outputs";
import {
    Annotation,
    END,
    MessagesAnnotation,
    START,
    Send,
    StateGraph,
    interrupt,
    messagesStateReducer,
} from "@langchain/langgraph";

const list = () => Annotation({ reducer: (left, right) => left.concat(right), default: () => [] });
const messages = () => Annotation({ reducer: messagesStateReducer, default: () => [] });
const pause = (ms, signal) =>
    new Promise((resolve, reject) => {
        const timer = setTimeout(resolve, ms);
        signal?.addEventListener("abort", () => {
            clearTimeout(timer);
            reject(signal.reason ?? new Error("Aborted"));
        });
    });

/** A model that streams the result of `text` for the messages, word by word. */
class Script extends BaseChatModel {
    constructor(text, delay = 0, toolCalls = () => []) {
        super({});
        Object.assign(this, { text, delay, toolCalls });
    }

    _llmType() {
        return "script";
    }

    async _generate(input) {
        const message = new AIMessage({
            content: this.text(input),
            tool_calls: this.toolCalls(input),
        });
        return { generations: [{ text: message.content, message }] };
    }

    async *_streamResponseChunks(input, options, manager) {
        for (const text of this.text(input).match(/\S+\s*/g) ?? []) {
            if (this.delay) await pause(this.delay, options.signal);
            const message = new AIMessageChunk({ content: text });
            yield new ChatGenerationChunk({ text, message });
            await manager?.handleLLMNewToken(text);
        }
        const calls = this.toolCalls(input);
        if (calls.length > 0) {
            const chunks = calls.map((call, index) => ({
                ...call,
                args: JSON.stringify(call.args),
                index,
            }));
            yield new ChatGenerationChunk({
                text: "",
                message: new AIMessageChunk({ content: "", tool_call_chunks: chunks }),
            });
        }
    }
}

const says = (model) => async (state, config) => ({
    messages: [await model.invoke(state.messages, config)],
});
const latest = (all) => all.at(-1);

const echoModel = new Script((all) => `You said: ${latest(all).content}`);
export const echo = new StateGraph(MessagesAnnotation)
    .addNode("reply", says(echoModel))
    .addEdge(START, "reply")
    .addEdge("reply", END)
    .compile();

const COUNTING = "one two three four five six seven eight nine ten";
const slowModel = new Script(() => COUNTING, 100);
export const slow = new StateGraph(MessagesAnnotation)
    .addNode("reply", says(slowModel))
    .addEdge(START, "reply")
    .addEdge("reply", END)
    .compile();

export const loop = new StateGraph(
    Annotation.Root({
        count: Annotation({ reducer: (a, b) => a + b, default: () => 0 }),
        log: list(),
    }),
)
    .addNode("step", (state, config) => {
        config.writer?.({ at: state.count });
        return { count: 1, log: [`step ${state.count}`] };
    })
    .addEdge(START, "step")
    .addConditionalEdges("step", (state) => (state.count < 5 ? "step" : END), ["step", END])
    .compile();

export const approval = new StateGraph(
    Annotation.Root({ messages: messages(), verdict: Annotation() }),
)
    .addNode("ask", (state) => ({
        verdict: interrupt({ question: "Shall I answer?", to: latest(state.messages).content }),
    }))
    .addNode("reply", (state, config) =>
        says(new Script(() => `Approved: ${state.verdict}`))(state, config),
    )
    .addEdge(START, "ask")
    .addEdge("ask", "reply")
    .addEdge("reply", END)
    .compile();

export const questions = new StateGraph(Annotation.Root({ log: list() }))
    .addNode("ask", () => {
        const name = interrupt("name?");
        const age = interrupt({ "age of": name });
        return { log: [`${name} is ${age}`] };
    })
    .addEdge(START, "ask")
    .addEdge("ask", END)
    .compile();

export const panel = new StateGraph(Annotation.Root({ log: list() }))
    .addNode("left", () => ({ log: [`left: ${interrupt("left?")}`] }))
    .addNode("right", () => ({ log: [`right: ${interrupt("right?")}`] }))
    .addEdge(START, "left")
    .addEdge(START, "right")
    .addEdge("left", END)
    .addEdge("right", END)
    .compile();

export const nap = new StateGraph(Annotation.Root({ ms: Annotation(), log: list() }))
    .addNode("before", () => ({ log: ["before"] }))
    .addNode("sleep", async (state, config) => {
        await pause(state.ms, config.signal);
        return { log: ["slept"] };
    })
    .addNode("after", () => ({ log: ["after"] }))
    .addEdge(START, "before")
    .addEdge("before", "sleep")
    .addEdge("sleep", "after")
    .addEdge("after", END)
    .compile();

export const gated = new StateGraph(Annotation.Root({ messages: messages(), log: list() }))
    .addNode("before", () => ({ log: ["before"] }))
    .addNode("gate", async (_, config) => {
        await fetch(config.configurable.gate, { signal: config.signal });
        return { log: ["through"] };
    })
    .addNode("after", () => ({ log: ["after"] }))
    .addNode("reply", says(new Script(() => COUNTING, 50)))
    .addEdge(START, "before")
    .addEdge("before", "gate")
    .addEdge("gate", "after")
    .addEdge("after", "reply")
    .addEdge("reply", END)
    .compile();

class ValueError extends Error {
    name = "ValueError";
}

export const failing = new StateGraph(Annotation.Root({ log: list() }))
    .addNode("before", () => ({ log: ["before"] }))
    .addNode("break", () => {
        throw new ValueError("boom");
    })
    .addEdge(START, "before")
    .addEdge("before", "break")
    .addEdge("break", END)
    .compile();

const nestedState = Annotation.Root({ messages: messages(), ask: Annotation() });
const child = new StateGraph(nestedState)
    .addNode("choose", () => ({}))
    .addNode("question", () => ({ messages: [new HumanMessage(interrupt("inner?"))] }))
    .addNode("inner", says(new Script(() => "inner says hello")))
    .addEdge(START, "choose")
    .addConditionalEdges("choose", (state) => (state.ask ? "question" : "inner"), [
        "question",
        "inner",
    ])
    .addEdge("question", "inner")
    .addEdge("inner", END)
    .compile();
export const nested = new StateGraph(nestedState)
    .addNode("before", () => ({ messages: [new AIMessage("outer")] }))
    .addNode("child", child)
    .addEdge(START, "before")
    .addEdge("before", "child")
    .addEdge("child", END)
    .compile();

export const fanout = new StateGraph(
    Annotation.Root({ items: Annotation(), squares: list(), total: Annotation() }),
)
    .addNode("split", () => ({}))
    .addNode("square", ({ n }) => ({ squares: [n * n] }))
    .addNode("sum", (state) => ({ total: state.squares.reduce((a, b) => a + b, 0) }))
    .addEdge(START, "split")
    .addConditionalEdges("split", (state) => state.items.map((n) => new Send("square", { n })), [
        "square",
    ])
    .addEdge("square", "sum")
    .addEdge("sum", END)
    .compile();

const toolModel = new Script(
    (all) => (latest(all).type === "tool" ? `It is ${latest(all).content}.` : ""),
    0,
    (all) =>
        latest(all).type === "tool"
            ? []
            : [
                  {
                      name: "look",
                      args: { at: latest(all).content },
                      id: "call-1",
                      type: "tool_call",
                  },
              ],
);
export const tools = new StateGraph(MessagesAnnotation)
    .addNode("model", says(toolModel))
    .addNode("look", (state) => ({
        messages: [
            new ToolMessage({
                content: "sunny",
                tool_call_id: latest(state.messages).tool_calls[0].id,
            }),
        ],
    }))
    .addEdge(START, "model")
    .addConditionalEdges(
        "model",
        (state) => (latest(state.messages).tool_calls?.length ? "look" : END),
        ["look", END],
    )
    .addEdge("look", "model")
    .compile();

export const settings = new StateGraph(Annotation.Root({ seen: list() }))
    .addNode("tell", (_, config) => ({
        seen: [
            {
                user: config.configurable?.user ?? null,
                colour: config.configurable?.colour ?? null,
                mood: config.context?.mood ?? null,
            },
        ],
    }))
    .addEdge(START, "tell")
    .addEdge("tell", END)
    .compile();

const ANSWERS = { Hello: "Hi there!", "How are you?": "I am fine." };
const myAssistant = new StateGraph(MessagesAnnotation)
    .addNode("reply", says(new Script((all) => ANSWERS[latest(all).content] ?? "Let us.")))
    .addEdge(START, "reply")
    .addEdge("reply", END)
    .compile();
export { myAssistant as "my-assistant" };
