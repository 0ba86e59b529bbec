// Parses an interrupt into requests, and encodes the replies in the format that its sender expects.
// Pure.
import type { Interrupt } from "@langchain/langgraph-sdk";
import {
    isMembers,
    type Answer,
    type CallItem,
    type Common,
    type Delegate,
    type FormItem,
    type Item,
    type Json,
    type Members,
    type OtherItem,
    type Question,
    type ReviewItem,
    type ReplyType,
} from "./items";

export * from "./items";

type Part = Omit<Question, "id">;

const textOf = (value: Json | undefined): string => (typeof value === "string" ? value : "");

const single = (item: Item, encode: (answer: Answer) => Json): Part => ({
    items: [item],
    encode: ([answer]) => encode(answer ?? { type: "ignore" }),
});

/** Several interrupts in one: each part gets its own replies. */
function several(parts: Part[], join: (values: Json[]) => Json): Part {
    return {
        items: parts.flatMap((part) => part.items),
        encode: (answers) => {
            let at = 0;
            return join(
                parts.map((part) => part.encode(answers.slice(at, (at += part.items.length)))),
            );
        },
    };
}

function delegateOf(value: Members, around: Delegate | null): Delegate | null {
    const who = value.delegate;
    if (!isMembers(who)) return around;
    return {
        assistantId: textOf(who.assistant_id) || null,
        name: textOf(who.name) || "another agent",
    };
}

function inboxCall(value: Members, request: Members, common: Common): Part {
    const config = isMembers(value.config) ? value.config : {};
    const replyTypes = (["accept", "edit", "respond", "ignore"] as ReplyType[]).filter(
        (type) => config[`allow_${type}`] === true,
    );
    const name = textOf(request.action);
    const item: CallItem = {
        ...common,
        kind: "call",
        form: "inbox",
        name,
        args: request.args ?? {},
        description: textOf(value.description),
        replyTypes,
        rejects: false,
    };
    // Always a list, for a single request too: graphs for Agent Inbox read its first element.
    return single(item, (answer) => {
        if (answer.type === "edit")
            return [{ type: "edit", args: { action: name, args: answer.args } }];
        if (answer.type === "respond") return [{ type: "response", args: answer.text }];
        return answer.type === "value" ? answer.value : [{ type: answer.type, args: null }];
    });
}

/** The allowed decisions of a tool; all by default. */
function decisionsOf(configs: Json | undefined, name: string): Json[] {
    const list = Array.isArray(configs) ? configs : [];
    const found = list.find((config) => isMembers(config) && config.action_name === name);
    const allowed = isMembers(found) ? found.allowed_decisions : undefined;
    return Array.isArray(allowed) ? allowed : ["approve", "edit", "reject"];
}

function decision(request: Members, configs: Json | undefined, common: Common): Part {
    const name = textOf(request.name) || textOf(request.action);
    const allowed = decisionsOf(configs, name);
    const replyTypes: ReplyType[] = [];
    if (allowed.includes("approve")) replyTypes.push("accept");
    if (allowed.includes("edit")) replyTypes.push("edit");
    if (allowed.includes("respond") || allowed.includes("reject")) replyTypes.push("respond");
    if (allowed.includes("reject")) replyTypes.push("ignore");
    const rejects = !allowed.includes("respond");
    const item: CallItem = {
        ...common,
        kind: "call",
        form: "decision",
        name,
        args: request.args ?? request.arguments ?? {},
        description: textOf(request.description),
        replyTypes,
        rejects,
    };
    return single(item, (answer) => {
        if (answer.type === "accept") return { type: "approve" };
        if (answer.type === "edit")
            return { type: "edit", edited_action: { name, args: answer.args } };
        if (answer.type === "respond")
            return { type: rejects ? "reject" : "respond", message: answer.text };
        return answer.type === "value" ? answer.value : { type: "reject" };
    });
}

function review(value: Members, common: Common): Part {
    const item: ReviewItem = {
        ...common,
        kind: "review",
        message: textOf(value.message),
        summary: textOf(value.summary),
        results: Array.isArray(value.results) ? value.results : [],
    };
    return single(item, (answer) => {
        if (answer.type === "accept") return { approved: true };
        if (answer.type === "value") return answer.value;
        return { approved: false, feedback: answer.type === "respond" ? answer.text : "" };
    });
}

function mcpForm(server: string, message: string, request: Json | undefined, common: Common): Part {
    const params = isMembers(request) && isMembers(request.params) ? request.params : {};
    const schema = isMembers(params.requestedSchema) ? params.requestedSchema : {};
    const properties = isMembers(schema.properties) ? schema.properties : {};
    const fields = Object.fromEntries(
        Object.entries(properties).filter(([, field]) => isMembers(field)),
    );
    const item: FormItem = {
        ...common,
        kind: "form",
        server,
        message: textOf(params.message) || message,
        fields: fields as Record<string, Members>,
        required: Array.isArray(schema.required)
            ? schema.required.filter((name) => typeof name === "string")
            : [],
        url: textOf(params.url) || null,
    };
    return single(item, (answer) => {
        if (answer.type === "edit") return { action: "accept", content: answer.args };
        if (answer.type === "value") return answer.value;
        return { action: answer.type === "accept" ? "accept" : "decline" };
    });
}

