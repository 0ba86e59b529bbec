// Who a token speaks for, as far as it says. Only shown: the server decides. Pure.

export interface Person {
    /** What to call them. */
    name: string;
    /** Everything else that helps to tell them from others. */
    detail: string;
    /** The same for two tokens of one person. */
    id: string;
}

function claimsOf(token: string): Record<string, unknown> | null {
    const [, payload] = token.split(".");
    if (!payload || token.split(".").length !== 3) return null;
    try {
        const bytes = Uint8Array.from(
            atob(payload.replaceAll("-", "+").replaceAll("_", "/")),
            (char) => char.charCodeAt(0),
        );
        const claims: unknown = JSON.parse(new TextDecoder().decode(bytes));
        return claims !== null && typeof claims === "object"
            ? (claims as Record<string, unknown>)
            : null;
    } catch {
        return null;
    }
}

export function personOf(token: string): Person {
    const claims = claimsOf(token);
    if (!claims) {
        // Never the secret itself: of a key only that it is one.
        const name = token.startsWith("hdk_") ? "API key" : "Signed in";
        return { name, detail: name, id: token };
    }
    const text = (name: string) =>
        typeof claims[name] === "string" ? (claims[name] as string) : "";
    const name =
        text("name") || text("preferred_username") || text("email") || text("sub") || "Signed in";
    const detail = [text("email"), text("sub"), text("iss")].filter(Boolean).join(" · ");
    return { name, detail, id: `${text("iss")} ${text("sub")}` };
}

/** When a token ends, in milliseconds; null: it does not say. */
export function expiryOf(token: string): number | null {
    const exp = claimsOf(token)?.exp;
    return typeof exp === "number" ? exp * 1000 : null;
}

/** Who made a token, by its own account. */
export function issuerOf(token: string): string | null {
    const iss = claimsOf(token)?.iss;
    return typeof iss === "string" ? iss : null;
}
