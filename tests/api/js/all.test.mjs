// All suites in one process, so that the last test can look back on what was called.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { RESOURCES, beyondPeer, called, methods } from "./lib.mjs";
import "./assistants.mjs";
import "./threads.mjs";
import "./runs.mjs";
import "./streams.mjs";
import "./store.mjs";
import "./crons.mjs";
import "./branching.mjs";
import "./rooms.mjs";

// Methods that these tests do not call, with the reason.
const LEFT_OUT = { "threads.stream": "the thread-centric protocol has tests of its own" };

describe("the client", () => {
    test(
        "has no method that was not called",
        beyondPeer("not every method has something to call there"),
        () => {
            const wanted = RESOURCES.flatMap((resource) =>
                methods(resource).map((name) => `${resource}.${name}`),
            );
            assert.ok(wanted.length > 40, `only ${wanted.length} methods found`);
            assert.deepEqual(
                wanted.filter((name) => !called.has(name) && !(name in LEFT_OUT)),
                [],
            );
        },
    );
});
