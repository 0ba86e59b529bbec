// Completion of "@name" in a text area: a list above it that the arrow keys move through while the
// text keeps the focus.
import {
    useId,
    useLayoutEffect,
    useState,
    type AriaAttributes,
    type KeyboardEvent,
    type ReactNode,
    type RefObject,
} from "react";
import { flushSync } from "react-dom";
import { nameOf, useAssistants } from "@/api/assistants";
import { matchesOf, mentionAt } from "./address";
import { AgentBadge } from "./AgentBadge";
import styles from "./mentions.module.css";

interface MentionOptions {
    text: string;
    setText(text: string): void;
    textarea: RefObject<HTMLTextAreaElement | null>;
}

export interface Mentions {
    /** Props for the text area. */
    props: AriaAttributes & { role?: "combobox" };
    /** True: the list handled the key. */
    onKeyDown(event: KeyboardEvent): boolean;
    /** The caret has moved. */
    onSelect(): void;
    /** The list above the text area; its container is positioned. */
    popup: ReactNode;
}

export function useMentions({ text, setText, textarea }: MentionOptions): Mentions {
    const { list } = useAssistants();
    const id = useId();
    const [caret, setCaret] = useState(0);
    const [at, setAt] = useState(0);
    /** The text for which Escape closed the list. */
    const [closedFor, setClosedFor] = useState<string | null>(null);

    const query = closedFor === text ? null : mentionAt(text, Math.min(caret, text.length));
    const matches = query === null ? [] : matchesOf(query, list);
    const isOpen = matches.length > 0;
    const chosen = Math.min(at, Math.max(0, matches.length - 1));

    useLayoutEffect(() => {
        if (isOpen)
            document.getElementById(`${id}-${chosen}`)?.scrollIntoView({ block: "nearest" });
    }, [isOpen, chosen, id]);

    const onSelect = () => setCaret(textarea.current?.selectionStart ?? 0);
    const take = (index: number) => {
        const match = matches[index];
        if (!match || query === null) return;
        const before = `@${nameOf(match)} `;
        const after = text.slice(1 + query.length).replace(/^\s+/, "");
        // The caret is in place before the next key arrives.
        flushSync(() => {
            setText(before + after);
            setClosedFor(before + after);
            setAt(0);
        });
        textarea.current?.focus();
        textarea.current?.setSelectionRange(before.length, before.length);
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
        <ul id={id} role="listbox" aria-label="Agents" className={styles.list}>
            {matches.map((one, index) => (
                <li
                    key={one.assistant_id}
                    id={`${id}-${index}`}
                    role="option"
                    aria-selected={index === chosen}
                    className={styles.option}
                    onPointerDown={(event) => {
                        event.preventDefault(); // the text keeps the focus
                        take(index);
                    }}
                    onPointerMove={() => setAt(index)}
                >
                    <AgentBadge assistantId={one.assistant_id} />
                    {one.description && <span className={styles.about}>{one.description}</span>}
                </li>
            ))}
        </ul>
    );
    return {
        props: {
            role: "combobox",
            "aria-autocomplete": "list",
            "aria-haspopup": "listbox",
            "aria-expanded": isOpen,
            "aria-controls": isOpen ? id : undefined,
            "aria-activedescendant": isOpen ? `${id}-${chosen}` : undefined,
        },
        onKeyDown,
        onSelect,
        popup,
    };
}
