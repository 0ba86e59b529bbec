/**
 * A worker: sends hello, loads the project, and serves calls until the server closes the
 * connection.
 */
import { failureOf } from "./failure.js";
import { connected, helloOf, type WorkerSettings } from "./hello.js";
import { draw, schemas, subgraphs, update } from "./introspect.js";
import { skipPolling } from "./items.js";
import { watchLease } from "./lease.js";
import { Link, type IncomingCall } from "./link.js";
import { registerLogger } from "./logger.js";
import { installLoopback } from "./loopback.js";
import { loadedCommonJs } from "./modules.js";
import { Project, type ProjectSettings } from "./project.js";
import { run } from "./run.js";
import { look, onChange, watchLoop } from "./watch.js";
import { startWatchdog } from "./watchdog.js";

type Operation = (call: IncomingCall, worker: Worker) => Promise<void>;

const OPERATIONS: Readonly<Record<string, Operation>> = {
    ping: async (call) => call.answer(),
    run: (call, { project }) => run(call, project),
    update: (call, { project }) => update(call, project),
    draw: (call, { project }) => draw(call, project),
    schemas: (call, { project }) => schemas(call, project),
    subgraphs: (call, { project }) => subgraphs(call, project),
    authenticate: (call, { project }) => has(project.auth, "auth").authenticate(call),
    authorize: (call, { project }) => has(project.auth, "auth").authorize(call),
    request: (call, { project }) => has(project.app, "HTTP app").request(call),
    embed: (call, { project }) => has(project.embedder, "function for embeddings").embed(call),
    drain: (call, worker) => worker.drain(call),
};

function has<T>(part: T | undefined, what: string): T {
    if (part === undefined) throw new Error(`the project has no ${what}`);
    return part;
}

export class Worker {
    readonly project: Project;
    readonly link: Link;
    #draining: IncomingCall | undefined;
    #drained: (() => void) | undefined;

    private constructor(link: Link, project: Project) {
        this.link = link;
        this.project = project;
    }

    /** Connects and loads everything. */
    static async start(settings: WorkerSettings): Promise<Worker> {
        const link = new Link(await connected(settings.address));
        // Calls are served when the project is loaded, except health checks.
        const early: IncomingCall[] = [];
        link.onCall = (call) => (call.op === "ping" ? call.answer() : void early.push(call));
        const { head } = await link.call(helloOf(settings));
        if (typeof head.lease_ms === "number") watchLease(link, head.lease_ms);
        const given = head.project as ProjectSettings;
        const project = new Project(
            settings.folder === undefined ? given : { ...given, folder: settings.folder },
        );
        const worker = new Worker(link, project);
        skipPolling();
        registerLogger();
        installLoopback();
        if (given.reload) startWatchdog();
        else watchLoop(console.error);
        const files = given.reload ? look(project.folder) : undefined;
        const loaded = await project.load();
        const common = loadedCommonJs("@langchain/langgraph-checkpoint");
        if (common !== undefined)
            skipPolling(common.AsyncBatchedStore as { readonly prototype: object });
        link.onCall = (call) => void worker.#carryOut(call);
        await link.call({ op: "ready", ...loaded });
        for (const call of early) void worker.#carryOut(call);
        if (files !== undefined) {
            onChange(
                project.folder,
                files,
                (changed) => void link.call({ op: "changed", files: changed }).catch(console.error),
            );
        }
        return worker;
    }

    /** Resolves when the connection is closed. */
    ended(): Promise<Error> {
        return this.link.closed;
    }

    /** Answers when no other call is running, and ends. */
    async drain(call: IncomingCall): Promise<void> {
        this.#draining = call;
        if (this.link.busy > 1) await new Promise<void>((resolve) => (this.#drained = resolve));
        call.answer();
        await this.link.end();
    }

    async #carryOut(call: IncomingCall): Promise<void> {
        const operation = Object.hasOwn(OPERATIONS, call.op) ? OPERATIONS[call.op] : undefined;
        try {
            if (operation === undefined)
                call.fail({
                    type: "Error",
                    code: "invalid",
                    message: `unknown operation ${call.op}`,
                });
            else await operation(call, this);
        } catch (error) {
            call.fail(failureOf(error));
        }
        if (this.#draining !== undefined && this.link.busy <= 1) this.#drained?.();
    }
}
