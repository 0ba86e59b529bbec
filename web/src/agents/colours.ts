// Each agent has a colour, the same on every page.
import type { Assistant } from "@langchain/langgraph-sdk";
import { getAssistants } from "@/api/assistants";
import { assignColours, hashOf } from "./palette";

let assigned: { list: Assistant[]; colours: Map<string, number> } | null = null;

export function colourOf(assistantId: string): string {
    const list = getAssistants();
    if (assigned?.list !== list)
        assigned = { list, colours: assignColours(list.map((one) => one.assistant_id)) };
    return `var(--agent-${assigned.colours.get(assistantId) ?? hashOf(assistantId)})`;
}
