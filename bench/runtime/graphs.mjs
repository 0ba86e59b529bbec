// The JavaScript graphs of both servers: an echo, and an agent that calls a tool five times.
import { AIMessage, ToolMessage } from "@langchain/core/messages";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";

const ROUNDS = 5;

function agent({ messages }) {
    const last = messages.findLastIndex((message) => message.getType() === "human");
    const rounds = messages.slice(last).filter((message) => message.getType() === "tool").length;
    if (rounds === ROUNDS)
        return { messages: [new AIMessage(`You said: ${messages[last].content}`)] };
    return {
        messages: [
            new AIMessage({
                content: "",
                tool_calls: [{ name: "look", args: { n: rounds }, id: `call-${rounds}` }],
            }),
        ],
    };
}

function tools({ messages }) {
    const calls = messages.at(-1).tool_calls;
    return {
        messages: calls.map(
            (call) => new ToolMessage({ content: `looked ${call.args.n}`, tool_call_id: call.id }),
        ),
    };
}

export const echo = new StateGraph(MessagesAnnotation)
    .addNode("reply", ({ messages }) => ({
        messages: [new AIMessage(`You said: ${messages.at(-1).content}`)],
    }))
    .addEdge(START, "reply")
    .addEdge("reply", END)
    .compile();

export const loop = new StateGraph(MessagesAnnotation)
    .addNode("agent", agent)
    .addNode("tools", tools)
    .addEdge(START, "agent")
    .addConditionalEdges(
        "agent",
        ({ messages }) => (messages.at(-1).tool_calls?.length ? "tools" : END),
        ["tools", END],
    )
    .addEdge("tools", "agent")
    .compile();
