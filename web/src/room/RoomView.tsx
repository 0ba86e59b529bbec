// A room: header, chat messages, composer, and a drawer with people or search results.
import { useEffect, useRef, useState } from "react";
import { flushSync } from "react-dom";
import chatStyles from "@/app/ChatView.module.css";
import { Drawer } from "@/app/Drawer";
import { go, goToThread } from "@/app/route";
import { reasonOf, statusOf } from "@/api/client";
import { RecordHead } from "@/threads/ThreadHead";
import type { ThreadRecord } from "@/threads/records";
import { Button, IconButton } from "@/ui/Button";
import { ErrorState } from "@/ui/ErrorState";
import type { IconName } from "@/ui/icons";
import { small, useMatches } from "@/ui/media";
import type { MenuItem } from "@/ui/Menu";
import { toast } from "@/ui/toast";
import { CascadeBar } from "./CascadeBar";
import { RoomProvider, useOpenRoom, useRoomAccess, useSession } from "./context";
import { exportRoom } from "./exportRoom";
import { Face } from "./Face";
import { PeoplePanel } from "./PeoplePanel";
import { RoomComposer } from "./RoomComposer";
import { RoomLog } from "./RoomLog";
import styles from "./RoomView.module.css";
import { SearchPanel } from "./SearchPanel";
import { SettingsDialog } from "./SettingsDialog";
import { runningOf } from "./session";
import type { ChatMessage } from "./types";

interface RoomViewProps {
    threadId: string;
    /** The chat message that the address names. */
    message: string | null;
    onMenu(): void;
}

type PanelName = "people" | "search";
const titles: Record<PanelName, string> = { people: "People", search: "Search" };
const icons: Record<PanelName, IconName> = { people: "people", search: "search" };

export function RoomView({ threadId, ...rest }: RoomViewProps) {
    return (
        <RoomProvider threadId={threadId}>
            <Inside {...rest} />
        </RoomProvider>
    );
}

const failed = (what: string) => (error: unknown) =>
    void toast(`${what} ${reasonOf(error)}`, { kind: "error" });

function Head({ onSettings }: { onSettings(): void }) {
    const { threadId } = useSession();
    const { state, error } = useOpenRoom();
    const { canWrite } = useRoomAccess();
    const itemsFor = (record: ThreadRecord): MenuItem[] => [
        ...(canWrite
            ? [{ label: "Room settings", icon: "edit", onSelect: onSettings } as const]
            : []),
        {
            label: "Agents’ conversations",
            icon: "agents",
            onSelect: () => goToThread(threadId, { isInner: true }),
        },
        {
            label: "Export as Markdown",
            icon: "download",
            onSelect: () => void exportRoom(record, "md").catch(failed("Not exported.")),
        },
        {
            label: "Export as JSON",
            icon: "download",
            onSelect: () => void exportRoom(record, "json").catch(failed("Not exported.")),
        },
    ];
    return (
        <RecordHead
            threadId={threadId}
            exists
            isMissing={statusOf(error) === 404}
            isWorking={runningOf(state).length > 0}
            itemsFor={itemsFor}
        />
    );
}

function Here() {
    const { room, state } = useOpenRoom();
    const others = state.present.filter((one) => one.id !== room?.me.id);
    if (others.length === 0) return null;
    const names = others.map((one) => one.name).join(", ");
    return (
        <div className={styles.here} role="img" aria-label={`Here now: ${names}`} title={names}>
            {others.slice(0, 5).map((one) => (
                <Face key={one.id} sender={one} size="small" isHere />
            ))}
        </div>
    );
}

/** The room could not be loaded. */
function Problem({ error }: { error: unknown }) {
    const isMissing = statusOf(error) === 404;
    return (
        <ErrorState
            icon={isMissing ? "search" : "warning"}
            title={isMissing ? "Conversation not found" : "The room could not be loaded"}
            text={
                isMissing
                    ? "It was deleted, has expired, or is not shared with you."
                    : reasonOf(error)
            }
        >
            <Button kind="primary" icon="plus" onClick={() => goToThread(null)}>
                New conversation
            </Button>
        </ErrorState>
    );
}

/** The message of the address: loaded, shown and marked. */
function useTarget(message: string | null): (id: string) => void {
    const session = useSession();
    const { room } = useOpenRoom();
    const isLoaded = room !== null;
    useEffect(() => {
        if (!message || !isLoaded) return;
        session
            .reach(message)
            .then(
                (has) => !has && toast("This message does not exist.", { kind: "error" }),
                failed("This message could not be shown."),
            );
    }, [message, isLoaded, session]);
    return (id) =>
        go({ view: "chat", threadId: session.threadId, at: null, agent: null, message: id });
}

function Inside({ message, onMenu }: Omit<RoomViewProps, "threadId">) {
    const { room, error } = useOpenRoom();
    const [open, setOpen] = useState<PanelName | null>(null);
    const [isSetting, setSetting] = useState(false);
    const [replyTo, setReplyTo] = useState<ChatMessage | null>(null);
    const tools = useRef<HTMLElement>(null);
    const isCovered = useMatches(small) && open !== null;
    const goToMessage = useTarget(message);
    const close = () => {
        flushSync(() => setOpen(null));
        tools.current?.querySelector<HTMLElement>(`[data-drawer="${open}"]`)?.focus();
    };
    const showMessage = (id: string) => {
        if (isCovered) close();
        goToMessage(id);
    };

    return (
        <>
            <header className={chatStyles.head} inert={isCovered}>
                <IconButton
                    icon="menu"
                    label="Conversations"
                    tip="left"
                    className={chatStyles.menu}
                    onClick={onMenu}
                />
                <Head onSettings={() => setSetting(true)} />
                <Here />
                <nav ref={tools} className={chatStyles.tools} aria-label="Panels">
                    {(Object.keys(titles) as PanelName[]).map((name) => (
                        <IconButton
                            key={name}
                            icon={icons[name]}
                            label={titles[name]}
                            tip="right"
                            data-drawer={name}
                            aria-pressed={open === name}
                            onClick={() => setOpen(open === name ? null : name)}
                        />
                    ))}
                </nav>
            </header>
            <div className={chatStyles.body}>
                <section
                    className={chatStyles.conversation}
                    aria-label="Conversation"
                    inert={isCovered}
                >
                    {error !== null && room === null ? (
                        <Problem error={error} />
                    ) : (
                        <RoomLog target={message} onGo={goToMessage} onReply={setReplyTo} />
                    )}
                    <div className={chatStyles.foot}>
                        <CascadeBar />
                        <RoomComposer replyTo={replyTo} onReplyTo={setReplyTo} />
                    </div>
                </section>
                {open && (
                    <Drawer title={titles[open]} onClose={close}>
                        {open === "people" ? (
                            <PeoplePanel onSettings={() => setSetting(true)} />
                        ) : (
                            <SearchPanel onGo={showMessage} />
                        )}
                    </Drawer>
                )}
            </div>
            {isSetting && room && <SettingsDialog room={room} onClose={() => setSetting(false)} />}
        </>
    );
}
