// A conversation: header, messages, composer, and a drawer with branches, state and graph.
import { useEffect, useRef, useState } from "react";
import { flushSync } from "react-dom";
import { AgentPicker } from "@/agents/AgentPicker";
import { newId } from "@/api/ids";
import { BranchNotice } from "@/branches/BranchNotice";
import { Composer } from "@/chat/Composer";
import { Conversation } from "@/chat/Conversation";
import { OpenThreadProvider } from "@/chat/openThread";
import { useKind } from "@/room/gate";
import { ThreadHead } from "@/threads/ThreadHead";
import { IconButton } from "@/ui/Button";
import { small, useMatches } from "@/ui/media";
import { Drawer, type DrawerName } from "./Drawer";
import { lazyPart } from "./lazyPart";
import styles from "./ChatView.module.css";

interface PanelProps {
    /** Called when the user selects something in the panel that changes the conversation. */
    onChosen(): void;
}

const panels = {
    tree: lazyPart<PanelProps>(() =>
        import("@/branches/TreePanel").then((module) => module.TreePanel),
    ),
    state: lazyPart<PanelProps>(() =>
        import("@/inspect/StatePanel").then((module) => module.StatePanel),
    ),
    graph: lazyPart<PanelProps>(() =>
        import("@/agents/GraphPanel").then((module) => module.GraphPanel),
    ),
};

const titles: Record<DrawerName, string> = { tree: "Branches", state: "State", graph: "Graph" };

const RoomView = lazyPart(() => import("@/room/RoomView").then((module) => module.RoomView));

interface ChatViewProps {
    threadId: string | null;
    at: string | null;
    agent: string | null;
    message: string | null;
    isInner: boolean;
    onMenu(): void;
}

/**
 * A new conversation has its id before the thread exists, so that sending the first message
 * remounts nothing.
 */
function useThreadId(requested: string | null): { id: string; isNew: boolean } {
    const made = useRef<string | null>(null);
    const [fresh, setFresh] = useState(() => newId());
    useEffect(() => {
        // Back at "new" after a thread was created: use another id.
        if (requested === null && made.current === fresh) {
            made.current = null;
            setFresh(newId());
        } else if (requested === fresh) {
            made.current = fresh;
        }
    }, [requested, fresh]);
    return { id: requested ?? fresh, isNew: requested === null };
}

/** A room, or a conversation with agents. */
export function ChatView({ threadId, message, isInner, ...rest }: ChatViewProps) {
    const { id, isNew } = useThreadId(threadId);
    const kind = useKind(id, isNew);
    // Here, so that a panel stays open while the next thread is looked up.
    const [panel, setPanel] = useState<DrawerName | null>(null);
    if (kind === null) return null;
    if (kind === "room" && !isInner)
        return <RoomView key={id} threadId={id} message={message} onMenu={rest.onMenu} />;
    return <AgentsChat id={id} isNew={isNew} open={panel} setOpen={setPanel} {...rest} />;
}

interface AgentsChatProps extends Pick<ChatViewProps, "at" | "agent" | "onMenu"> {
    id: string;
    isNew: boolean;
    /** The panel beside the conversation. */
    open: DrawerName | null;
    setOpen(panel: DrawerName | null): void;
}

function AgentsChat({ id, isNew, open, setOpen, at, agent, onMenu }: AgentsChatProps) {
    const Panel = open ? panels[open] : null;
    const tools = useRef<HTMLElement>(null);
    // Hidden controls must not receive the focus.
    const isCovered = useMatches(small) && open !== null;
    const close = () => {
        flushSync(() => setOpen(null));
        tools.current?.querySelector<HTMLElement>(`[data-drawer="${open}"]`)?.focus();
    };

    return (
        <OpenThreadProvider key={id} threadId={id} isNew={isNew} at={at} agent={agent}>
            <header className={styles.head} inert={isCovered}>
                <IconButton
                    icon="menu"
                    label="Conversations"
                    tip="left"
                    className={styles.menu}
                    onClick={onMenu}
                />
                <ThreadHead />
                <nav ref={tools} className={styles.tools} aria-label="Panels">
                    {(Object.keys(titles) as DrawerName[]).map((name) => (
                        <IconButton
                            key={name}
                            icon={name === "state" ? "inspect" : name}
                            label={titles[name]}
                            tip="right"
                            data-drawer={name}
                            aria-pressed={open === name}
                            onClick={() => setOpen(open === name ? null : name)}
                        />
                    ))}
                </nav>
            </header>
            <div className={styles.body}>
                <section
                    className={styles.conversation}
                    aria-label="Conversation"
                    inert={isCovered}
                >
                    <Conversation />
                    <div className={styles.foot}>
                        <BranchNotice />
                        <Composer picker={<AgentPicker />} />
                    </div>
                </section>
                {open && Panel && (
                    <Drawer title={titles[open]} onClose={close}>
                        <Panel onChosen={() => isCovered && close()} />
                    </Drawer>
                )}
            </div>
        </OpenThreadProvider>
    );
}
