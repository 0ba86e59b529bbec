// Servers of the tests' own, on loopback ports that the system gives.
import { createServer, type RequestListener } from "node:http";

export type Listening = {
    readonly url: string;
    readonly port: number;
    /** Whoever is still connected is cut off. */
    close(): Promise<void>;
};

export async function listen(answer: RequestListener): Promise<Listening> {
    const server = createServer(answer);
    server.requestTimeout = 0; // an answer takes as long as a test does
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    const port = typeof address === "object" && address ? address.port : 0;
    return {
        url: `http://127.0.0.1:${port}`,
        port,
        close: () =>
            new Promise((resolve) => {
                server.close(() => resolve());
                server.closeAllConnections();
            }),
    };
}
