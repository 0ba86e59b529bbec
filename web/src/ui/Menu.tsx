// A button that opens a menu. Arrow keys move, Escape closes, the focus returns to the button.
import { useEffect, useId, useLayoutEffect, useRef, useState, type KeyboardEvent } from "react";
import { IconButton } from "./Button";
import { Icon, type IconName } from "./icons";
import styles from "./Menu.module.css";
import { useOutside } from "./outside";

export interface MenuItem {
    label: string;
    icon?: IconName;
    isDanger?: boolean;
    isChecked?: boolean;
    onSelect(): void;
}

interface MenuProps {
    label: string;
    icon?: IconName;
    items: MenuItem[];
    align?: "left" | "right";
    className?: string;
}

const EDGE_PX = 8;

/** Moves a menu that would leave the window back into it: sideways, or above its button. */
function keepInside(list: HTMLElement) {
    const { left, right, bottom, height } = list.getBoundingClientRect();
    const above = list.parentElement?.getBoundingClientRect().top ?? 0;
    if (bottom > window.innerHeight - EDGE_PX && above > height + 2 * EDGE_PX)
        list.dataset.above = "";
    const over = right - (document.documentElement.clientWidth - EDGE_PX);
    const by = over > 0 ? -Math.min(over, left - EDGE_PX) : Math.max(EDGE_PX - left, 0);
    if (by !== 0) list.style.translate = `${by}px`;
}

export function Menu({ label, icon = "more", items, align = "right", className = "" }: MenuProps) {
    const [isOpen, setOpen] = useState(false);
    const root = useRef<HTMLDivElement>(null);
    const list = useRef<HTMLDivElement>(null);
    const id = useId();

    const focusItem = (at: number) => {
        const list = root.current?.querySelectorAll<HTMLElement>("[role^=menuitem]");
        if (list?.length) list[(at + list.length) % list.length]?.focus();
    };
    const close = (returns: boolean) => {
        setOpen(false);
        if (returns) root.current?.querySelector("button")?.focus();
    };

    useLayoutEffect(() => {
        if (list.current) keepInside(list.current);
    }, [isOpen]);
    useEffect(() => {
        if (isOpen) focusItem(0);
    }, [isOpen]);
    useOutside(root, isOpen, () => setOpen(false));

    const onKeyDown = (event: KeyboardEvent) => {
        if (!isOpen) return;
        const list = [...(root.current?.querySelectorAll<HTMLElement>("[role^=menuitem]") ?? [])];
        const at = list.indexOf(document.activeElement as HTMLElement);
        const moves: Record<string, () => void> = {
            ArrowDown: () => focusItem(at + 1),
            ArrowUp: () => focusItem(at - 1),
            Home: () => focusItem(0),
            End: () => focusItem(list.length - 1),
            Escape: () => close(true),
        };
        const move = moves[event.key];
        if (!move) return;
        event.preventDefault();
        event.stopPropagation();
        move();
    };

    return (
        <div ref={root} className={`${styles.root} ${className}`} onKeyDown={onKeyDown}>
            <IconButton
                icon={icon}
                label={label}
                tip="right"
                aria-haspopup="menu"
                aria-expanded={isOpen}
                aria-controls={isOpen ? id : undefined}
                onClick={() => setOpen(!isOpen)}
            />
            {isOpen && (
                <div
                    ref={list}
                    id={id}
                    role="menu"
                    aria-label={label}
                    className={`${styles.list} ${styles[align]}`}
                >
                    {items.map((item) => (
                        <button
                            key={item.label}
                            type="button"
                            role={item.isChecked === undefined ? "menuitem" : "menuitemradio"}
                            aria-checked={item.isChecked}
                            tabIndex={-1}
                            className={`${styles.item} ${item.isDanger ? styles.danger : ""}`}
                            onClick={() => {
                                close(true);
                                item.onSelect();
                            }}
                        >
                            {item.icon ? (
                                <Icon name={item.icon} size={16} />
                            ) : (
                                <span className={styles.gap} />
                            )}
                            <span className={styles.text}>{item.label}</span>
                            {item.isChecked && <Icon name="check" size={16} />}
                        </button>
                    ))}
                </div>
            )}
        </div>
    );
}
