import { Annotation, interrupt, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({
    name: Annotation<string>,
    city: Annotation<string>,
    greeting: Annotation<string>,
});

export const graph = new StateGraph(State)
    .addNode("ask", () => {
        const name = interrupt<object, string>({ question: "name?" });
        const city = interrupt<object, string>({ question: "city?" });
        return { name, city };
    })
    .addNode("greet", ({ name, city }) => ({ greeting: `${name} of ${city}` }))
    .addEdge(START, "ask")
    .addEdge("ask", "greet")
    .compile();
