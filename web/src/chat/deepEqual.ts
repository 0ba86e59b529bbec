// Compares two JSON values. States arrive as new objects with equal content; equal values are not
// rendered again. Pure.

function isObject(value: unknown): value is Record<string, unknown> {
    return value !== null && typeof value === "object";
}

export function deepEqual(a: unknown, b: unknown): boolean {
    if (Object.is(a, b)) return true;
    if (!isObject(a) || !isObject(b) || Array.isArray(a) !== Array.isArray(b)) return false;
    if (Array.isArray(a) && a.length !== (b as unknown as unknown[]).length) return false;
    const keys = Object.keys(a);
    if (keys.length !== Object.keys(b).length) return false;
    return keys.every((key) => key in b && deepEqual(a[key], b[key]));
}
