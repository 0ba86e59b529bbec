/**
 * The connection to the server: calls in both directions.
 *
 * Frames produced in one turn of the event loop are sent in one write.
 */
import type { Socket } from "node:net";
import {
    encodeFrame,
    FrameReader,
    FrameType,
    type Blob,
    type Fields,
    type Frame,
} from "./frame.js";

export interface Message {
    readonly head: Fields;
    readonly blobs: readonly Buffer[];
}

/** The server's error response. */
export class RemoteError extends Error {
    override name = "RemoteError";
    readonly code: string;

    constructor(head: Fields) {
        super(typeof head.message === "string" ? head.message : "the server reports an error");
        this.code = typeof head.code === "string" ? head.code : "internal";
        if (typeof head.type === "string") this.name = head.type;
        // The stack of the reader is irrelevant.
        this.stack = `${this.name}: ${this.message}`;
    }
}

/** The error of a call that cannot complete because the connection is closed. */
export class Disconnected extends Error {
    override name = "Disconnected";
}

interface Waiting {
    readonly resolve: (message: Message) => void;
    readonly reject: (error: Error) => void;
    readonly onPiece: ((message: Message) => void) | undefined;
}

export interface CallOptions {
    readonly blobs?: readonly Blob[];
    readonly onPiece?: (message: Message) => void;
    /** Aborting it notifies the server; the call still ends with a response. */
    readonly signal?: AbortSignal;
}

/** Handles a call of the server; a thrown error becomes the response. */
export type Handler = (call: IncomingCall) => Promise<void>;

const MAX_ID = 0xffff_ffff;

/** Up to this size buffers are concatenated, because one write is faster than many. */
const SMALL = 64 * 1024;

export class Link {
    readonly #socket: Socket;
    readonly #reader = new FrameReader();
    readonly #waiting = new Map<number, Waiting>();
    readonly #incoming = new Map<number, IncomingCall>();
    #lastId = 0;
    #queued: Buffer[] = [];
    #isFlushing = false;
    #closed: Error | undefined;
    #received = 0;
    onCall: ((call: IncomingCall) => void) | undefined;
    /** Resolves with the reason when the connection is closed. */
    readonly closed: Promise<Error>;
    #onClose: (error: Error) => void = () => {};

