// Converts an assistant to a form and back. Members without a field stay as JSON, so that saving
// loses nothing. Pure.
import type { Assistant } from "@langchain/langgraph-sdk";
import { parseJson } from "@/interrupts/fields";
import { isMembers, type Json, type Members, type ReplyType } from "@/interrupts/question";
import { settingsOf, textOf, type Setting } from "./settings";

export * from "./settings";

export interface Server {
    name: string;
    url: string;
    rest: Members;
}

export interface Rule {
    tool: string;
    replyTypes: ReplyType[];
    description: string;
    rest: Members;
}

export interface Draft {
    name: string;
    description: string;
    graphId: string;
    /** Single-line settings, by their names in the configurable; "" is not set. */
    plain: Record<string, string>;
    servers: Server[];
    agents: Server[];
    /** Other assistants, by id, name or graph. */
    assistants: string[];
    httpTools: string;
    approval: "none" | "all" | "rules";
    rules: Rule[];
    /** Members of the configurable that have no field, as JSON text. */
    other: string;
    /**
     * Members of the configuration besides its configurable, and members around a list of servers.
     */
    configRest: Members;
    mcpRest: Members;
}

export const ALL_REPLY_TYPES: ReplyType[] = ["accept", "edit", "respond", "ignore"];

// ---- reading ------------------------------------------------------------

function serverOf(value: Json): Server | null {
    if (!isMembers(value) || typeof value.url !== "string") return null;
    const { name, url, ...rest } = value;
    if (name !== undefined && typeof name !== "string") return null;
    return { name: textOf(name), url: textOf(url), rest };
}

function serversOf(value: Json | undefined): Server[] | null {
    if (value === undefined || value === null) return [];
    const list = Array.isArray(value) ? value.map(serverOf) : [serverOf(value)];
    return list.every((one) => one !== null) ? list : null;
}

function ruleOf(value: Json): Rule | null {
    if (typeof value === "string")
        return { tool: value, replyTypes: ALL_REPLY_TYPES, description: "", rest: {} };
    if (!isMembers(value) || typeof value.tool !== "string") return null;
    const { tool, allow, description, ...rest } = value;
    const allowed = allow === undefined ? ALL_REPLY_TYPES : allow;
    if (
        !Array.isArray(allowed) ||
        !allowed.every((type) => ALL_REPLY_TYPES.includes(type as ReplyType))
    )
        return null;
    return {
        tool,
        replyTypes: ALL_REPLY_TYPES.filter((type) => allowed.includes(type)),
        description: textOf(description),
        rest,
    };
}

type Policy = Pick<Draft, "approval" | "rules">;

function policyOf(value: Json | undefined): Policy | null {
    if (value === undefined || value === null || value === false)
        return { approval: "none", rules: [] };
    if (value === true) return { approval: "all", rules: [] };
    const rules = Array.isArray(value) ? value.map(ruleOf) : [null];
    return rules.every((rule) => rule !== null) ? { approval: "rules", rules } : null;
}

const isTexts = (value: Json | undefined): value is string[] =>
    Array.isArray(value) && value.every((one) => typeof one === "string");

function plainText(setting: Setting, value: Json): string | null {
    if (value === null) return "";
    if (setting.kind === "text") return typeof value === "string" ? value : null;
    if (setting.kind === "boolean") return typeof value === "boolean" ? String(value) : null;
    if (setting.kind === "json") return JSON.stringify(value, null, 2);
    return typeof value === "number" ? String(value) : null;
}

type Source = Pick<Assistant, "name" | "graph_id" | "config"> & { description?: string | null };

export function draftOf(assistant: Source, schema: unknown): Draft {
    const { configurable: given, ...configRest } = (assistant.config ?? {}) as Members;
    const other: Members = { ...(isMembers(given) ? given : {}) };
    /** Moves a member from the rest to the form if the form supports it. */
    const take = <T>(
        name: string,
        read: (value: Json | undefined) => T | null,
        otherwise: T,
    ): T => {
        const value = read(other[name]);
        if (value === null) return otherwise;
        delete other[name];
        return value;
    };
    const mcp = other.mcp_config;
    const isWrapped = isMembers(mcp) && Array.isArray(mcp.servers);
    const { servers: _servers, ...mcpRest } = isWrapped ? (mcp as Members) : {};
    const servers = take(
        "mcp_config",
        () => serversOf(isWrapped ? (mcp as Members).servers : mcp),
        [],
    );
    const agents = take("a2a", serversOf, []);
    const assistants = take(
        "assistants",
        (value) => (value === undefined || value === null ? [] : isTexts(value) ? value : null),
        [],
    );
    const httpTools = take(
        "http_tools",
        (value) => (value ? JSON.stringify(value, null, 2) : ""),
        "",
    );
    const policy = take<Policy>("approval", policyOf, { approval: "none", rules: [] });
    const plain: Record<string, string> = {};
    for (const setting of settingsOf(schema)) {
        const value = other[setting.name];
        const text = value === undefined ? "" : plainText(setting, value);
        if (text === null) continue;
        plain[setting.name] = text;
        delete other[setting.name];
    }
    return {
        name: assistant.name ?? "",
        description: assistant.description ?? "",
        graphId: assistant.graph_id,
        plain,
        servers,
        agents,
        assistants,
        httpTools,
        ...policy,
        other: Object.keys(other).length > 0 ? JSON.stringify(other, null, 2) : "",
        configRest,
        mcpRest,
    };
}