function mcpInput(value: Members, common: Common): Part {
    const requests = isMembers(value.requests) ? value.requests : {};
    const keys = Object.keys(requests);
    const server = textOf(value.server) || "A server";
    const parts = keys.map((key) => mcpForm(server, textOf(value.message), requests[key], common));
    if (parts.length === 1) return parts[0]!;
    return several(parts, (values) => Object.fromEntries(keys.map((key, i) => [key, values[i]!])));
}

const TEXT_MEMBERS = ["question", "message", "text", "prompt", "description", "query"];

function other(value: Json, common: Common): Part {
    let text = typeof value === "string" ? value : "";
    let rest: Json | undefined = typeof value === "string" ? undefined : value;
    if (isMembers(value)) {
        const { delegate: _delegate, error: _error, type: _type, ...members } = value;
        const textMember = TEXT_MEMBERS.find((name) => typeof members[name] === "string");
        if (textMember) {
            text = textOf(members[textMember]);
            delete members[textMember];
        }
        rest = Object.keys(members).length > 0 ? members : undefined;
    }
    return single({ ...common, kind: "other", text, rest }, (answer) => {
        if (answer.type === "respond") return answer.text;
        if (answer.type === "value") return answer.value;
        return answer.type === "accept" ? true : null;
    });
}

/** A task of another agent that needs input: a text, or cancellation. */
function taskInput(value: Members, common: Common): Part {
    const item: OtherItem = {
        ...common,
        kind: "other",
        text: textOf(value.message),
        rest: undefined,
    };
    return single(item, (answer) => {
        if (answer.type === "respond") return answer.text;
        return answer.type === "value" ? answer.value : { type: "ignore" };
    });
}

function parse(value: Json, around: Delegate | null): Part {
    if (
        Array.isArray(value) &&
        value.length > 0 &&
        value.every((one) => isMembers(one) && isMembers(one.action_request))
    )
        return several(
            value.map((one) => parse(one, around)),
            (values) => values.flat(),
        );
    if (!isMembers(value)) return other(value, { delegate: around, error: null });
    const delegate = delegateOf(value, around);
    const common: Common = { delegate, error: textOf(value.error) || null };
    if (Array.isArray(value.questions) && delegate && value.questions.length > 0)
        return several(
            value.questions.map((one) => parse(one, delegate)),
            (values) => values,
        );
    if (Array.isArray(value.questions) && delegate) {
        const next = Array.isArray(value.next)
            ? value.next.filter((name) => typeof name === "string")
            : [];
        return single({ ...common, kind: "pause", next }, () => true);
    }
    if (isMembers(value.action_request)) return inboxCall(value, value.action_request, common);
    if (Array.isArray(value.action_requests) && value.action_requests.length > 0) {
        const requests = value.action_requests.filter(isMembers);
        const parts = requests.map((request) => decision(request, value.review_configs, common));
        return several(parts, (decisions) => ({ decisions }));
    }
    if (value.type === "review_results") return review(value, common);
    if (value.type === "mcp_input" && isMembers(value.requests)) return mcpInput(value, common);
    if (value.type === "a2a_input_required") return taskInput(value, common);
    return other(value, common);
}

export function questionOf(interrupt: Interrupt, index: number): Question {
    const part = parse((interrupt.value ?? null) as Json, null);
    return { id: interrupt.id ?? String(index), ...part };
}

/** Interrupts of other agents, passed on by this one. */
export function passedOnBy(interrupt: Interrupt): string[] {
    const value = interrupt.value as Json | undefined;
    const who = isMembers(value) ? value.delegate : null;
    const ids = isMembers(who) ? who.interrupt_ids : null;
    return Array.isArray(ids) ? ids.filter((id) => typeof id === "string") : [];
}

/** The actions of an item besides a full reply. */
export function canRespond(item: Item): boolean {
    return item.kind === "call"
        ? item.replyTypes.includes("respond")
        : item.kind === "review" || item.kind === "other";
}

export function canAccept(item: Item): boolean {
    if (item.kind === "call") return item.replyTypes.includes("accept");
    return item.kind === "pause" || item.kind === "review";
}

/** A short name for the subject of a request. */
export function topicOf(item: Item): string {
    if (item.kind === "call") return item.name;
    if (item.kind === "review") return "the review";
    if (item.kind === "form") return item.server;
    return "the question";
}
