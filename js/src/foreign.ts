/**
 * Encoding details of objects that have another type in JavaScript: kept beside them, so that
 * reading and writing back changes nothing.
 */

/**
 * A value this runtime cannot read, kept and written back unchanged: bytes of another runtime's
 * serializer, or a record of a kind that is newer than this package.
 */
export class ForeignValue {
    readonly #record: Readonly<Record<string, unknown>>;

    /** @internal */
    constructor(record: Readonly<Record<string, unknown>>) {
        this.#record = record;
    }

    /** The kind of the record: `foreign`, or an unknown kind. */
    get kind(): string {
        return this.#record.$ as string;
    }

    /** The writer's serializer tag, such as `msgpack`; undefined for other kinds. */
    get type(): string | undefined {
        return this.kind === "foreign" ? (this.#record.type as string) : undefined;
    }

    /** The writer's bytes; undefined for other kinds. */
    get data(): Uint8Array | undefined {
        return this.kind === "foreign"
            ? Buffer.from(this.#record.v as string, "base64")
            : undefined;
    }

    /** The record as it is stored. */
    toJSON(): Readonly<Record<string, unknown>> {
        return this.#record;
    }
}

/**
 * Plain objects that were read from `send` and `interrupt` records. LangGraph needs plain objects
 * there, so only this set keeps their kind.
 */
const kinds = new WeakMap<object, "send" | "interrupt">();

export function markKind<T extends object>(value: T, kind: "send" | "interrupt"): T {
    kinds.set(value, kind);
    return value;
}

export function kindOf(value: object): "send" | "interrupt" | undefined {
    return kinds.get(value);
}

/**
 * Sets that were frozen sets, and byte arrays that were mutable, in the runtime that wrote them.
 */
const flagged = new WeakSet<object>();

export function flag<T extends object>(value: T): T {
    flagged.add(value);
    return value;
}

export function isFlagged(value: object): boolean {
    return flagged.has(value);
}

/** The source text of a Date: finer than a millisecond, or in another zone. */
const dateTexts = new WeakMap<Date, { time: number; text: string }>();

export function rememberDateText(date: Date, text: string): Date {
    dateTexts.set(date, { time: date.getTime(), text });
    return date;
}

/** The text to write for a valid date: its source text unless the date was changed. */
export function dateText(date: Date): string {
    const known = dateTexts.get(date);
    return known !== undefined && known.time === date.getTime() ? known.text : date.toISOString();
}
