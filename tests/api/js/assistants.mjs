import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { beyondPeer, client, refused, unknown } from "./lib.mjs";

describe("assistants", () => {
    test("are made, changed, versioned, deleted", async () => {
        const made = await client.assistants.create({
            graphId: "echo",
            name: "js",
            metadata: { owner: "js" },
            config: { configurable: { user: "a" } },
            description: "d",
        });
        assert.equal(made.version, 1);
        assert.deepEqual([made.graph_id, made.name, made.description], ["echo", "js", "d"]);
        const changed = await client.assistants.update(made.assistant_id, {
            name: "renamed",
            metadata: { more: 1 },
        });
        assert.equal(changed.version, 2);
        assert.deepEqual(changed.metadata, { owner: "js", more: 1 });
        const versions = await client.assistants.getVersions(made.assistant_id);
        assert.deepEqual(
            versions.map((each) => each.version),
            [2, 1],
        );
        assert.equal((await client.assistants.setLatest(made.assistant_id, 1)).name, "js");
        assert.equal((await client.assistants.get(made.assistant_id)).name, "js");
        await client.assistants.delete(made.assistant_id);
        await refused(client.assistants.get(made.assistant_id), 404);
    });

    test("with an id that is taken", async () => {
        const assistantId = crypto.randomUUID();
        await client.assistants.create({ graphId: "echo", assistantId });
        await refused(client.assistants.create({ graphId: "echo", assistantId }), 409);
        const kept = await client.assistants.create({
            graphId: "loop",
            assistantId,
            ifExists: "do_nothing",
        });
        assert.equal(kept.graph_id, "echo");
        await client.assistants.delete(assistantId, { deleteThreads: true });
    });

    test("are found and counted", async () => {
        const metadata = { owner: crypto.randomUUID() };
        for (const graphId of ["echo", "loop", "echo"])
            await client.assistants.create({ graphId, metadata });
        assert.equal((await client.assistants.search({ metadata })).length, 3);
        assert.equal(await client.assistants.count({ metadata, graphId: "echo" }), 2);
        const page = await client.assistants.search({
            metadata,
            limit: 1,
            offset: 1,
            select: ["graph_id"],
        });
        assert.deepEqual(page, [{ graph_id: "loop" }]);
        for (const { assistant_id } of await client.assistants.search({ metadata }))
            await client.assistants.delete(assistant_id);
    });

    test(
        "tell the next page",
        beyondPeer("tells it only when the page is the last and full"),
        async () => {
            const metadata = { owner: crypto.randomUUID() };
            for (let n = 0; n < 3; n++)
                await client.assistants.create({ graphId: "echo", metadata });
            const first = await client.assistants.search({
                metadata,
                limit: 2,
                includePagination: true,
            });
            assert.deepEqual([first.assistants.length, first.next], [2, "2"]);
            const second = await client.assistants.search({
                metadata,
                limit: 2,
                offset: 2,
                includePagination: true,
            });
            assert.deepEqual([second.assistants.length, second.next], [1, null]);
        },
    );

    test("are drawn", async () => {
        const plain = await client.assistants.getGraph("nested");
        assert.deepEqual(plain.nodes.map((node) => node.id).sort(), [
            "__end__",
            "__start__",
            "before",
            "child",
        ]);
        const opened = await client.assistants.getGraph("nested", { xray: true });
        assert.ok(opened.nodes.some((node) => node.id === "child:inner"));
    });

    test(
        "show schemas and subgraphs",
        beyondPeer("reads schemas from TypeScript only"),
        async () => {
            const schemas = await client.assistants.getSchemas("nested");
            assert.deepEqual(Object.keys(schemas.state_schema.properties).sort(), [
                "ask",
                "messages",
            ]);
            assert.deepEqual(Object.keys(await client.assistants.getSubgraphs("nested")), [
                "child",
            ]);
            assert.deepEqual(
                Object.keys(await client.assistants.getSubgraphs("nested", { recurse: true })),
                ["child"],
            );
            assert.deepEqual(
                Object.keys(await client.assistants.getSubgraphs("nested", { namespace: "child" })),
                ["child"],
            );
        },
    );

    test("that are unknown", async () => {
        await refused(client.assistants.get(unknown()), 404);
        await refused(client.assistants.getGraph(unknown()), 404);
        await refused(client.assistants.update(unknown(), { name: "x" }), 404);
        await refused(client.assistants.delete(unknown()), 404);
    });
});
