/**
 * The official conformance package under its own name, so that it skips nothing: 718 tests of the
 * contract and 8 of delta channels.
 */
import { deltaChannelHistoryTests, specTest } from "@langchain/langgraph-checkpoint-validation";
import { afterAll, describe, expect } from "vitest";
import { HeddleSaver } from "../../src/index.js";

interface Node {
    readonly type: string;
    readonly tasks?: readonly Node[];
    readonly mode?: string;
    readonly result?: { readonly state?: string } | undefined;
}

function testsOf(node: Node): Node[] {
    return node.type === "test" ? [node] : (node.tasks ?? []).flatMap(testsOf);
}

export function conformance(database: string, freshUrl: () => string): void {
    describe(database, () => {
        let created = 0;
        const initializer = {
            checkpointerName: "HeddleSaver",
            async createCheckpointer() {
                created++;
                const saver = HeddleSaver.fromConnString(freshUrl());
                await saver.setup();
                return saver;
            },
            async destroyCheckpointer(saver: HeddleSaver) {
                await saver.close();
            },
        };
        specTest(initializer as never);
        deltaChannelHistoryTests(initializer as never);

        afterAll(({}, suite) => {
            const tests = testsOf(suite as unknown as Node);
            expect(tests.length).toBe(726);
            expect(tests.filter((test) => test.mode !== "run")).toEqual([]);
            expect(tests.filter((test) => test.result?.state !== "pass")).toEqual([]);
            expect(created).toBeGreaterThan(0);
        });
    });
}
