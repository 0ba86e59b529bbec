import { Auth, HTTPException } from "@langchain/langgraph-sdk/auth";

export const auth = new Auth()
    .authenticate((request) => {
        const key = request.headers.get("authorization");
        const path = new URL(request.url).pathname;
        if (key === "Bearer ann") return { identity: "ann", permissions: ["read"], path };
        if (key === "Bearer bob") return "bob" as never;
        if (key === "Bearer nobody") return {} as never;
        if (key === "Bearer broken") throw new TypeError("the auth code is broken");
        throw new HTTPException(401, {
            message: "who are you?",
            headers: { "WWW-Authenticate": "Bearer" },
        });
    })
    .on("threads:create", ({ value, user }) => {
        value.metadata ??= {};
        value.metadata.owner = user.identity;
        return { owner: user.identity };
    })
    .on("threads", ({ user }) => ({ owner: user.identity }))
    .on("store", () => false)
    .on("*", () => {
        throw new HTTPException(403, { message: "not this" });
    });

export default auth;
