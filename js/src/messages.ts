/**
 * Converts messages to records and back.
 *
 * The class of a message is determined once per constructor, by its serialization id and not by
 * `instanceof`: a program may hold two copies of @langchain/core. A user's subclass has another id
 * and is left to the stock serializer, as is a message constructed with fields the encoding has no
 * member for.
 */
import {
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    ChatMessageChunk,
    FunctionMessage,
    FunctionMessageChunk,
    HumanMessage,
    HumanMessageChunk,
    RemoveMessage,
    SystemMessage,
    SystemMessageChunk,
    ToolMessage,
    ToolMessageChunk,
} from "@langchain/core/messages";

type Fields = Record<string, unknown>;
type Constructor = new (fields: never) => object;

/** One class of messages and the format of its records. */
export interface MessageClass {
    readonly type: string;
    /** `{"$":"message","type":"…","content":` */
    readonly head: string;
    readonly create: Constructor;
    readonly members: readonly Member[];
    /** Constructor fields that a record can express; others make the message foreign. */
    readonly known: ReadonlySet<string>;
    /** Members without which a record of this class is damaged. */
    readonly required: readonly string[];
    readonly isRemove: boolean;
}

interface Member {
    readonly name: string;
    /** `,"name":` */
    readonly head: string;
    readonly omit: Omit;
    /** Reports whether a record can express this value; the message is foreign otherwise. */
    readonly fits: (value: unknown) => boolean;
}

/** When a member is omitted: if it is null, an empty list or object, not set at all; or never. */
type Omit = "null" | "empty" | "undefined" | "never";

function member(name: string, omit: Omit, fits: Member["fits"]): Member {
    return { name, head: `,${JSON.stringify(name)}:`, omit, fits };
}

const isString = (value: unknown) => typeof value === "string";
const isAny = (value: unknown) => value !== undefined;
const isObject = (value: unknown) =>
    typeof value === "object" && value !== null && !Array.isArray(value);
const isObjects = (value: unknown) => Array.isArray(value) && value.every(isObject);
const isStatus = (value: unknown) => value === "success" || value === "error";

function isToolCalls(value: unknown): boolean {
    return (
        isObjects(value) &&
        (value as Fields[]).every(({ name, args }) => isString(name) && isObject(args))
    );
}

const ID = member("id", "null", isString);
const NAME = member("name", "null", isString);
const METADATA = [
    member("additional_kwargs", "empty", isObject),
    member("response_metadata", "empty", isObject),
];

const COMMON = [ID, NAME, ...METADATA];
const REMOVE = [member("id", "never", isString), NAME, ...METADATA];
const FUNCTION = [ID, member("name", "never", isString), ...METADATA];
const CHAT = [...COMMON, member("role", "never", isString)];

const AI = [
    ...COMMON,
    member("tool_calls", "empty", isToolCalls),
    member("invalid_tool_calls", "empty", isObjects),
    member("usage_metadata", "null", isObject),
];

const AI_CHUNK = [
    ...AI,
    member("tool_call_chunks", "empty", isObjects),
    member("chunk_position", "null", isString),
];

// JavaScript's class has no default status or artifact, so a set value is written even if it is the
// default.
const TOOL = [
    ...COMMON,
    member("tool_call_id", "never", isString),
    member("artifact", "undefined", isAny),
    member("status", "undefined", isStatus),
];

function messageClass(type: string, create: Constructor, members: readonly Member[]): MessageClass {
    return {
        type,
        head: `{"$":"message","type":${JSON.stringify(type)},"content":`,
        create,
        members,
        required: members.filter(({ omit }) => omit === "never").map(({ name }) => name),
        known: new Set(["content", "type", ...members.map(({ name }) => name)]),
        isRemove: type === "remove",
    };
}

/** By the name of the class, the last part of its serialization id. */
const BY_NAME = new Map<string, MessageClass>([
    ["HumanMessage", messageClass("human", HumanMessage, COMMON)],
    ["AIMessage", messageClass("ai", AIMessage, AI)],
    ["ToolMessage", messageClass("tool", ToolMessage, TOOL)],
    ["SystemMessage", messageClass("system", SystemMessage, COMMON)],
    ["FunctionMessage", messageClass("function", FunctionMessage, FUNCTION)],
    ["ChatMessage", messageClass("chat", ChatMessage, CHAT)],
    ["RemoveMessage", messageClass("remove", RemoveMessage, REMOVE)],
    ["HumanMessageChunk", messageClass("HumanMessageChunk", HumanMessageChunk, COMMON)],
    ["AIMessageChunk", messageClass("AIMessageChunk", AIMessageChunk, AI_CHUNK)],
    ["ToolMessageChunk", messageClass("ToolMessageChunk", ToolMessageChunk, TOOL)],
    ["SystemMessageChunk", messageClass("SystemMessageChunk", SystemMessageChunk, COMMON)],
    ["FunctionMessageChunk", messageClass("FunctionMessageChunk", FunctionMessageChunk, FUNCTION)],
    ["ChatMessageChunk", messageClass("ChatMessageChunk", ChatMessageChunk, CHAT)],
]);

