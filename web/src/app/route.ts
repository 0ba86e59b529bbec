// The route: the part of the URL after '#'.
import { createStore, useStore } from "@/api/store";

export type Route =
    | { view: "chat"; threadId: string | null; at: string | null; agent: string | null }
    | { view: "agents"; assistantId: string | null };

/** Malformed escapes are kept as they are: no URL may break the page. */
function decode(part: string): string {
    try {
        return decodeURIComponent(part);
    } catch {
        return part;
    }
}

export function parseRoute(hash: string): Route {
    const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?");
    const [first, second] = path.split("/").map(decode);
    const params = new URLSearchParams(query);
    if (first === "agents") return { view: "agents", assistantId: second || null };
    const threadId = first === "t" && second ? second : null;
    return { view: "chat", threadId, at: params.get("at"), agent: params.get("agent") };
}

export function formatRoute(route: Route): string {
    if (route.view === "agents")
        return route.assistantId ? `#/agents/${encodeURIComponent(route.assistantId)}` : "#/agents";
    const params = new URLSearchParams();
    if (route.at) params.set("at", route.at);
    if (route.agent) params.set("agent", route.agent);
    const query = route.at || route.agent ? `?${params}` : "";
    return route.threadId ? `#/t/${encodeURIComponent(route.threadId)}${query}` : `#/${query}`;
}

const current = createStore<Route>(parseRoute(window.location.hash));

window.addEventListener("hashchange", () => current.set(parseRoute(window.location.hash)));

export const useRoute = () => useStore(current);

export const getRoute = current.get;

/** Navigates; `replace` adds no entry to the browser's history. */
export function go(route: Route, replace = false) {
    const hash = formatRoute(route);
    if (replace) window.history.replaceState(null, "", hash);
    else if (hash !== window.location.hash) window.history.pushState(null, "", hash);
    else return;
    current.set(route);
}

export function goToThread(
    threadId: string | null,
    where: { at?: string | null; agent?: string | null } = {},
) {
    go({ view: "chat", threadId, at: where.at ?? null, agent: where.agent ?? null });
}
