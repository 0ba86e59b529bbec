// A tool over HTTP that agents of these tests may use: it knows the weather.
import { createServer } from "node:http";

export type Weather = {
    /** For `http_tools` of a configurable. */
    tool: Record<string, unknown>;
    /** The cities it was asked about. */
    cities: string[];
    /** Holds answers back until release() is called. */
    hold(): void;
    release(): void;
    close(): Promise<void>;
};

export async function startWeather(): Promise<Weather> {
    const cities: string[] = [];
    let waiting: (() => void)[] | null = null;
    const server = createServer((asked, answer) => {
        const city = new URL(asked.url ?? "/", "http://x").searchParams.get("city") ?? "nowhere";
        cities.push(city);
        const send = () =>
            answer.writeHead(200, { "Content-Type": "text/plain" }).end(`sunny in ${city}`);
        if (waiting) waiting.push(send);
        else send();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    const port = typeof address === "object" && address ? address.port : 0;
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
            url: `http://127.0.0.1:${port}/weather`,
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
        close: () =>
            new Promise((resolve) => {
                server.close(() => resolve());
                server.closeAllConnections();
            }),
    };
}
