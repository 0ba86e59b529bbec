// Puts a server that speaks MCP on standard input and output behind streamable HTTP, one process
// for each session, and prints the messages:
//
//   node bridge.mjs PROGRAM [ARGUMENT…]
//
// Prints "ready PORT", then one line of JSON for each message of a client: {"session", "method", "params"}, and
// for each end: {"session", "ended": true}. POST /forget makes it forget all sessions, as a restart would;
// what was forgotten is answered with 404. GET /seen has all lines so far.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";

const [program, ...programArguments] = process.argv.slice(2);
const sessions = new Map();
const seen = [];

function tell(line) {
    seen.push(line);
    console.log(JSON.stringify(line));
}

async function open() {
    const child = new StdioClientTransport({
        command: program,
        args: programArguments,
        stderr: "ignore",
    });
    const front = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => sessions.set(id, { front, child }),
    });
    front.onmessage = (message) => {
        tell({
            session: front.sessionId ?? null,
            method: message.method ?? null,
            id: message.id ?? null,
            params: message.params ?? null,
        });
        child.send(message);
    };
    front.onclose = () => {
        tell({ session: front.sessionId, ended: true });
        sessions.delete(front.sessionId);
        child.close();
    };
    // Messages of no request go to the stream that the client listens on.
    child.onmessage = (message) => front.send(message).catch(() => {});
    await front.start();
    await child.start();
    return front;
}

function refuse(response, status, code, message) {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify({ jsonrpc: "2.0", id: null, error: { code, message } }));
}

const server = createServer(async (request, response) => {
    if (request.url === "/seen") {
        response.end(JSON.stringify(seen));
        return;
    }
    if (request.url === "/forget") {
        for (const { child } of sessions.values()) child.close();
        sessions.clear();
        response.end();
        return;
    }
    if (request.url !== "/mcp") return refuse(response, 404, -32000, "not here");
    const id = request.headers["mcp-session-id"];
    if (id && !sessions.has(id)) return refuse(response, 404, -32001, "Session not found");
    const front = id ? sessions.get(id).front : await open();
    await front.handleRequest(request, response);
});

server.listen(0, "127.0.0.1", () => console.log(`ready ${server.address().port}`));
