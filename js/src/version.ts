/**
 * Channel versions: a counter of 32 digits, a dot and a random number, as
 * LangGraph's Python savers write them. The counter orders versions, the random
 * number keeps two branches of one checkpoint apart.
 */

const DIGITS = 32;

/** Always with as many digits: String() writes a small number with an exponent. */
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
 * Threads that an older saver began have whole numbers. LangGraph compares
 * versions with `>`, which is false between a number and a string, so such a
 * thread stays with numbers: the next whole one plus a random fraction, which
 * orders and separates just as well.
 */
export function nextVersion(current: string | number | undefined): string | number {
    if (typeof current === "number") return Math.floor(current) + 1 + Math.random();
    const next = current === undefined || current === null ? 1 : counter(current) + 1;
    return `${String(next).padStart(DIGITS, "0")}.${random()}`;
}