// ---- writing ------------------------------------------------------------

/** By the name of a setting; "name" and "other" are fields too. */
export type Errors = Record<string, string>;

function readPlain(setting: Setting, text: string): Json | Error {
    if (setting.kind === "text") return text;
    if (setting.kind === "boolean") return text === "true";
    const parsed = parseJson(text);
    if ("error" in parsed)
        return new Error(setting.kind === "json" ? parsed.error : "Enter a number.");
    if (setting.kind === "json") return parsed.value;
    const { value } = parsed;
    if (typeof value !== "number") return new Error("Enter a number.");
    if (setting.kind === "integer" && !Number.isInteger(value))
        return new Error("Enter a whole number.");
    const { minimum, maximum } = setting;
    if (minimum !== null && value < minimum) return new Error(`At least ${minimum}.`);
    return maximum !== null && value > maximum ? new Error(`At most ${maximum}.`) : value;
}

/** Only http and https URLs. */
export function urlError(url: string): string | null {
    if (!url.trim()) return "Enter a URL.";
    return /^https?:\/\/[^\s/]/.test(url.trim())
        ? null
        : "The URL must start with http:// or https://.";
}

function writeServers(list: Server[]): Json[] {
    return list.map(({ name, url, rest }) => ({
        ...(name.trim() ? { name: name.trim() } : {}),
        url: url.trim(),
        ...rest,
    }));
}

function writeRule({ tool, replyTypes, description, rest }: Rule): Json {
    const isPlain =
        replyTypes.length === ALL_REPLY_TYPES.length &&
        !description &&
        Object.keys(rest).length === 0;
    if (isPlain) return tool;
    return {
        tool,
        ...rest,
        ...(replyTypes.length < ALL_REPLY_TYPES.length ? { allow: replyTypes } : {}),
        ...(description ? { description } : {}),
    };
}

function listErrors(draft: Draft): Errors {
    const errors: Errors = {};
    if (!draft.name.trim()) errors.name = "Enter a name.";
    draft.servers.forEach((one, at) => {
        const error = urlError(one.url);
        if (error) errors[`mcp_config.${at}`] = error;
    });
    draft.agents.forEach((one, at) => {
        const error = urlError(one.url);
        if (error) errors[`a2a.${at}`] = error;
    });
    if (draft.approval !== "rules") return errors;
    draft.rules.forEach((rule, at) => {
        if (!rule.tool.trim()) errors[`approval.${at}`] = "Enter the name of a tool.";
        else if (rule.replyTypes.length === 0)
            errors[`approval.${at}`] = "Allow at least one reply.";
    });
    return errors;
}

export type Written = { config: Members } | { errors: Errors };

/** The configuration to save, or the validation errors of the form. */
export function configOf(draft: Draft, schema: unknown): Written {
    const errors = listErrors(draft);
    const configurable: Members = {};
    if (draft.other.trim()) {
        const parsed = parseJson(draft.other);
        if ("error" in parsed) errors.other = parsed.error;
        else if (!isMembers(parsed.value)) errors.other = "Enter a JSON object: { … }.";
        else Object.assign(configurable, parsed.value);
    }
    for (const setting of settingsOf(schema)) {
        const text = draft.plain[setting.name] ?? "";
        if (text.trim() === "") continue;
        const value = readPlain(setting, text);
        if (value instanceof Error) errors[setting.name] = value.message;
        else configurable[setting.name] = value;
    }
    if (draft.httpTools.trim()) {
        const parsed = parseJson(draft.httpTools);
        if ("error" in parsed) errors.http_tools = parsed.error;
        else if (!Array.isArray(parsed.value)) errors.http_tools = "Enter a JSON list: [ … ].";
        else if (parsed.value.length > 0) configurable.http_tools = parsed.value;
    }
    if (draft.servers.length > 0)
        configurable.mcp_config = { ...draft.mcpRest, servers: writeServers(draft.servers) };
    if (draft.agents.length > 0) configurable.a2a = writeServers(draft.agents);
    if (draft.assistants.length > 0) configurable.assistants = draft.assistants;
    if (draft.approval === "all") configurable.approval = true;
    if (draft.approval === "rules" && draft.rules.length > 0)
        configurable.approval = draft.rules.map(writeRule);
    if (Object.keys(errors).length > 0) return { errors };
    return { config: { ...draft.configRest, configurable } };
}

/** The field that a server error belongs to: `config.configurable.NAME…: reason`; "": no field. */
export function fieldOfRefusal(reason: string): string {
    return /^config\.configurable\.([A-Za-z0-9_-]+)/.exec(reason)?.[1] ?? "";
}

/** The assistant that an entry of `assistants` refers to. */
export function resolve<T extends Pick<Assistant, "assistant_id" | "name" | "graph_id">>(
    ref: string,
    list: T[],
): T | undefined {
    return (
        list.find((one) => one.assistant_id === ref) ??
        list.find((one) => one.name === ref) ??
        list.find((one) => one.graph_id === ref)
    );
}
