// Test servers on free loopback ports.
import { createServer, type RequestListener } from "node:http";

export type Listening = {
    readonly url: string;
    readonly port: number;
    /** Closes all remaining connections. */
    close(): Promise<void>;
};

export async function listen(answer: RequestListener): Promise<Listening> {
    const server = createServer(answer);
    server.requestTimeout = 0; // a response may last as long as a test
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
