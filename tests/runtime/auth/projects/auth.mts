/** Who may use the server, and what: auth.py is the same in Python. */
import { appendFileSync, readFileSync } from "node:fs";
import { Auth, HTTPException } from "@langchain/langgraph-sdk/auth";

const here = (name: string) => new URL(name, import.meta.url);

type User = { identity: string; permissions: string[] };
type Asked = { user: User; permissions: string[]; value: any };

const own = ({ user }: Asked) => ({ owner: user.identity });
const stamp = (asked: Asked) => {
    asked.value.metadata = { ...asked.value.metadata, ...own(asked) };
    return own(asked);
};

export const auth = new Auth()
    .authenticate(async (request: Request) => {
        appendFileSync(here("asked.log"), `${request.method} ${new URL(request.url).pathname}\n`);
        const authorization = request.headers.get("authorization");
        if (!authorization) {
            throw new HTTPException(401, {
                message: "who are you?",
                headers: { "WWW-Authenticate": 'Custom realm="tests"' },
            });
        }
        const token = authorization.replace("Bearer ", "");
        if (token === "broken") throw new Error("nobody may read this");
        if (token === "nameless") return { identity: "", permissions: [] };
        const user = JSON.parse(readFileSync(here("users.json"), "utf8"))[token];
        if (!user) throw new HTTPException(401, { message: "nobody has this token" });
        return user as User;
    })
    .on("*", (asked: Asked) => stamp(asked))
    .on("threads:delete", (asked: Asked) => {
        if (!asked.permissions.includes("threads:delete")) {
            throw new HTTPException(403, { message: "you may not delete threads" });
        }
        return own(asked);
    })
    .on("threads:create_run", (asked: Asked) => {
        const input = asked.value.kwargs.input ?? {};
        if (input.messages === "forbidden") return false;
        if (input.messages === "changed") input.messages = "what the handler says";
        return stamp(asked);
    })
    .on(
        "assistants:read",
        (asked: Asked) => ({ $or: [own(asked), { created_by: { $eq: "system" } }] }) as any,
    )
    .on(
        "assistants:search",
        (asked: Asked) => ({ $or: [own(asked), { created_by: { $eq: "system" } }] }) as any,
    )
    .on("store", ({ user, value }: Asked) => {
        value.namespace = [user.identity, ...(value.namespace ?? [])];
    })
    .on(
        "crons:delete",
        (asked: Asked) =>
            (asked.permissions.includes("bad filters")
                ? { owner: { $what: 1 } }
                : own(asked)) as any,
    );
