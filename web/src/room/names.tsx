// Completion of "@name" in the composer of a room: people and agents, several in one text.
import {
    useId,
    useLayoutEffect,
    useMemo,
    useState,
    type AriaAttributes,
    type KeyboardEvent,
    type ReactNode,
    type RefObject,
} from "react";
import { flushSync } from "react-dom";
import popupStyles from "@/agents/mentions.module.css";
import { nameOf, useAssistants } from "@/api/assistants";
import { Face } from "./Face";
import { insertName, namesFor, typedAt, type Named } from "./mention";
import styles from "./RoomComposer.module.css";
import type { Room } from "./types";

/** The agents of the room, its people, then the other assistants that the user sees. */
export function useNamed(room: Room | null): Named[] {
    const { list } = useAssistants();
    return useMemo(() => {
        if (!room) return [];
        const agents = room.agents.map(({ assistant_id: id, name }): Named => ({
            id,
            name,
            type: "agent",
        }));
        const people = room.people
            .filter(({ id, name }) => id !== room.me.id && (name || id))
            .map(({ id, name }): Named => ({ id, name: name || id, type: "person" }));
        const others = list
            .filter((one) => !agents.some(({ id }) => id === one.assistant_id))
            .map((one): Named => ({
                id: one.assistant_id,
                name: nameOf(one),
                type: "agent",
                about: "joins the room",
            }));
        return [...agents, ...people, ...others];
    }, [room, list]);
}

interface Options {
    text: string;
    setText(text: string): void;
    textarea: RefObject<HTMLTextAreaElement | null>;
    named: Named[];
}

export interface Completion {
    props: AriaAttributes & { role?: "combobox" };
    /** True: the list handled the key. */
    onKeyDown(event: KeyboardEvent): boolean;
    onSelect(): void;
    popup: ReactNode;
}

export function useNames({ text, setText, textarea, named }: Options): Completion {
    const id = useId();
    const [caret, setCaret] = useState(0);
    const [at, setAt] = useState(0);
    /** The text for which Escape closed the list. */
    const [closedFor, setClosedFor] = useState<string | null>(null);
    const typed = closedFor === text ? null : typedAt(text, Math.min(caret, text.length));
    const matches = typed ? namesFor(typed.query, named) : [];
    const isOpen = matches.length > 0;
    const chosen = Math.min(at, Math.max(0, matches.length - 1));

    useLayoutEffect(() => {
        if (isOpen)
            document.getElementById(`${id}-${chosen}`)?.scrollIntoView({ block: "nearest" });
    }, [isOpen, chosen, id]);

    const take = (index: number) => {
        const match = matches[index];
        if (!match || !typed) return;
        const next = insertName(text, Math.min(caret, text.length), typed, match.name);
        // The caret is in place before the next key arrives.
        flushSync(() => {
            setText(next.text);
            setClosedFor(next.text);
            setAt(0);
        });
        textarea.current?.focus();
        textarea.current?.setSelectionRange(next.caret, next.caret);
    };
    const onKeyDown = (event: KeyboardEvent): boolean => {
        if (!isOpen || event.nativeEvent.isComposing) return false;
        const keys: Record<string, () => void> = {
            ArrowDown: () => setAt((chosen + 1) % matches.length),
            ArrowUp: () => setAt((chosen + matches.length - 1) % matches.length),
            Enter: () => take(chosen),
            Tab: () => take(chosen),
            Escape: () => setClosedFor(text),
        };
        const act = keys[event.key];
        if (!act || event.shiftKey || event.ctrlKey || event.metaKey || event.altKey) return false;
        event.preventDefault();
        event.stopPropagation();
        act();
        return true;
    };
    const popup = isOpen && (
        <ul id={id} role="listbox" aria-label="People and agents" className={popupStyles.list}>
            {matches.map((one, index) => (
                <li
                    key={`${one.type} ${one.id}`}
                    id={`${id}-${index}`}
                    role="option"
                    aria-selected={index === chosen}
                    className={`${popupStyles.option} ${styles.option}`}
                    onPointerDown={(event) => {
                        event.preventDefault(); // the text keeps the focus
                        take(index);
                    }}
                    onPointerMove={() => setAt(index)}
                >
                    <Face sender={one} size="small" />
                    <span className={styles.optionName}>{one.name}</span>
                    <span className={styles.about}>
                        {one.about ?? (one.type === "agent" ? "agent" : "person")}
                    </span>
                </li>
            ))}
        </ul>
    );
    return {
        props: {
            "aria-autocomplete": "list",
            "aria-haspopup": "listbox",
            "aria-controls": isOpen ? id : undefined,
            "aria-activedescendant": isOpen ? `${id}-${chosen}` : undefined,
        },
        onKeyDown,
        onSelect: () => setCaret(textarea.current?.selectionStart ?? 0),
        popup,
    };
}
