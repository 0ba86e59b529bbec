// The agent picker: a button with the name of the selected agent that opens the list of agents.
import { useEffect, useId, useRef, useState, type KeyboardEvent } from "react";
import { nameOf, useAssistants } from "@/api/assistants";
import { formatRoute } from "@/app/route";
import { useOpenThread } from "@/chat/openThread";
import { Icon } from "@/ui/icons";
import { useOutside } from "@/ui/outside";
import { AgentBadge } from "./AgentBadge";
import styles from "./AgentPicker.module.css";

const TYPED_MS = 700;

/** Typed letters select the next agent whose name starts with them. */
function useTypeAhead(names: string[], at: number, goTo: (index: number) => void) {
    const typed = useRef({ text: "", time: 0 });
    return (key: string, now: number) => {
        const isNew = now - typed.current.time > TYPED_MS;
        const text = (isNew ? "" : typed.current.text) + key.toLowerCase();
        typed.current = { text, time: now };
        const from = text.length === 1 ? at + 1 : at;
        const order = names.map((_, i) => (from + i) % names.length);
        const found = order.find((i) => names[i]?.toLowerCase().startsWith(text));
        if (found !== undefined) goTo(found);
    };
}

export function AgentPicker() {
    const { activeId, selectAgent } = useOpenThread();
    const { list, isLoading, error } = useAssistants();
    const [isOpen, setOpen] = useState(false);
    const [at, setAt] = useState(0);
    const root = useRef<HTMLDivElement>(null);
    const box = useRef<HTMLUListElement>(null);
    const id = useId();
    const current = list.findIndex((one) => one.assistant_id === activeId);
    const typeAhead = useTypeAhead(list.map(nameOf), at, setAt);

    useEffect(() => {
        if (isOpen) box.current?.focus();
    }, [isOpen]);
    useOutside(root, isOpen, () => setOpen(false));
    useEffect(() => {
        if (isOpen) document.getElementById(`${id}-${at}`)?.scrollIntoView({ block: "nearest" });
    }, [isOpen, at, id]);

    const open = () => {
        setAt(Math.max(0, current));
        setOpen(true);
    };
    const close = () => {
        setOpen(false);
        root.current?.querySelector("button")?.focus();
    };
    const choose = (index: number) => {
        const one = list[index];
        if (one) selectAgent(one.assistant_id);
        close();
    };
    const onKeyDown = (event: KeyboardEvent) => {
        const last = list.length - 1;
        const keys: Record<string, () => void> = {
            ArrowDown: () => setAt(Math.min(at + 1, last)),
            ArrowUp: () => setAt(Math.max(at - 1, 0)),
            Home: () => setAt(0),
            End: () => setAt(last),
            Enter: () => choose(at),
            " ": () => choose(at),
            Escape: close,
        };
        const act = keys[event.key];
        if (act) {
            event.preventDefault();
            event.stopPropagation();
            act();
        } else if (event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey) {
            typeAhead(event.key, event.timeStamp);
        }
    };

    if (error && list.length === 0)
        return <span className={styles.problem}>Could not load the agents.</span>;
    if (isLoading && list.length === 0)
        return (
            <span className={styles.button} aria-busy="true">
                …
            </span>
        );
    return (
        <div ref={root} className={styles.root}>
            <button
                type="button"
                className={styles.button}
                aria-haspopup="listbox"
                aria-expanded={isOpen}
                aria-controls={isOpen ? id : undefined}
                aria-label={current >= 0 ? `Agent: ${nameOf(list[current])}` : "Choose an agent"}
                onClick={() => (isOpen ? close() : open())}
                onKeyDown={(event) => {
                    if (isOpen || (event.key !== "ArrowDown" && event.key !== "ArrowUp")) return;
                    event.preventDefault();
                    open();
                }}
            >
                {activeId && current >= 0 ? (
                    <AgentBadge assistantId={activeId} />
                ) : (
                    "Choose an agent"
                )}
                <Icon name="down" size={14} />
            </button>
            {isOpen && (
                <div className={styles.popup}>
                    <ul
                        ref={box}
                        id={id}
                        role="listbox"
                        aria-label="Agents"
                        tabIndex={0}
                        className={styles.list}
                        aria-activedescendant={`${id}-${at}`}
                        onKeyDown={onKeyDown}
                    >
                        {list.map((one, index) => (
                            <li
                                key={one.assistant_id}
                                id={`${id}-${index}`}
                                role="option"
                                aria-selected={index === current}
                                data-at={index === at || undefined}
                                className={styles.option}
                                onClick={() => choose(index)}
                                onPointerMove={() => setAt(index)}
                            >
                                <span className={styles.head}>
                                    <AgentBadge assistantId={one.assistant_id} />
                                    {index === current && <Icon name="check" size={16} />}
                                </span>
                                {one.description && (
                                    <span className={styles.about}>{one.description}</span>
                                )}
                            </li>
                        ))}
                    </ul>
                    <a
                        className={styles.manage}
                        href={formatRoute({ view: "agents", assistantId: null })}
                    >
                        <Icon name="agents" size={16} /> All agents
                    </a>
                </div>
            )}
        </div>
    );
}
