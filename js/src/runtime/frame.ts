/**
 * Frames of the runtime protocol (docs/runtime.md): bytes to frames and back, without any I/O.
 */

export const enum FrameType {
    Call = 1,
    Answer = 2,
    Error = 3,
    Piece = 4,
    Cancel = 5,
    Hold = 6,
    Go = 7,
}

export type Fields = Record<string, unknown>;

/** Text is written as UTF-8. */
export type Blob = string | Uint8Array;

export interface Frame {
    readonly type: FrameType;
    readonly id: number;
    readonly head: Fields;
    readonly blobs: readonly Buffer[];
}

const FIXED = 16;
const MAX_FRAME = 1024 ** 3;
const MAX_HEAD = 64 * 1024 ** 2;
const MAX_BLOBS = 4096;

/** Frames up to this size are sent as one buffer; parts of larger ones are not concatenated. */
const SMALL = 64 * 1024;

/** Thrown when a peer sends an invalid frame: the start of the next one is unknown. */
export class ProtocolError extends Error {
    override name = "ProtocolError";
}

function lengthOf(blob: Blob): number {
    return typeof blob === "string" ? Buffer.byteLength(blob) : blob.byteLength;
}

function writeBlob(target: Buffer, blob: Blob, at: number): void {
    if (typeof blob === "string") target.write(blob, at);
    else target.set(blob, at);
}

function asBuffer(blob: Blob): Buffer {
    if (typeof blob === "string") return Buffer.from(blob);
    return Buffer.from(blob.buffer, blob.byteOffset, blob.byteLength);
}

/** The buffers of a frame, in order. */
export function encodeFrame(
    type: FrameType,
    id: number,
    head: string,
    blobs: readonly Blob[] = [],
): readonly Buffer[] {
    if (blobs.length > MAX_BLOBS)
        throw new RangeError(`message has ${blobs.length} values, the limit is ${MAX_BLOBS}`);
    const headLength = Buffer.byteLength(head);
    const lengths = blobs.map(lengthOf);
    const start = FIXED + 4 * blobs.length + headLength;
    const total = lengths.reduce((sum, length) => sum + length, start);
    if (headLength > MAX_HEAD || total - 4 > MAX_FRAME) throw new RangeError("message too large");
    const isSmall = total <= SMALL;
    const buffer = Buffer.allocUnsafe(isSmall ? total : start);
    buffer.writeUInt32LE(total - 4, 0);
    buffer[4] = type;
    buffer[5] = 0;
    buffer.writeUInt16LE(blobs.length, 6);
    buffer.writeUInt32LE(id, 8);
    buffer.writeUInt32LE(headLength, 12);
    let at = FIXED;
    for (const length of lengths) at = buffer.writeUInt32LE(length, at);
    buffer.write(head, at);
    if (!isSmall) return [buffer, ...blobs.map(asBuffer)];
    at += headLength;
    blobs.forEach((blob, i) => {
        writeBlob(buffer, blob, at);
        at += lengths[i] as number;
    });
    return [buffer];
}

function parseHead(bytes: Buffer): Fields {
    let head: unknown;
    try {
        head = JSON.parse(bytes.toString("utf8"));
    } catch {
        throw new ProtocolError("the head of a frame is not JSON");
    }
    if (typeof head !== "object" || head === null || Array.isArray(head)) {
        throw new ProtocolError("the head of a frame is not an object");
    }
    return head as Fields;
}

function parseFrame(bytes: Buffer): Frame {
    const type = bytes[4] as FrameType;
    const count = bytes.readUInt16LE(6);
    const headLength = bytes.readUInt32LE(12);
    if (type < FrameType.Call || type > FrameType.Go || bytes[5] !== 0)
        throw new ProtocolError("unknown frame type");
    if (count > MAX_BLOBS || headLength > MAX_HEAD)
        throw new ProtocolError("frame exceeds the limits");
    let at = FIXED + 4 * count + headLength;
    if (at > bytes.length) throw new ProtocolError("frame too short");
    const blobs: Buffer[] = [];
    for (let i = 0; i < count; i++) {
        const end = at + bytes.readUInt32LE(FIXED + 4 * i);
        if (end > bytes.length) throw new ProtocolError("frame too short");
        blobs.push(bytes.subarray(at, end));
        at = end;
    }
    if (at !== bytes.length) throw new ProtocolError("frame too long");
    const start = FIXED + 4 * count;
    return {
        type,
        id: bytes.readUInt32LE(8),
        head: parseHead(bytes.subarray(start, start + headLength)),
        blobs,
    };
}

/** Takes bytes as they arrive and returns complete frames. */
export class FrameReader {
    #parts: Buffer[] = [];
    #size = 0;
    /** The bytes of the next frame, including its length field; 0 while unknown. */
    #needed = 0;

    *push(bytes: Buffer): Generator<Frame> {
        this.#parts.push(bytes);
        this.#size += bytes.length;
        while (this.#isComplete()) {
            const all =
                this.#parts.length === 1 ? (this.#parts[0] as Buffer) : Buffer.concat(this.#parts);
            const frame = all.subarray(0, this.#needed);
            const rest = all.subarray(this.#needed);
            this.#parts = rest.length > 0 ? [rest] : [];
            this.#size = rest.length;
            this.#needed = 0;
            yield parseFrame(frame);
        }
    }

    #isComplete(): boolean {
        if (this.#needed === 0) this.#needed = this.#readLength();
        return this.#needed > 0 && this.#size >= this.#needed;
    }

    #readLength(): number {
        if (this.#size < 4) return 0;
        // The first four bytes may arrive in several chunks.
        if ((this.#parts[0] as Buffer).length < 4) this.#parts = [Buffer.concat(this.#parts)];
        const length = (this.#parts[0] as Buffer).readUInt32LE(0);
        if (length > MAX_FRAME || length < FIXED - 4)
            throw new ProtocolError(`invalid frame length: ${length} bytes`);
        return length + 4;
    }
}

/** A member of a head, which may be in a blob as JSON text instead. */
export function member(message: Pick<Frame, "head" | "blobs">, name: string): unknown {
    const value = message.head[name];
    const blob = blobOf(message, value);
    return blob === undefined ? value : (JSON.parse(blob.toString("utf8")) as unknown);
}

function blobOf({ blobs }: Pick<Frame, "blobs">, value: unknown): Buffer | undefined {
    if (typeof value !== "object" || value === null) return undefined;
    const index = (value as Fields).$blob;
    if (typeof index !== "number" || Object.keys(value).length !== 1) return undefined;
    const blob = blobs[index];
    if (blob === undefined) throw new ProtocolError(`message lacks blob ${index}`);
    return blob;
}
