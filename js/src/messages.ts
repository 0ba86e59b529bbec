/**
 * Messages as records and back.
 *
 * Which class a message has is asked once per constructor, by its serialization
 * id and not by `instanceof`: a program may hold two copies of @langchain/core.
 * A subclass of the user's own has another id and is left to the stock
 * serializer, as is a message constructed with fields the encoding has no
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

/** One class of messages: its name in records and the members beyond the common ones. */
export interface MessageClass {
  readonly type: string;
  /** `{"$":"message","type":"…","content":` */
  readonly head: string;
  readonly create: Constructor;
  readonly members: readonly Member[];
  /** Constructor fields that a record can say; others make the message foreign. */
  readonly known: ReadonlySet<string>;
  readonly isRemove: boolean;
  readonly isChunk: boolean;
}

interface Member {
  readonly name: string;
  /** `,"name":` */
  readonly head: string;
  /** Left out when absent, null, or an empty list or object. */
  readonly omit: "null" | "empty" | "undefined" | "never";
}

function member(name: string, omit: Member["omit"]): Member {
  return { name, head: `,${JSON.stringify(name)}:`, omit };
}

const COMMON = [
  member("id", "null"),
  member("name", "null"),
  member("additional_kwargs", "empty"),
  member("response_metadata", "empty"),
];

const AI = [
  member("tool_calls", "empty"),
  member("invalid_tool_calls", "empty"),
  member("usage_metadata", "null"),
];

const AI_CHUNK = [...AI, member("tool_call_chunks", "empty"), member("chunk_position", "null")];

// JavaScript's class has no default status or artifact, so what was set is written, be it the default.
const TOOL = [
  member("tool_call_id", "never"),
  member("artifact", "undefined"),
  member("status", "undefined"),
];

const CHAT = [member("role", "null")];

function messageClass(type: string, create: Constructor, own: readonly Member[]): MessageClass {
  const members = [...COMMON, ...own];
  return {
    type,
    head: `{"$":"message","type":${JSON.stringify(type)},"content":`,
    create,
    members,
    known: new Set(["content", "type", ...members.map(({ name }) => name)]),
    isRemove: type === "remove",
    isChunk: type.endsWith("Chunk"),
  };
}

/** By the name of the class, the last part of its serialization id. */
const BY_NAME = new Map<string, MessageClass>([
  ["HumanMessage", messageClass("human", HumanMessage, [])],
  ["AIMessage", messageClass("ai", AIMessage, AI)],
  ["ToolMessage", messageClass("tool", ToolMessage, TOOL)],
  ["SystemMessage", messageClass("system", SystemMessage, [])],
  ["FunctionMessage", messageClass("function", FunctionMessage, [])],
  ["ChatMessage", messageClass("chat", ChatMessage, CHAT)],
  ["RemoveMessage", messageClass("remove", RemoveMessage, [])],
  ["HumanMessageChunk", messageClass("HumanMessageChunk", HumanMessageChunk, [])],
  ["AIMessageChunk", messageClass("AIMessageChunk", AIMessageChunk, AI_CHUNK)],
  ["ToolMessageChunk", messageClass("ToolMessageChunk", ToolMessageChunk, TOOL)],
  ["SystemMessageChunk", messageClass("SystemMessageChunk", SystemMessageChunk, [])],
  ["FunctionMessageChunk", messageClass("FunctionMessageChunk", FunctionMessageChunk, [])],
  ["ChatMessageChunk", messageClass("ChatMessageChunk", ChatMessageChunk, CHAT)],
]);

const BY_TYPE = new Map([...BY_NAME.values()].map((kind) => [kind.type, kind]));

const byConstructor = new WeakMap<object, MessageClass | null>();

function classify(value: object): MessageClass | null {
  const id = (value as { lc_id?: unknown }).lc_id;
  const isMessage =
    Array.isArray(id) && id.length === 3 && id[0] === "langchain_core" && id[1] === "messages";
  return (isMessage && BY_NAME.get(id[2] as string)) || null;
}

/** The class of a message of LangChain's own; null for any other object. */
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

/** Whether a record can say everything this message was constructed with. */
export function isExpressible(message: Fields, kind: MessageClass): boolean {
  const kwargs = message.lc_kwargs;
  if (typeof kwargs !== "object" || kwargs === null) return false;
  for (const key in kwargs) {
    if (!kind.known.has(key) && (kwargs as Fields)[key] !== undefined && !isBlocks(key, message)) {
      return false;
    }
  }
  const { content } = message;
  if (kind.isRemove) return Array.isArray(content) ? content.length === 0 : content === "";
  if (kind.type === "tool" && message.metadata !== undefined) return false;
  return typeof content === "string" || Array.isArray(content);
}

/** `contentBlocks` of the newer output format are what `content` holds already. */
function isBlocks(key: string, message: Fields): boolean {
  const metadata = message.response_metadata as Fields | undefined;
  return key === "contentBlocks" && metadata?.output_version === "v1";
}

/** Whether this member is left out of the record. */
export function isOmitted(value: unknown, omit: Member["omit"]): boolean {
  if (omit === "never") return false;
  if (value === undefined) return true;
  if (omit === "undefined") return false;
  if (value === null) return true;
  if (omit === "null" || typeof value !== "object") return false;
  if (Array.isArray(value)) return value.length === 0;
  for (const key in value) if (Object.hasOwn(value, key)) return false;
  return true;
}

/** What a member of the message holds; Python's chunk position lives among the constructor fields. */
export function memberOf(message: Fields, name: string): unknown {
  const value = message[name];
  return value === undefined && name === "chunk_position"
    ? (message.lc_kwargs as Fields)[name]
    : value;
}

export function messageClassByType(type: unknown): MessageClass | undefined {
  return BY_TYPE.get(type as string);
}

/** The message that a record, whose members are revived already, stands for. */
export function createMessage(kind: MessageClass, record: Fields): object {
  const fields: Fields = {};
  for (const key in record) {
    if (key !== "$" && key !== "type" && record[key] !== undefined) fields[key] = record[key];
  }
  if (kind.isRemove) delete fields.content;
  // Given explicitly, so that the constructor does not parse them out of additional_kwargs.
  if (kind.create === AIMessage) {
    fields.tool_calls ??= [];
    fields.invalid_tool_calls ??= [];
  }
  const message = new kind.create(fields as never) as Fields;
  if (kind.isChunk) restoreChunk(kind, message, record);
  return message;
}

/** Constructors of chunks compute some members from others; a record says them all. */
function restoreChunk(kind: MessageClass, message: Fields, record: Fields): void {
  if (kind.create !== AIMessageChunk) return;
  for (const name of ["tool_calls", "invalid_tool_calls", "tool_call_chunks"]) {
    message[name] = record[name] ?? [];
  }
}
