/**
 * Channel versions: a counter of 32 digits, a dot and a random number, in the format of LangGraph's
 * Python savers. The counter orders versions, the random number distinguishes two branches of one
 * checkpoint.
 */

const DIGITS = 32;

/** Always the same number of digits: String() writes a small number with an exponent. */
function random(): string {
    return Math.random().toFixed(16);
}

function counter(version: string): number {
    const digits = version.split(".", 1)[0] ?? "";
    if (!/^\d+$/.test(digits))
        throw new TypeError(`not a channel version: ${version.slice(0, 80)}`);
    return Number(digits);
}

/**
 * The version after `current`.
 *
 * Threads started by an older saver have whole numbers. LangGraph compares versions with `>`, which
 * is false between a number and a string, so such a thread keeps numbers: the next whole one plus a
 * random fraction, which also orders and distinguishes.
 */
export function nextVersion(current: string | number | undefined): string | number {
    if (typeof current === "number") return Math.floor(current) + 1 + Math.random();
    const next = current === undefined || current === null ? 1 : counter(current) + 1;
    return `${String(next).padStart(DIGITS, "0")}.${random()}`;
}