    constructor(socket: Socket) {
        this.#socket = socket;
        this.closed = new Promise((resolve) => (this.#onClose = resolve));
        socket.setNoDelay(true);
        socket.on("data", (bytes: Buffer) => this.#receive(bytes));
        socket.on("error", (error) => this.#close(error));
        socket.on("close", () => this.#close(new Error("the server closed the connection")));
    }

    /** How often data was received. */
    get received(): number {
        return this.#received;
    }

    /** The number of unanswered calls of the server. */
    get busy(): number {
        return this.#incoming.size;
    }

    /** Calls the server. `head` has `op`. */
    call(head: Fields, { blobs, onPiece, signal }: CallOptions = {}): Promise<Message> {
        return new Promise((resolve, reject) => {
            if (this.#closed !== undefined) throw new Disconnected(this.#closed.message);
            const id = this.#nextId();
            this.send(FrameType.Call, id, JSON.stringify(head), blobs);
            if (signal === undefined) {
                this.#waiting.set(id, { resolve, reject, onPiece });
                return;
            }
            const cancel = () => this.send(FrameType.Cancel, id, "{}");
            const ended = () => signal.removeEventListener("abort", cancel);
            this.#waiting.set(id, {
                resolve: (message) => (ended(), resolve(message)),
                reject: (error) => (ended(), reject(error)),
                onPiece,
            });
            if (signal.aborted) cancel();
            else signal.addEventListener("abort", cancel, { once: true });
        });
    }

    /** @internal */
    send(type: FrameType, id: number, head: string, blobs?: readonly Blob[]): void {
        if (this.#closed !== undefined) return;
        this.#queued.push(...encodeFrame(type, id, head, blobs));
        if (this.#isFlushing) return;
        this.#isFlushing = true;
        // Runs after the promises that are ready now, so that their frames are included.
        process.nextTick(this.#flush);
    }

    /** @internal */
    ended(id: number): void {
        this.#incoming.delete(id);
    }

    /** Reports whether the send queue is over its limit. */
    get isFull(): boolean {
        return this.#socket.writableNeedDrain;
    }

    /** Resolves when the send queue is empty. */
    drained(): Promise<void> {
        return new Promise((resolve) => {
            if (!this.isFull || this.#closed !== undefined) return resolve();
            const done = () => {
                this.#socket.off("drain", done).off("close", done);
                resolve();
            };
            this.#socket.on("drain", done).on("close", done);
        });
    }

    /** Sends the queue and closes. */
    end(): Promise<void> {
        return new Promise((resolve) => {
            if (this.#closed !== undefined) return resolve();
            this.#flush();
            this.#socket.end(resolve);
        });
    }

    readonly #flush = (): void => {
        this.#isFlushing = false;
        const buffers = this.#queued;
        if (buffers.length === 0) return;
        this.#queued = [];
        const size = buffers.reduce((sum, buffer) => sum + buffer.length, 0);
        if (size <= SMALL || buffers.length === 1) {
            this.#socket.write(
                buffers.length === 1 ? (buffers[0] as Buffer) : Buffer.concat(buffers, size),
            );
            return;
        }
        this.#socket.cork();
        for (const buffer of buffers) this.#socket.write(buffer);
        this.#socket.uncork();
    };

    #nextId(): number {
        do {
            this.#lastId = this.#lastId === MAX_ID ? 1 : this.#lastId + 1;
        } while (this.#waiting.has(this.#lastId));
        return this.#lastId;
    }

    #receive(bytes: Buffer): void {
        this.#received++;
        try {
            for (const frame of this.#reader.push(bytes)) this.#take(frame);
        } catch (error) {
            this.#socket.destroy();
            this.#close(error as Error);
        }
    }

    #take(frame: Frame): void {
        switch (frame.type) {
            case FrameType.Call: {
                const call = new IncomingCall(this, frame);
                this.#incoming.set(frame.id, call);
                this.onCall?.(call);
                return;
            }
            case FrameType.Answer:
                this.#taken(frame.id)?.resolve(frame);
                return;
            case FrameType.Error:
                this.#taken(frame.id)?.reject(new RemoteError(frame.head));
                return;
            case FrameType.Piece:
                this.#waiting.get(frame.id)?.onPiece?.(frame);
                return;
            case FrameType.Cancel:
                this.#incoming.get(frame.id)?.cancel();
                return;
            case FrameType.Hold:
                this.#incoming.get(frame.id)?.hold(true);
                return;
            case FrameType.Go:
                this.#incoming.get(frame.id)?.go();
                return;
        }
    }

    #taken(id: number): Waiting | undefined {
        const waiting = this.#waiting.get(id);
        this.#waiting.delete(id);
        return waiting;
    }

    #close(error: Error): void {
        if (this.#closed !== undefined) return;
        this.#closed = error;
        for (const { reject } of this.#waiting.values()) reject(new Disconnected(error.message));
        this.#waiting.clear();
        for (const call of this.#incoming.values()) call.cancel();
        this.#onClose(error);
    }
}

/** A call of the server. */
export class IncomingCall implements Message {
    readonly id: number;
    readonly head: Fields;
    readonly blobs: readonly Buffer[];
    readonly #link: Link;
    #abort: AbortController | undefined;
    #isCancelled = false;
    #held: { promise: Promise<void>; release: () => void } | undefined;
    #isEnded = false;
    #isHeard: boolean;
    #counts: Map<string, number> | undefined;

    constructor(link: Link, { id, head, blobs }: Frame) {
        this.#link = link;
        this.#isHeard = head.quiet !== true;
        this.id = id;
        this.head = head;
        this.blobs = blobs;
    }

    get op(): string {
        return String(this.head.op);
    }

    get link(): Link {
        return this.#link;
    }

    get isCancelled(): boolean {
        return this.#isCancelled;
    }

    /**
     * Reports whether chunks have a reader; those of a quiet call have none until the server
     * subscribes.
     */
    get isHeard(): boolean {
        return this.#isHeard;
    }

    /** Aborted when the server no longer needs the response. */
    get signal(): AbortSignal {
        this.#abort ??= new AbortController();
        if (this.#isCancelled) this.#abort.abort();
        return this.#abort.signal;
    }

    /** A name for the n-th operation at a position. */
    nextKey(place: string): string {
        this.#counts ??= new Map();
        const count = (this.#counts.get(place) ?? 0) + 1;
        this.#counts.set(place, count);
        return `${place}#${count}`;
    }

    /** A promise to await before the next chunk; undefined when it may be sent at once. */
    hindrance(): Promise<void> | undefined {
        if (this.#held !== undefined) return this.#held.promise;
        return this.#link.isFull ? this.#link.drained() : undefined;
    }

    piece(head: string, blobs?: readonly Blob[]): void {
        if (!this.#isEnded) this.#link.send(FrameType.Piece, this.id, head, blobs);
    }

    answer(head: Fields = {}, blobs?: readonly Blob[]): void {
        this.#end(FrameType.Answer, head, blobs);
    }

    fail(head: Fields): void {
        this.#end(FrameType.Error, head);
    }

    cancel(): void {
        this.#isCancelled = true;
        this.hold(false);
        this.#abort?.abort();
    }

    go(): void {
        this.#isHeard = true;
        this.hold(false);
    }

    hold(isHeld: boolean): void {
        if (!isHeld) {
            this.#held?.release();
            this.#held = undefined;
        } else if (this.#held === undefined && !this.#isCancelled) {
            let release = () => {};
            const promise = new Promise<void>((resolve) => (release = resolve));
            this.#held = { promise, release };
        }
    }

    #end(type: FrameType, head: Fields, blobs?: readonly Blob[]): void {
        if (this.#isEnded) return;
        this.#isEnded = true;
        this.#link.ended(this.id);
        this.#link.send(type, this.id, JSON.stringify(head), blobs);
    }
}
