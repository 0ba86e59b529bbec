import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { client } from "./lib.mjs";

describe("the store", () => {
    const place = `js-${crypto.randomUUID()}`;

    test("keeps, finds and forgets items", async () => {
        await client.store.putItem([place, "a"], "one", { n: 1 });
        await client.store.putItem([place, "b"], "two", { n: 2 }, { index: false });
        const item = await client.store.getItem([place, "a"], "one");
        assert.deepEqual([item.namespace, item.key, item.value], [[place, "a"], "one", { n: 1 }]);
        assert.ok(item.createdAt && item.updatedAt);
        const { items } = await client.store.searchItems([place], {
            filter: { n: { $gt: 1 } },
            limit: 5,
        });
        assert.deepEqual(
            items.map((each) => each.key),
            ["two"],
        );
        await client.store.deleteItem([place, "a"], "one");
        assert.equal(await client.store.getItem([place, "a"], "one"), null);
    });

    test("lists namespaces", async () => {
        for (const path of [["b"], ["c", "deep"], ["c", "deeper"]])
            await client.store.putItem([place, "n", ...path], "k", {});
        const { namespaces } = await client.store.listNamespaces({
            prefix: [place, "n"],
            maxDepth: 3,
        });
        assert.deepEqual(namespaces.map((each) => each[2]).sort(), ["b", "c"]);
    });

    test("refuses dots in labels", async () => {
        await assert.rejects(
            client.store.putItem([place, "a.b"], "k", {}),
            /Invalid namespace label/,
        );
    });
});
