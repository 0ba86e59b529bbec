/** The frames of docs/runtime.md. */
import { describe, expect, it } from "vitest";
import {
    encodeFrame,
    FrameReader,
    FrameType,
    member,
    ProtocolError,
    type Frame,
} from "../src/runtime/frame.js";

function bytesOf(...args: Parameters<typeof encodeFrame>): Buffer {
    return Buffer.concat(encodeFrame(...args));
}

function framesIn(...parts: Buffer[]): Frame[] {
    const reader = new FrameReader();
    return parts.flatMap((part) => [...reader.push(part)]);
}

// Length, type, 0, blobs, id, length of the head, lengths of the blobs, head, blobs.
const EXAMPLE = Buffer.from(
    "1f000000" +
        "04" +
        "00" +
        "0200" +
        "07000000" +
        "07000000" +
        "02000000" +
        "02000000" +
        "7b2261223a317d" +
        "c3a9" +
        "00ff",
    "hex",
);

describe("a frame", () => {
    it("is written as documented", () => {
        expect(bytesOf(FrameType.Piece, 7, '{"a":1}', ["é", new Uint8Array([0, 255])])).toEqual(
            EXAMPLE,
        );
    });

    it("is read as documented", () => {
        const [frame, ...others] = framesIn(EXAMPLE);
        expect(others).toEqual([]);
        expect(frame).toMatchObject({ type: FrameType.Piece, id: 7, head: { a: 1 } });
        expect(frame!.blobs.map((blob) => blob.toString("hex"))).toEqual(["c3a9", "00ff"]);
    });

    it("is read from chunks of any size", () => {
        const bytes = Buffer.concat([EXAMPLE, bytesOf(FrameType.Answer, 1, "{}"), EXAMPLE]);
        for (let size = 1; size <= bytes.length; size++) {
            const parts = [];
            for (let at = 0; at < bytes.length; at += size)
                parts.push(bytes.subarray(at, at + size));
            expect(framesIn(...parts).map(({ type, id }) => [type, id])).toEqual([
                [FrameType.Piece, 7],
                [FrameType.Answer, 1],
                [FrameType.Piece, 7],
            ]);
        }
    });

    it("carries large messages", () => {
        const large = Buffer.alloc(3_000_000, "x");
        const many = Array.from({ length: 4096 }, (_, i) => String(i));
        const [first, second] = framesIn(
            bytesOf(FrameType.Call, 1, "{}", [large, "é"]),
            bytesOf(FrameType.Call, 2, "{}", many),
        );
        expect(first!.blobs[0]!.equals(large)).toBe(true);
        expect(first!.blobs[1]!.toString()).toBe("é");
        expect(second!.blobs.map(String)).toEqual(many);
        expect(() => encodeFrame(FrameType.Call, 1, "{}", [...many, ""])).toThrow(RangeError);
    });

    const changed = (change: (bytes: Buffer) => void) => {
        const bytes = Buffer.from(EXAMPLE);
        change(bytes);
        return bytes;
    };
    it.each([
        ["a type that does not exist", changed((bytes) => bytes.writeUInt8(8, 4))],
        ["type 0", changed((bytes) => bytes.writeUInt8(0, 4))],
        ["a byte that is not 0", changed((bytes) => bytes.writeUInt8(1, 5))],
        ["too many blobs", changed((bytes) => bytes.writeUInt16LE(4097, 6))],
        ["more blobs than it has room for", changed((bytes) => bytes.writeUInt16LE(9, 6))],
        ["a head beyond its end", changed((bytes) => bytes.writeUInt32LE(100, 12))],
        ["a blob beyond its end", changed((bytes) => bytes.writeUInt32LE(3, 20))],
        ["bytes after the last blob", changed((bytes) => bytes.writeUInt32LE(1, 20))],
        ["a head that is no JSON", changed((bytes) => bytes.writeUInt8(0x5b, 24))],
        ["more than 1 GiB", changed((bytes) => bytes.writeUInt32LE(0x40000001, 0))],
        ["less than a frame", changed((bytes) => bytes.writeUInt32LE(11, 0))],
        ["a head that is a list", bytesOf(FrameType.Call, 1, "[]")],
    ])("is refused with %s", (_what, bytes) => {
        expect(() => framesIn(bytes)).toThrow(ProtocolError);
    });

    it("has members in blobs", () => {
        const [frame] = framesIn(
            bytesOf(FrameType.Call, 1, '{"a":{"$blob":0},"b":{"$blob":0,"c":1},"d":{"$blob":4}}', [
                '{"x":1}',
            ]),
        );
        expect(member(frame!, "a")).toEqual({ x: 1 });
        expect(member(frame!, "b")).toEqual({ $blob: 0, c: 1 });
        expect(() => member(frame!, "d")).toThrow(ProtocolError);
        expect(member(frame!, "e")).toBe(undefined);
    });
});
