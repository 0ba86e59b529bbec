// Reads the claims of a token for display only: the server decides. Pure.

export interface Person {
    /** The display name. */
    name: string;
    /** Other claims that identify the user. */
    detail: string;
    /** Equal for two tokens of the same user. */
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
        // Never the secret itself: a key is shown as "API key".
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

/** When a token expires, in milliseconds; null: no `exp` claim. */
export function expiryOf(token: string): number | null {
    const exp = claimsOf(token)?.exp;
    return typeof exp === "number" ? exp * 1000 : null;
}

/** The `iss` claim of a token. */
export function issuerOf(token: string): string | null {
    const iss = claimsOf(token)?.iss;
    return typeof iss === "string" ? iss : null;
}
