// The route: the part of the URL after '#'.
import { createStore, useStore } from "@/api/store";

export type Route =
    | {
          view: "chat";
          threadId: string | null;
          at: string | null;
          agent: string | null;
          /** In a room: the chat message to show. */
          message?: string | null;
          /** In a room: shows the conversations of its agents in place of the chat. */
          isInner?: boolean;
      }
    | { view: "agents"; assistantId: string | null }
    | { view: "mentions" };

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
    if (first === "mentions") return { view: "mentions" };
    const threadId = first === "t" && second ? second : null;
    return {
        view: "chat",
        threadId,
        at: params.get("at"),
        agent: params.get("agent"),
        message: params.get("message"),
        isInner: params.has("inner"),
    };
}

export function formatRoute(route: Route): string {
    if (route.view === "agents")
        return route.assistantId ? `#/agents/${encodeURIComponent(route.assistantId)}` : "#/agents";
    if (route.view === "mentions") return "#/mentions";
    const params = new URLSearchParams();
    if (route.at) params.set("at", route.at);
    if (route.agent) params.set("agent", route.agent);
    if (route.message) params.set("message", route.message);
    if (route.isInner) params.set("inner", "");
    const query = params.size > 0 ? `?${params}` : "";
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
    where: { at?: string | null; agent?: string | null; message?: string; isInner?: boolean } = {},
) {
    go({ view: "chat", threadId, at: null, agent: null, ...where });
}

/** The address of a chat message in its room. */
export const messageHash = (threadId: string, message: string) =>
    formatRoute({ view: "chat", threadId, at: null, agent: null, message });
