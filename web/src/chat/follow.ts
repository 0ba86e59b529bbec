// A list that stays at its end while it grows, unless somebody has scrolled away from it.
import { useCallback, useEffect, useRef, useState, type RefObject } from "react";

const NEAR_PX = 60;

interface Follow {
    box: RefObject<HTMLDivElement | null>;
    content: RefObject<HTMLDivElement | null>;
    isAway: boolean;
    goToEnd(isSmooth?: boolean): void;
}

/** Who writes or chooses something in the list is not taken away from it. */
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
    const [isAway, setAway] = useState(false);

    const goToEnd = useCallback((isSmooth = false) => {
        follows.current = true;
        setAway(false);
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
            // Only a person scrolls up: what grows, and what is measured anew, moves the end away.
            if (isNear) follows.current = true;
            else if (outer.scrollTop < last) follows.current = false;
            last = outer.scrollTop;
            setAway(!follows.current);
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

    return { box, content, isAway, goToEnd };
}
