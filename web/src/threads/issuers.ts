// The aliases of issuers that somebody may belong to, as far as the page can tell: a way to sign in
// is called as its issuer unless it was given a name of its own. Others can be typed.
import type { Settings } from "@/api/heddle";
import { session } from "@/api/session";
import { issuerOf } from "@/signin/person";

/** The user's own first, if it is known. */
export function knownIssuers(settings: Settings | null): { own: string; all: string[] } {
    const { token, way } = session.get();
    const ways = settings?.sign_in ?? [];
    const isKey = token?.startsWith("hdk_") ?? false;
    const url = token && !isKey ? issuerOf(token) : null;
    const own = isKey ? "key" : (way ?? ways.find((one) => one.issuer === url)?.name ?? "");
    return { own, all: [...new Set([...ways.map((one) => one.name), "key"])] };
}
