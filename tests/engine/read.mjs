// Reads a thread that the engine stored (graph script_tools) with the npm saver: messages are
// LangChain's, the chain of checkpoints is whole. Ends with "N passed, N failed".
//
//   node read.mjs URL
import { createRequire } from "node:module";
import { HeddleSaver } from "../../js/dist/index.js";

const require = createRequire(new URL("../../js/package.json", import.meta.url));
const { AIMessage, BaseMessage, HumanMessage, ToolMessage } = require("@langchain/core/messages");

let passed = 0;
let failed = 0;

function check(what, isTrue) {
    console.log(`${isTrue ? "ok" : "failed"}: npm: ${what}`);
    if (isTrue) passed++;
    else failed++;
}

// ESM and CommonJS have separate classes, so the check is LangChain's own.
const isMessage = (value) => BaseMessage.isInstance?.(value) ?? value instanceof BaseMessage;
const kinds = [HumanMessage, AIMessage, ToolMessage].map((each) => each.lc_name());

const saver = HeddleSaver.fromConnString(process.argv[2]);
const config = { configurable: { thread_id: "main", checkpoint_ns: "" } };
try {
    const latest = await saver.getTuple(config);
    const messages = latest?.checkpoint.channel_values.messages ?? [];
    const names = messages.map((message) => message.constructor.lc_name?.());
    check("there are messages", messages.length > 3);
    check("messages are LangChain's", messages.every(isMessage));
    check(
        "of each class",
        kinds.every((kind) => names.includes(kind)),
    );
    check("their text", messages[0]?.content === "weather?");
    const calls = messages.flatMap((message) => message.tool_calls ?? []);
    const answers = messages.filter((message) => message.getType() === "tool");
    check(
        "tool calls",
        calls.length > 0 && calls.every((call) => call.name && call.id && call.args),
    );
    check(
        "answers to them",
        answers.length > 0 &&
            answers.every((a) => calls.some((call) => call.id === a.tool_call_id)),
    );

    const all = [];
    for await (const item of saver.list(config)) all.push(item);
    check("the latest is the first", all[0]?.checkpoint.id === latest?.checkpoint.id);
    check(
        "each has the next one as its parent",
        all.length > 5 &&
            all.every(
                (item, i) =>
                    item.parentConfig?.configurable?.checkpoint_id === all[i + 1]?.checkpoint.id,
            ),
    );
    const writes = all.flatMap((item) => item.pendingWrites ?? []);
    const written = writes
        .filter(([, channel]) => channel === "messages")
        .flatMap(([, , value]) => value);
    check("messages in writes", written.length > 3 && written.every(isMessage));
} finally {
    await saver.close();
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
