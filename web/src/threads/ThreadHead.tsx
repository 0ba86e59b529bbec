// Title and menu of the conversation.
import { useEffect, useRef, useState, type KeyboardEvent } from "react";
import { reasonOf } from "@/api/client";
import { useOpenThread } from "@/chat/openThread";
import { isRoomKnown } from "@/room/gate";
import { openRoom } from "@/room/start";
import { IconButton } from "@/ui/Button";
import { Menu, type MenuItem } from "@/ui/Menu";
import { toast } from "@/ui/toast";
import { noteThreadChange } from "./changes";
import { DetailsDialog } from "./DetailsDialog";
import { exportThread } from "./export";
import { loadRecord, rename, titleOfRecord, useRecord, type ThreadRecord } from "./records";
import { removeThread } from "./removal";
import { copyThread } from "./copies";
import styles from "./ThreadHead.module.css";

const LONGEST = 200;

function TitleField({ record, onDone }: { record: ThreadRecord; onDone(): void }) {
    const [text, setText] = useState(record.metadata.title ?? "");
    const isOver = useRef(false);
    const save = () => {
        if (isOver.current) return; // the removed field loses the focus
        isOver.current = true;
        onDone();
        const title = text.trim();
        if (title && title !== record.metadata.title)
            rename(record, title).catch((error: unknown) =>
                toast(`Not renamed. ${reasonOf(error)}`, { kind: "error" }),
            );
    };
    const onKeyDown = (event: KeyboardEvent) => {
        if (event.key === "Escape") {
            isOver.current = true;
            onDone();
        } else if (event.key === "Enter" && !event.nativeEvent.isComposing) {
            event.preventDefault();
            save();
        }
    };
    return (
        <input
            className={styles.field}
            aria-label="Title of the conversation"
            autoFocus
            maxLength={LONGEST}
            value={text}
            onFocus={(event) => event.target.select()}
            onChange={(event) => setText(event.target.value)}
            onKeyDown={onKeyDown}
            onBlur={save}
        />
    );
}

/** F2 renames, as in file managers. */
function useF2(isOn: boolean, start: () => void) {
    const run = useRef(start);
    run.current = start;
    useEffect(() => {
        if (!isOn) return;
        const onKey = (event: globalThis.KeyboardEvent) => {
            if (event.key !== "F2" || document.querySelector("dialog[open]")) return;
            event.preventDefault();
            run.current();
        };
        document.addEventListener("keydown", onKey);
        return () => document.removeEventListener("keydown", onKey);
    }, [isOn]);
}

interface HeadProps {
    threadId: string;
    exists: boolean;
    isMissing: boolean;
    isWorking: boolean;
    /** The entries of the menu that the view adds. */
    itemsFor(record: ThreadRecord): MenuItem[];
}

const failed = (what: string) => (error: unknown) =>
    void toast(`${what} ${reasonOf(error)}`, { kind: "error" });

/** The title and the menu of a conversation with agents. */
export function ThreadHead() {
    const thread = useOpenThread();
    const { threadId, exists, isMissing, isWorking } = thread;
    const itemsFor = (record: ThreadRecord): MenuItem[] => [
        ...(record.role === "viewer" && !isRoomKnown(threadId)
            ? []
            : [
                  {
                      label: isRoomKnown(threadId) ? "Back to the room" : "Start a room",
                      icon: "people",
                      onSelect: () => void openRoom(threadId, thread.activeId),
                  } as const,
              ]),
        {
            label: "Copy",
            icon: "copy",
            onSelect: () => void copyThread(record).catch(failed("Not copied.")),
        },
        {
            label: "Export as Markdown",
            icon: "download",
            onSelect: () => exportThread(record, thread.entries, "md"),
        },
        {
            label: "Export as JSON",
            icon: "download",
            onSelect: () => exportThread(record, thread.entries, "json"),
        },
    ];
    return (
        <RecordHead
            threadId={threadId}
            exists={exists}
            isMissing={isMissing}
            isWorking={isWorking}
            itemsFor={itemsFor}
        />
    );
}

/** The title and the menu of a thread, whichever view it has. */
export function RecordHead({ threadId, exists, isMissing, isWorking, itemsFor }: HeadProps) {
    const { record, isLoading } = useRecord(threadId, exists);
    const [isRenaming, setRenaming] = useState(false);
    const [isOpen, setOpen] = useState(false);
    const button = useRef<HTMLButtonElement>(null);
    const canRename = record !== null && record.role !== "viewer";
    useF2(canRename, () => setRenaming(true));

    // The list shows running agents.
    const wasWorking = useRef(isWorking);
    useEffect(() => {
        if (isWorking && !wasWorking.current) noteThreadChange();
        wasWorking.current = isWorking;
    }, [isWorking]);

    const title = !exists
        ? "New conversation"
        : record
          ? titleOfRecord(record)
          : isLoading
            ? ""
            : isMissing
              ? "Not found"
              : "Conversation";
    useEffect(() => {
        document.title = exists && title ? `${title} · Heddle` : "Heddle";
    }, [exists, title]);

    if (!exists || !record) {
        return (
            <h1 className={styles.title}>
                {title || <span className="visually-hidden">Loading…</span>}
                {!title && <span className={styles.bone} />}
            </h1>
        );
    }

    const items: MenuItem[] = [
        ...(canRename
            ? [{ label: "Rename", icon: "edit", onSelect: () => setRenaming(true) } as const]
            : []),
        { label: "Details and sharing", icon: "settings", onSelect: () => setOpen(true) },
        ...itemsFor(record),
        ...(record.role === undefined || record.role === "owner"
            ? [
                  {
                      label: "Delete",
                      icon: "trash",
                      isDanger: true,
                      onSelect: () => {
                          removeThread(record);
                          document.getElementById("main")?.focus(); // its menu is removed
                      },
                  } as const,
              ]
            : []),
    ];

    return (
        <div className={styles.head}>
            {isRenaming ? (
                <TitleField
                    record={record}
                    onDone={() => {
                        setRenaming(false);
                        requestAnimationFrame(() => button.current?.focus());
                    }}
                />
            ) : (
                <>
                    <h1 className={styles.title} title={title} dir="auto">
                        {title}
                    </h1>
                    {canRename && (
                        <IconButton
                            ref={button}
                            icon="edit"
                            label="Rename"
                            className={styles.rename}
                            onClick={() => setRenaming(true)}
                        />
                    )}
                </>
            )}
            <Menu label="Conversation menu" align="left" items={items} />
            {isOpen && (
                <DetailsDialog
                    record={record}
                    onClose={() => {
                        setOpen(false);
                        void loadRecord(threadId);
                    }}
                />
            )}
        </div>
    );
}
