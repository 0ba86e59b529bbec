// Conversations with content for screenshots and axe: created once per server, by the API.
import { startHeddle, type Heddle } from "./heddle";
import type { Script } from "./mock";
import { assistant, conversation, fork, say } from "./seed";
import { startWeather, type Weather } from "./tools";

const PLAN = `Here is a plan for the weekend:

| When | Saturday | Sunday |
|---|---|---|
| Morning | Old town on foot | Swim in the Aare |
| Afternoon | Paul Klee centre | Train home |

1. Take the **8:02 train**; it is direct.
2. Sleep near the river.

> The Aare is cold until June.

A reminder for your calendar:

\`\`\`python
from datetime import date, timedelta

def weekend(start: date) -> list[date]:
    """Saturday and Sunday."""
    return [start, start + timedelta(days=1)]
\`\`\`
`;
const OTHER = `Then by bus and boat:

- **Saturday**: the boat from Thun to Interlaken
- **Sunday**: the Emmental by bus, with a stop at a cheese dairy

Shall I look up the times?`;
const LONG = `The river makes a loop around the old town, and that is where a walk should begin. ${"Go down to the water, cross the lower bridge, and look back at the roofs. ".repeat(12)}`;

export const SCENES: Script = {
    rules: [
        {
            when: { user: "fail" },
            error: { status: 400, message: "The model has no chat for so long a text." },
        },
        { when: { user: "slow" }, content: LONG, delay_ms: 120 },
        { when: { user: ["weekend", "train"] }, content: OTHER },
        { when: { user: "weekend" }, content: PLAN },
        {
            when: { user: "weather", tool: "weather", tool_results: false },
            content: "I ask the weather service.",
            tool_calls: [{ name: "weather", args: { city: "Bern" } }],
        },
        { when: { tool_results: true }, content: "It is **sunny** in Bern. Take a hat." },
        {
            when: { user: "packing" },
            content: "Shoes for walking, a towel, and something warm for the evening.",
        },
        { content: "You said: {{user}}" },
    ],
};

export type Scenes = {
    heddle: Heddle;
    weather: Weather;
    /** Thread ids. */
    talk: string;
    branches: string;
    asks: string;
    team: string;
    failed: string;
    /** Assistant ids. */
    guide: string;
    desk: string;
    close(): Promise<void>;
};

/** A server with all of them, and the agents "Guide" and "Weather desk". */
export async function startScenes(
    options: Parameters<typeof startHeddle>[0] = {},
): Promise<Scenes> {
    const weather = await startWeather();
    const heddle = await startHeddle({ script: SCENES, ...options });
    const tools = { http_tools: [weather.tool] };
    // Colours depend on ids.
    const guide = await assistant(
        heddle,
        "Guide",
        { system_prompt: "You plan trips. Be brief.", ...tools },
        "6a3e1c52-0b7d-4f0e-9d55-1f2f6c0f7a10",
    );
    const desk = await assistant(
        heddle,
        "Weather desk",
        { ...tools, approval: ["weather"] },
        "c0a4d1f8-6a0b-4c57-8c1e-2f7b9d3e5a21",
    );

    const failed = await conversation(heddle, ["Please fail"], {
        title: "Something that fails",
        assistant: guide,
        mayFail: true,
    });
    const asks = await conversation(heddle, ["What is the weather in Bern?"], {
        title: "Weather in Bern",
        assistant: desk,
    });
    const team = await conversation(heddle, ["What about packing?"], {
        title: "Packing list",
        assistant: guide,
    });
    await say(heddle, team, "And the weather?", { assistant: desk });
    const branches = await conversation(heddle, ["Plan a weekend in Bern", "What about packing?"], {
        title: "A weekend in Bern",
        assistant: guide,
    });
    await fork(heddle, branches, "Plan a weekend in Bern", undefined, guide);
    await fork(
        heddle,
        branches,
        "Plan a weekend in Bern",
        "Plan a weekend in Bern without a train",
        guide,
    );
    const talk = await conversation(
        heddle,
        ["What is the weather like?", "Plan a weekend in Bern"],
        {
            title: "Two days by the river",
            assistant: guide,
        },
    );

    async function close() {
        await heddle.remove();
        await weather.close();
    }
    return { heddle, weather, talk, branches, asks, team, failed, guide, desk, close };
}
