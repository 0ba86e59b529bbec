// An A2A agent on the official SDK: `node agent.mjs new` on its 1.x line (which also speaks 0.3),
// `node agent.mjs old` on the 0.3 line. The first word of a message selects the behaviour.
//
// Each path is an agent with its own card. GET /seen returns the requested and the cancelled tasks.
import express from "express";

const isOld = process.argv[2] === "old";
const sdk = isOld ? "a2a-sdk-0.3" : "@a2a-js/sdk";
const { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } = await import(`${sdk}/server`);
const { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } = await import(
    `${sdk}/server/express`
);
const { TaskState, Role } = isOld ? {} : await import(sdk);

const TOKEN = "Bearer a2a-token-4711";
const seen = { requests: [], cancelled: [], closed: 0, metadata: [] };

// ---- one interface to both lines of the SDK ------------------------

const state = (name) =>
    isOld ? name : TaskState[`TASK_STATE_${name.toUpperCase().replaceAll("-", "_")}`];
const textPart = (text) =>
    isOld
        ? { kind: "text", text }
        : { content: { $case: "text", value: text }, filename: "", mediaType: "" };
const dataPart = (data) =>
    isOld
        ? { kind: "data", data }
        : { content: { $case: "data", value: data }, filename: "", mediaType: "" };

let count = 0;
const message = (context, parts) => ({
    ...(isOld
        ? { kind: "message", role: "agent" }
        : { role: Role.ROLE_AGENT, extensions: [], referenceTaskIds: [] }),
    messageId: `m-${++count}`,
    contextId: context.contextId,
    taskId: isOld ? undefined : "",
    parts,
});
const status = (context, name, text) => ({
    state: state(name),
    message: text ? message(context, [textPart(text)]) : undefined,
    timestamp: new Date().toISOString(),
});

class Speaker {
    constructor(context, bus) {
        Object.assign(this, {
            context,
            bus,
            ids: { taskId: context.taskId, contextId: context.contextId },
        });
    }
    message(text) {
        const said = message(this.context, [textPart(text)]);
        this.bus.publish(isOld ? said : AgentEvent.message(said));
    }
    task(name) {
        const { taskId: id, contextId } = this.ids;
        const task = {
            ...this.context.task,
            id,
            contextId,
            status: status(this.context, name),
            history: [this.context.userMessage],
        };
        task.artifacts ??= [];
        this.bus.publish(isOld ? { kind: "task", ...task } : AgentEvent.task(task));
    }
    status(name, text) {
        const final = !["submitted", "working"].includes(name);
        const update = { ...this.ids, status: status(this.context, name, text) };
        this.bus.publish(
            isOld ? { kind: "status-update", final, ...update } : AgentEvent.statusUpdate(update),
        );
    }
    artifact(id, parts, append = false) {
        const artifact = {
            artifactId: id,
            name: `the ${id}`,
            description: "",
            parts,
            extensions: [],
        };
        const update = { ...this.ids, artifact, append, lastChunk: false };
        this.bus.publish(
            isOld ? { kind: "artifact-update", ...update } : AgentEvent.artifactUpdate(update),
        );
    }
}

// ---- what it does ------------------------------------------------------------

const partText = (part) =>
    isOld ? part.text : part.content?.$case === "text" ? part.content.value : undefined;
const partData = (part) =>
    isOld ? part.data : part.content?.$case === "data" ? part.content.value : undefined;
const heard = (said) =>
    said.parts.map((part) => partText(part) ?? `data ${JSON.stringify(partData(part))}`).join(" ");

