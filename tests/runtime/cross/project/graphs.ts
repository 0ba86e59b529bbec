/** The graphs of the tests in TypeScript; those in graphs.py and native.json are the same. */
import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import {
    Annotation,
    entrypoint,
    interrupt,
    messagesStateReducer,
    Send,
    START,
    StateGraph,
    task,
} from "@langchain/langgraph";

const State = Annotation.Root({
    log: Annotation<unknown[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
    messages: Annotation<BaseMessage[]>({ reducer: messagesStateReducer, default: () => [] }),
    extra: Annotation<unknown>,
});

const says = (name: string) => () => ({ log: [`${name}:js`] });
const asks =
    (...questions: string[]) =>
    () => ({ log: questions.map((each) => `${interrupt(each)}:js`) });

export const chat = new StateGraph(State)
    .addNode("reply", (state) => ({
        messages: [new AIMessage(`${state.messages.length}:js`)],
        log: ["reply:js"],
    }))
    .addEdge(START, "reply")
    .compile();

export const line = new StateGraph(State)
    .addNode("a", says("a"))
    .addNode("b", says("b"))
    .addEdge(START, "a")
    .addEdge("a", "b")
    .compile();

export const ask = new StateGraph(State)
    .addNode("ask", asks("one?"))
    .addEdge(START, "ask")
    .compile();

export const twice = new StateGraph(State)
    .addNode("ask", asks("one?", "two?"))
    .addEdge(START, "ask")
    .compile();

export const parallel = new StateGraph(State)
    .addNode("ask", asks("one?"))
    .addNode("done", says("done"))
    .addNode("end", says("end"))
    .addEdge(START, "ask")
    .addEdge(START, "done")
    .addEdge(["ask", "done"], "end")
    .compile();

export const sends = new StateGraph(State)
    .addNode("plan", says("plan"))
    .addNode("work", says("work"))
    .addEdge(START, "plan")
    .addConditionalEdges("plan", () => [1, 2, 3].map((n) => new Send("work", n)), ["work"])
    .compile();

export const join = new StateGraph(State)
    .addNode("a", says("a"))
    .addNode("b1", says("b1"))
    .addNode("b2", says("b2"))
    .addNode("c", says("c"))
    .addEdge(START, "a")
    .addEdge(START, "b1")
    .addEdge("b1", "b2")
    .addEdge(["a", "b2"], "c")
    .compile();

const inner = new StateGraph(State)
    .addNode("first", says("first"))
    .addNode("ask", asks("inner?"))
    .addEdge(START, "first")
    .addEdge("first", "ask")
    .compile();
export const nested = new StateGraph(State).addNode("sub", inner).addEdge(START, "sub").compile();

export const foreign = new StateGraph(State)
    .addNode("a", () => ({ extra: /here/ }))
    .addNode("b", says("b"))
    .addEdge(START, "a")
    .addEdge("a", "b")
    .compile();

const double = task("double", async (n: number) => n * 2);
export const functional = entrypoint("functional", async () => ({
    log: [await double(2), interrupt("more?")],
}));
