// The sidebar: new conversation, search, the list, and a footer.
import { useEffect, useRef, type KeyboardEvent, type RefObject } from "react";
import { goToThread } from "@/app/route";
import { Button, IconButton } from "@/ui/Button";
import { narrow } from "@/ui/media";
import { SearchField } from "./SearchField";
import { SidebarFooter } from "./SidebarFooter";
import styles from "./Sidebar.module.css";
import { ThreadList } from "./ThreadList";

/** An element that appears with a transition accepts the focus only some frames later. */
function focusSoon(element: HTMLElement, frames = 20) {
    element.focus();
    if (document.activeElement !== element && frames > 0)
        requestAnimationFrame(() => focusSoon(element, frames - 1));
}

/** On a phone the list covers the page: it takes, traps and returns the focus. */
function useCover(isOpen: boolean, side: RefObject<HTMLElement | null>) {
    useEffect(() => {
        if (!isOpen || !narrow.matches) return;
        const before = document.activeElement;
        const main = document.getElementById("main");
        main?.setAttribute("inert", "");
        const first = side.current?.querySelector<HTMLElement>("[data-first]");
        if (first) focusSoon(first);
        return () => {
            main?.removeAttribute("inert");
            if (before instanceof HTMLElement && document.contains(before)) before.focus();
        };
    }, [isOpen, side]);
}

function keepFocus(event: KeyboardEvent<HTMLElement>) {
    if (event.key !== "Tab" || !narrow.matches) return;
    const all = [
        ...event.currentTarget.querySelectorAll<HTMLElement>("a[href], button, input, summary"),
    ];
    const list = all.filter(
        (one) => !one.hasAttribute("disabled") && one.tabIndex >= 0 && one.checkVisibility(),
    );
    const from = event.shiftKey ? list[0] : list.at(-1);
    const to = event.shiftKey ? list.at(-1) : list[0];
    if (document.activeElement !== from) return;
    event.preventDefault();
    to?.focus();
}

/** A new conversation focuses the composer; on a phone the keyboard would cover the page. */
function beginToWrite() {
    if (narrow.matches) return;
    document.querySelector<HTMLElement>("#main form textarea")?.focus();
}

export function Sidebar({ isOpen, onClose }: { isOpen: boolean; onClose(): void }) {
    const side = useRef<HTMLElement>(null);
    useCover(isOpen, side);
    return (
        <nav
            ref={side}
            className={`${styles.side} ${isOpen ? styles.open : ""}`}
            aria-label="Conversations"
            onKeyDown={(event) => {
                if (event.key === "Escape" && isOpen) onClose();
                else keepFocus(event);
            }}
        >
            <div className={styles.brand}>
                <img src="./icon.svg" alt="" width="22" height="22" />
                <span>Heddle</span>
                <IconButton
                    icon="close"
                    label="Close the list"
                    tip="right"
                    className={styles.close}
                    onClick={onClose}
                    data-first
                />
            </div>
            <Button
                kind="primary"
                icon="plus"
                className={styles.new}
                onClick={() => {
                    goToThread(null);
                    onClose();
                    requestAnimationFrame(beginToWrite);
                }}
            >
                New conversation
            </Button>
            <SearchField />
            <ThreadList />
            <SidebarFooter />
        </nav>
    );
}
