/** Embeddings by a function of the project, or by a LangChain `Embeddings` object. */
import type { IncomingCall } from "./link.js";

type EmbedTexts = (texts: string[]) => number[][] | Promise<number[][]>;

export class Embedder {
    readonly #embed: EmbedTexts;
    readonly #dims: number | undefined;

    constructor(value: unknown, dims: number | undefined) {
        const { embedDocuments } = (value ?? {}) as { embedDocuments?: EmbedTexts };
        if (typeof embedDocuments === "function")
            this.#embed = (texts) => embedDocuments.call(value, texts);
        else if (typeof value === "function") this.#embed = value as EmbedTexts;
        else
            throw new TypeError(
                "not an embedding function: expected a function of texts or an Embeddings",
            );
        this.#dims = dims;
    }

    async embed(call: IncomingCall): Promise<void> {
        const texts = JSON.parse((call.blobs[0] ?? Buffer.from("[]")).toString("utf8")) as string[];
        const vectors = await this.#embed(texts);
        if (!Array.isArray(vectors) || vectors.length !== texts.length) {
            throw new RangeError(
                `${Array.isArray(vectors) ? vectors.length : "no"} embeddings for ${texts.length} texts`,
            );
        }
        const dims = this.#dims ?? vectors[0]?.length ?? 0;
        const wrong = vectors.find((vector) => vector.length !== dims);
        if (wrong !== undefined)
            throw new RangeError(
                `an embedding has ${wrong.length} numbers, store.index requires ${dims}`,
            );
        const bytes = Buffer.alloc(4 * dims * texts.length);
        vectors.flat().forEach((each, i) => bytes.writeFloatLE(each, 4 * i));
        call.answer({}, [bytes]);
    }
}
