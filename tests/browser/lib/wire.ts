// A connection between a browser and its server that can be cut: existing connections break, and
// new ones fail.
import { connect, createServer, type Socket } from "node:net";
import { addPage } from "./watch";

export type Wire = {
    /** The URL of the page through this connection. */
    url: string;
    cut(): void;
    mend(): void;
    close(): Promise<void>;
};

export async function startWire(server: string): Promise<Wire> {
    const { hostname, port } = new URL(server);
    const open = new Set<Socket>();
    let isCut = false;
    const join = (socket: Socket) => {
        if (isCut) return void socket.destroy();
        const further = connect(Number(port), hostname);
        for (const end of [socket, further]) {
            open.add(end);
            end.on("error", () => undefined);
            end.on("close", () => {
                open.delete(end);
                socket.destroy();
                further.destroy();
            });
        }
        socket.pipe(further).pipe(socket);
    };
    const near = createServer(join);
    await new Promise<void>((resolve) => near.listen(0, "127.0.0.1", resolve));
    const address = near.address();
    const url = `http://127.0.0.1:${typeof address === "object" && address ? address.port : 0}`;
    addPage(url);
    const cut = () => {
        isCut = true;
        for (const socket of open) socket.destroy();
    };
    return {
        url,
        cut,
        mend: () => {
            isCut = false;
        },
        close: () => {
            cut();
            return new Promise((resolve) => near.close(() => resolve()));
        },
    };
}