const BY_TYPE = new Map([...BY_NAME.values()].map((kind) => [kind.type, kind]));

const WHOLE = new Map(
    [...BY_NAME].flatMap(([name, kind]) => {
        const whole = name.endsWith("Chunk")
            ? BY_NAME.get(name.slice(0, -"Chunk".length))
            : undefined;
        return whole === undefined ? [] : [[kind, whole] as const];
    }),
);

const byConstructor = new WeakMap<object, MessageClass | null>();

function classify(value: object): MessageClass | null {
    const id = (value as { lc_id?: unknown }).lc_id;
    const isMessage =
        Array.isArray(id) && id.length === 3 && id[0] === "langchain_core" && id[1] === "messages";
    return (isMessage && BY_NAME.get(id[2] as string)) || null;
}

/** The class of one of LangChain's own messages; null for any other object. */
export function messageClassOf(value: object): MessageClass | null {
    const constructor = value.constructor as object | undefined;
    if (typeof constructor !== "function") return null;
    let kind = byConstructor.get(constructor);
    if (kind === undefined) {
        kind = classify(value);
        byConstructor.set(constructor, kind);
    }
    return kind;
}

/**
 * Reports whether a record can express all constructor fields of this message.
 * @param dropVersions ignores the package versions that tools record in their messages
 **/
export function isExpressible(message: Fields, kind: MessageClass, dropVersions = false): boolean {
    const kwargs = message.lc_kwargs;
    if (typeof kwargs !== "object" || kwargs === null) return false;
    const isDropped = dropVersions && hasVersionsOnly(message.metadata);
    for (const key in kwargs) {
        if (kind.known.has(key) || (kwargs as Fields)[key] === undefined) continue;
        if (!isBlocks(key, message) && !(isDropped && key === "metadata")) return false;
    }
    const { content } = message;
    if (kind.isRemove) return Array.isArray(content) ? content.length === 0 : content === "";
    if (kind.type === "tool" && message.metadata !== undefined && !isDropped) return false;
    return isString(content) || (Array.isArray(content) && content.every(isBlock));
}

function hasVersionsOnly(metadata: unknown): boolean {
    return isObject(metadata) && Object.keys(metadata as object).every((key) => key === "versions");
}

function isBlock(value: unknown): boolean {
    return isString(value) || isObject(value);
}

/** `contentBlocks` of the newer output format repeat `content`. */
function isBlocks(key: string, message: Fields): boolean {
    const metadata = message.response_metadata as Fields | undefined;
    return key === "contentBlocks" && metadata?.output_version === "v1";
}

/** Reports whether the record omits this member. */
export function isOmitted(value: unknown, omit: Omit): boolean {
    if (omit === "never") return false;
    if (value === undefined) return true;
    if (omit === "undefined") return false;
    if (value === null) return true;
    if (omit === "null" || typeof value !== "object") return false;
    if (Array.isArray(value)) return value.length === 0;
    for (const key in value) if (Object.hasOwn(value, key)) return false;
    return true;
}

/**
 * The value of a member of the message; Python's chunk position is among the constructor fields.
 */
export function memberOf(message: Fields, name: string): unknown {
    const value = message[name];
    return value === undefined && name === "chunk_position"
        ? (message.lc_kwargs as Fields)[name]
        : value;
}

/** The class of the complete message of a chunk. */
export function wholeClassOf(kind: MessageClass): MessageClass {
    return WHOLE.get(kind) ?? kind;
}

export function messageClassByType(type: unknown): MessageClass | undefined {
    return BY_TYPE.get(type as string);
}

/** The message of a record whose members are already revived. */
export function createMessage(kind: MessageClass, record: Fields): object {
    const fields: Fields = {};
    for (const key in record) {
        if (key !== "$" && key !== "type" && record[key] !== undefined) fields[key] = record[key];
    }
    if (kind.isRemove) delete fields.content;
    // Passed explicitly, so that the constructor does not parse them out of additional_kwargs.
    if (kind.create === AIMessage) {
        fields.tool_calls ??= [];
        fields.invalid_tool_calls ??= [];
    }
    const message = new kind.create(fields as never) as Fields;
    if (kind.create === AIMessageChunk) restoreChunk(message, record);
    return message;
}

/** The constructor computes some members from others; a record has them all. */
function restoreChunk(message: Fields, record: Fields): void {
    for (const name of ["tool_calls", "invalid_tool_calls", "tool_call_chunks"]) {
        message[name] = record[name] ?? [];
    }
}
