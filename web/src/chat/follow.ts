// A list that stays scrolled to its end while it grows, unless the user scrolled up.
import { useCallback, useEffect, useRef, useState, type RefObject } from "react";

const NEAR_PX = 60;

interface Follow {
    box: RefObject<HTMLDivElement | null>;
    content: RefObject<HTMLDivElement | null>;
    isScrolledUp: boolean;
    goToEnd(isSmooth?: boolean): void;
}

/** Does not scroll while the user types or selects text in the list. */
function isUsed(inner: HTMLElement): boolean {
    const active = document.activeElement;
    return (
        inner.contains(active) &&
        (active instanceof HTMLTextAreaElement ||
            active instanceof HTMLInputElement ||
            active instanceof HTMLSelectElement)
    );
}

/** `isOn`: there is something to follow. */
export function useFollow(isOn: boolean): Follow {
    const box = useRef<HTMLDivElement>(null);
    const content = useRef<HTMLDivElement>(null);
    const follows = useRef(true);
    const isFollowing = useRef(isOn);
    isFollowing.current = isOn;
    const [isScrolledUp, setScrolledUp] = useState(false);

    const goToEnd = useCallback((isSmooth = false) => {
        follows.current = true;
        setScrolledUp(false);
        box.current?.scrollTo({
            top: box.current.scrollHeight,
            behavior: isSmooth ? "smooth" : "instant",
        });
    }, []);

    useEffect(() => {
        const [outer, inner] = [box.current, content.current];
        if (!outer || !inner) return;
        let last = outer.scrollTop;
        const onScroll = () => {
            const isNear = outer.scrollHeight - outer.scrollTop - outer.clientHeight < NEAR_PX;
            // Only the user scrolls up: growth and new measurements only move the end.
            if (isNear) follows.current = true;
            else if (outer.scrollTop < last) follows.current = false;
            last = outer.scrollTop;
            setScrolledUp(!follows.current);
        };
        const keep = () => {
            if (isFollowing.current && follows.current && !isUsed(inner))
                outer.scrollTop = outer.scrollHeight;
        };
        const sizes = new ResizeObserver(keep);
        sizes.observe(inner);
        sizes.observe(outer);
        outer.addEventListener("scroll", onScroll, { passive: true });
        return () => {
            sizes.disconnect();
            outer.removeEventListener("scroll", onScroll);
        };
    }, []);

    return { box, content, isScrolledUp, goToEnd };
}
