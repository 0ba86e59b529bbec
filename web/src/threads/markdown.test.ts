import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message } from "@langchain/langgraph-sdk";
import { tokenOf } from "./invitationToken";
import { fileNameOf, markdownOf } from "./markdown";

const message = (fields: object) => fields as Message;

test("a conversation as Markdown", () => {
    const messages = [
        { who: "You", message: message({ type: "human", content: "What is the weather?\n" }) },
        {
            who: "agent",
            message: message({
                type: "ai",
                content: "",
                tool_calls: [{ name: "weather", args: { city: "Rome" } }],
            }),
        },
        { who: "Result of weather", message: message({ type: "tool", content: "sunny" }) },
        {
            who: "agent",
            message: message({ type: "ai", content: [{ type: "text", text: "It is sunny." }] }),
        },
    ];
    assert.equal(
        markdownOf("Rome", messages),
        "# Rome\n\n## You\n\nWhat is the weather?\n\n" +
            '## agent\n\nCalls `weather`:\n\n```json\n{\n  "city": "Rome"\n}\n```\n\n' +
            "## Result of weather\n\nsunny\n\n## agent\n\nIt is sunny.\n",
    );
    assert.equal(markdownOf("Empty", []), "# Empty\n");
});

test("names of files", () => {
    assert.equal(fileNameOf("A Twill/Scarf: 2?", "md"), "a-twillscarf-2.md");
    assert.equal(fileNameOf("織機", "json"), "conversation.json");
    assert.equal(fileNameOf("x".repeat(200), "md").length, 63);
});

test("invitations: links, fragments, codes", () => {
    const code = "MTBOXnIoW4O0g05mP3wC1DLZzuYhkhAEI8kvB7Cgv7I";
    assert.equal(tokenOf(`https://h/#/?invitation=${code}`), code);
    assert.equal(tokenOf(`#/?invitation=${code}`), code);
    assert.equal(tokenOf(`/invitations/accept#token=${code}`), code);
    assert.equal(tokenOf(`  ${code}\n`), code);
    for (const text of ["", "hello", "https://h/#/t/1", "two words that are long enough"])
        assert.equal(tokenOf(text), null);
    assert.equal(tokenOf("#/?invitation=%E0%A4%A"), null);
});