const deeds = {
    hello: (say, text) => say.message(`You said: ${text}`),
    context: (say) => say.message(say.ids.contextId),
    artifact(say) {
        say.task("submitted");
        say.artifact("plan", [textPart("Do it."), dataPart({ steps: [1, 2] })]);
        say.status("completed", "All done.");
    },
    stream(say) {
        say.task("submitted");
        say.status("working", "thinking");
        say.artifact("poem", [textPart("one ")]);
        say.artifact("poem", [textPart("two ")], true);
        say.artifact("poem", [textPart("three")], true);
        say.status("completed");
    },
    ask(say) {
        say.task("submitted");
        say.status("input-required", "Which city?");
    },
    fail(say) {
        say.task("submitted");
        say.status("failed", "no fuel");
    },
    reject(say) {
        say.task("submitted");
        say.status("rejected", "not mine");
    },
    // Until it is cancelled.
    async long(say) {
        say.task("submitted");
        say.status("working", "begun");
        await new Promise((resolve) => waiting.set(say.ids.taskId, resolve));
        say.status("canceled");
    },
};
const waiting = new Map();

class Executor {
    async execute(context, bus) {
        const say = new Speaker(context, bus);
        const text = heard(context.userMessage);
        seen.metadata.push(context.userMessage.metadata);
        if (context.task) {
            say.task("working");
            if (text === "again") say.status("input-required", "Which country?");
            else {
                say.artifact("choice", [textPart(`You chose: ${text}`)]);
                say.status("completed");
            }
        } else {
            await (deeds[text.split(" ")[0]] ?? deeds.hello)(say, text);
        }
        bus.finished();
    }
    async cancelTask(taskId) {
        seen.cancelled.push(taskId);
        waiting.get(taskId)?.();
    }
}

// ---- where it is ---------------------------------------------------------------

const skills = [
    {
        id: "talk",
        name: "talking",
        description: "says things",
        tags: [],
        examples: [],
        inputModes: [],
        outputModes: [],
        securityRequirements: [],
    },
];
const modes = { defaultInputModes: ["text/plain"], defaultOutputModes: ["text/plain"] };

function makeCard(path, url, options) {
    const about = {
        name: `Agent of ${path}`,
        description: `Speaks on ${path}.`,
        version: "1",
        skills,
        ...modes,
    };
    const capabilities = { streaming: options.streams, pushNotifications: false, extensions: [] };
    if (isOld)
        return {
            ...about,
            capabilities,
            protocolVersion: "0.3.0",
            url,
            preferredTransport: "JSONRPC",
        };
    const ways = [
        { url, protocolBinding: options.binding ?? "JSONRPC", protocolVersion: "1.0", tenant: "" },
    ];
    if (options.legacy) ways.push({ ...ways[0], protocolVersion: "0.3" });
    return {
        ...about,
        capabilities,
        supportedInterfaces: ways,
        securitySchemes: {},
        securityRequirements: [],
        signatures: [],
    };
}

const app = express();
const agents = isOld
    ? { old: { streams: true }, "old-plain": {} }
    : {
          rpc: { streams: true },
          "rpc-plain": {},
          rest: { streams: true, binding: "HTTP+JSON" },
          "rest-plain": { binding: "HTTP+JSON" },
          legacy: { streams: true, legacy: true },
          secure: { streams: true, token: TOKEN },
      };

app.get("/seen", (_, response) => response.json(seen));
app.use((request, response, next) => {
    const { authorization, "a2a-version": version } = request.headers;
    seen.requests.push({ method: request.method, path: request.path, version, authorization });
    response.on("close", () => seen.closed++);
    const agent = agents[request.path.split("/")[1]];
    if (agent?.token && authorization !== agent.token) response.status(401).json({ error: "no" });
    else next();
});

const server = app.listen(0, "127.0.0.1", () => {
    const base = `http://127.0.0.1:${server.address().port}`;
    for (const [path, options] of Object.entries(agents)) {
        const card = makeCard(path, `${base}/${path}/endpoint`, options);
        const requestHandler = new DefaultRequestHandler(
            card,
            new InMemoryTaskStore(),
            new Executor(),
        );
        const legacyCompat = { enabled: Boolean(options.legacy) };
        const handle = options.binding ? restHandler : jsonRpcHandler;
        app.use(
            `/${path}/.well-known/agent-card.json`,
            agentCardHandler({ agentCardProvider: requestHandler, legacyCompat }),
        );
        app.use(
            `/${path}/endpoint`,
            handle({ requestHandler, userBuilder: UserBuilder.noAuthentication, legacyCompat }),
        );
    }
    console.log(`ready ${base}`);
});
