// The whole page: session, sidebar, and the view that the route names.
import { useEffect, useState } from "react";
import { loadAssistants } from "@/api/assistants";
import { session } from "@/api/session";
import { useStore } from "@/api/store";
import { SignInGate } from "@/signin/SignInGate";
import { Sidebar } from "@/threads/Sidebar";
import { Toasts } from "@/ui/toast";
import styles from "./App.module.css";
import { Boundary } from "./Boundary";
import { ConnectionBanner } from "./ConnectionBanner";
import { lazyPart } from "./lazyPart";
import { useRoute } from "./route";
import { ChatView } from "./ChatView";

const AgentsView = lazyPart(() =>
    import("@/agents/AgentsView").then((module) => module.AgentsView),
);

const MentionsView = lazyPart(() =>
    import("@/room/MentionsView").then((module) => module.MentionsView),
);

function Views({ onMenu }: { onMenu(): void }) {
    const route = useRoute();
    if (route.view === "agents") {
        return <AgentsView assistantId={route.assistantId} onMenu={onMenu} />;
    }
    if (route.view === "mentions") return <MentionsView onMenu={onMenu} />;
    return (
        <ChatView
            threadId={route.threadId}
            at={route.at}
            agent={route.agent}
            message={route.message ?? null}
            isInner={route.isInner ?? false}
            onMenu={onMenu}
        />
    );
}

function Inside() {
    const [isSideOpen, setSideOpen] = useState(false);
    const route = useRoute();
    const { token } = useStore(session);

    useEffect(() => void loadAssistants(), [token]);
    useEffect(() => setSideOpen(false), [route]); // on a phone the list covers the view

    return (
        <div className={styles.frame} data-side={isSideOpen ? "open" : "closed"}>
            <a
                className={styles.skip}
                href="#main"
                onClick={(event) => {
                    event.preventDefault();
                    document.getElementById("main")?.focus();
                }}
            >
                Skip to the conversation
            </a>
            <Sidebar isOpen={isSideOpen} onClose={() => setSideOpen(false)} />
            {isSideOpen && <div className={styles.veil} onClick={() => setSideOpen(false)} />}
            <main id="main" className={styles.main} tabIndex={-1}>
                <ConnectionBanner />
                <Views onMenu={() => setSideOpen(true)} />
            </main>
            <Toasts />
        </div>
    );
}

export function App() {
    return (
        <Boundary>
            <SignInGate>
                <Inside />
            </SignInGate>
        </Boundary>
    );
}
