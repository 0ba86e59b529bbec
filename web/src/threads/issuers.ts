// Known aliases of issuers: a sign-in method has the name of its issuer unless it is configured
// with another one. Other aliases can be typed.
import type { Settings } from "@/api/heddle";
import { session } from "@/api/session";
import { issuerOf } from "@/signin/person";

/** The user's own issuer first, if known. */
export function knownIssuers(settings: Settings | null): { own: string; all: string[] } {
    const { token, way: method } = session.get();
    const methods = settings?.sign_in ?? [];
    const isKey = token?.startsWith("hdk_") ?? false;
    const url = token && !isKey ? issuerOf(token) : null;
    const own = isKey ? "key" : (method ?? methods.find((one) => one.issuer === url)?.name ?? "");
    return { own, all: [...new Set([...methods.map((one) => one.name), "key"])] };
}
