// An HTTP tool for the agents of these tests: it reports the weather.
import { listen } from "./listen";

export type Weather = {
    /** For `http_tools` of a configurable. */
    tool: Record<string, unknown>;
    /** The requested cities. */
    cities: string[];
    /** Holds responses until release() is called. */
    hold(): void;
    release(): void;
    close(): Promise<void>;
};

export async function startWeather(): Promise<Weather> {
    const cities: string[] = [];
    let waiting: (() => void)[] | null = null;
    const { url, close } = await listen((asked, answer) => {
        const city = new URL(asked.url ?? "/", "http://x").searchParams.get("city") ?? "nowhere";
        cities.push(city);
        const send = () =>
            answer.writeHead(200, { "Content-Type": "text/plain" }).end(`sunny in ${city}`);
        if (waiting) waiting.push(send);
        else send();
    });
    return {
        cities,
        tool: {
            name: "weather",
            description: "The weather of a city.",
            parameters: {
                type: "object",
                properties: { city: { type: "string" } },
                required: ["city"],
            },
            url: `${url}/weather`,
            query: ["city"],
        },
        hold: () => {
            waiting ??= [];
        },
        release: () => {
            const all = waiting ?? [];
            waiting = null;
            for (const send of all) send();
        },
        close,
    };
}
