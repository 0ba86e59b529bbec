/**
 * The canonical value encoding as a LangGraph serializer.
 */
import { MemorySaver, type SerializerProtocol } from "@langchain/langgraph-checkpoint";
import { decode } from "./decode.js";
import { encode, TooDeep, type EncodeOptions } from "./encode.js";
import { flag, ForeignValue, isFlagged } from "./foreign.js";

/** The tag of values in the canonical encoding. */
export const CANONICAL = "hd1";

/** A serialized value: text when the encoding is ours, bytes otherwise. */
export type Dumped = readonly [type: string, data: string | Uint8Array];

/**
 * Writes values so that Heddle's C core, its Python package and its server read them with their
 * types: messages as messages, a `Send` as a `Send`. Values that the encoding cannot express are
 * kept in the serialization of LangGraph's own serializer; nothing is lost. A plain byte array is
 * stored as it is. Also reads the output of that serializer.
 */
export class CanonicalSerializer implements SerializerProtocol {
    readonly #stock: SerializerProtocol;

    /** @param stock for values that the encoding cannot express; LangGraph's own by default */
    constructor(stock?: SerializerProtocol) {
        this.#stock = stock ?? new MemorySaver().serde;
    }

    async dumpsTyped(data: unknown): Promise<[string, Uint8Array]> {
        const [type, content] = await this.dump(data);
        return [type, typeof content === "string" ? Buffer.from(content) : content];
    }

    async loadsTyped(type: string, data: Uint8Array | string): Promise<unknown> {
        return this.load(type, data);
    }

    /**
     * As dumpsTyped, synchronously where possible. The value is read before
     * this returns.
     * @internal
     **/
    dump(value: unknown, options?: EncodeOptions): Dumped | Promise<Dumped> {
        if (value instanceof ForeignValue && value.type !== undefined) {
            return [value.type, value.data as Uint8Array];
        }
        // A copy: the owner of the bytes may change them.
        if (value instanceof Uint8Array)
            return [isFlagged(value) ? "bytearray" : "bytes", new Uint8Array(value)];
        try {
            const text = encode(value, this.#dumpForeign, options);
            return typeof text === "string" ? [CANONICAL, text] : tag(text);
        } catch (error) {
            if (error instanceof TooDeep) return this.#stock.dumpsTyped(value);
            throw error;
        }
    }

    /**
     * As loadsTyped, synchronously where possible.
     * @internal
     **/
    load(type: string, data: Uint8Array | string): unknown {
        switch (type) {
            case CANONICAL:
                return decode(data, this.#loadForeign);
            case "json":
                return this.#stock.loadsTyped(type, data);
            case "bytes":
                return new Uint8Array(Buffer.from(data as Uint8Array));
            case "bytearray":
                return flag(new Uint8Array(Buffer.from(data as Uint8Array)));
            case "null":
                return null;
            default:
                return new ForeignValue({
                    $: "foreign",
                    type,
                    v: Buffer.from(data as never).toString("base64"),
                });
        }
    }

    readonly #dumpForeign = (value: unknown): Promise<[string, Uint8Array]> =>
        this.#stock.dumpsTyped(value);

    readonly #loadForeign = (type: string, data: Uint8Array): Promise<unknown> =>
        this.#stock.loadsTyped(type, data) as Promise<unknown>;
}

async function tag(text: Promise<string>): Promise<Dumped> {
    return [CANONICAL, await text];
}
