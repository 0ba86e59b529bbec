import { entrypoint, getPreviousState, interrupt, task } from "@langchain/langgraph";

const double = task("double", async (n: number) => n * 2);

export const count = entrypoint("count", async (input: { n: number; ask?: boolean }) => {
    const total = (getPreviousState<number>() ?? 0) + (await double(input.n));
    const more = input.ask ? interrupt<string, number>("how much more?") : 0;
    return entrypoint.final({ value: { total: total + more }, save: total + more });
});
