// Sign-in at an issuer: authorization code with PKCE (RFC 7636). The issuer redirects back with a
// code, which the server exchanges; tokens are never part of a URL.
import { apiRequest } from "@/api/client";
import type { Session } from "@/api/session";
import type { SignInMethod } from "@/api/heddle";
import { go, parseRoute } from "@/app/route";
import { addressOf, challengeOf, encode64, readReturn, type Begun, type Returned } from "./pkce";

interface Given {
    token: string;
    expires_in: number | null;
    refresh_token: string | null;
}

const KEY = "heddle:signing-in";

const random = () => encode64(crypto.getRandomValues(new Uint8Array(32)));

/** Redirects to the issuer. */
export async function begin(method: SignInMethod, remember: boolean): Promise<void> {
    const { origin, pathname, hash } = window.location;
    const begun: Begun = {
        state: random(),
        verifier: random(),
        name: method.name,
        redirectUri: origin + pathname,
        hash,
        remember,
    };
    const address = addressOf(
        method,
        begun.redirectUri,
        begun.state,
        await challengeOf(begun.verifier),
    );
    window.sessionStorage.setItem(KEY, JSON.stringify(begun));
    window.location.assign(address);
}

function takeBegun(): Begun | null {
    try {
        const text = window.sessionStorage.getItem(KEY);
        window.sessionStorage.removeItem(KEY);
        return text ? (JSON.parse(text) as Begun) : null;
    } catch {
        return null;
    }
}

/** Runs once, before the router reads the URL, and removes the parameters from it. */
function takeReturn(): Returned | null {
    const { search, pathname } = window.location;
    if (!/[?&]state=/.test(search)) return null;
    const begun = takeBegun();
    const returned = readReturn(search, begun);
    if (!returned) return null;
    window.history.replaceState(null, "", `${pathname}${begun?.hash ?? ""}`);
    go(parseRoute(begun?.hash ?? ""), true);
    return returned;
}

export const returned = takeReturn();

function sessionOf(method: string, given: Given): Session {
    return {
        token: given.token,
        expires: given.expires_in ? Date.now() + given.expires_in * 1000 : null,
        refreshToken: given.refresh_token,
        way: method,
    };
}

export async function exchange(
    { begun, code, error, issuer }: Returned,
    methods: SignInMethod[],
): Promise<Session> {
    if (error !== null || !begun || code === null)
        throw new Error(error ?? "The issuer returned no authorization code.");
    const method = methods.find((one) => one.name === begun.name);
    if (!method) throw new Error("This sign-in method is no longer available.");
    if (issuer !== null && issuer !== method.issuer)
        throw new Error("The response came from a different issuer."); // RFC 9207
    const body = {
        name: begun.name,
        code,
        code_verifier: begun.verifier,
        redirect_uri: begun.redirectUri,
    };
    return sessionOf(
        begun.name,
        await apiRequest<Given>("/page/token", { method: "POST", body, as: null }),
    );
}

export async function refresh({ way: method, refreshToken }: Session): Promise<Session> {
    const body = { name: method, refresh_token: refreshToken };
    const given = await apiRequest<Given>("/page/token", { method: "POST", body, as: null });
    return sessionOf(method ?? "", {
        ...given,
        refresh_token: given.refresh_token ?? refreshToken,
    });
}
