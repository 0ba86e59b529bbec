// Parses invitation links and codes. Pure.

/** The token of a link, of its part after '#', or the token itself; null: none of them. */
export function tokenOf(text: string): string | null {
    const named = /[#?&](?:invitation|token)=([\w-]+)(?=[&#\s]|$)/.exec(text)?.[1];
    return named ?? /^\s*([\w-]{16,})\s*$/.exec(text)?.[1] ?? null;
}
