// A conversation that can't be shown: why, and where to go from here.
import { useEffect, useRef } from "react";
import { reasonOf, statusOf } from "@/api/client";
import { connection } from "@/api/connection";
import { isRefused } from "@/api/session";
import { useStore } from "@/api/store";
import { goToThread } from "@/app/route";
import { useOpenThread, type OpenThread } from "@/chat/openThread";
import { Button } from "@/ui/Button";
import type { IconName } from "@/ui/icons";
import { ErrorState } from "@/ui/ErrorState";

interface Words {
    icon: IconName;
    title: string;
    text: string;
    canRetry: boolean;
}

function wordsOf(error: unknown): Words {
    const status = statusOf(error);
    if (status === 404 || status === 422) {
        const text =
            "It was deleted, it has expired, or it belongs to somebody who has not shared it with you.";
        return { icon: "search", title: "There is no such conversation", text, canRetry: false };
    }
    if (status === 403) {
        const text = "Ask its owner to share it with you.";
        return {
            icon: "people",
            title: "This conversation is not yours to read",
            text,
            canRetry: true,
        };
    }
    if (status === null) {
        const text = "It will be shown as soon as the server answers.";
        return { icon: "warning", title: "The server can't be reached", text, canRetry: true };
    }
    return {
        icon: "warning",
        title: "The conversation can't be shown",
        text: reasonOf(error),
        canRetry: true,
    };
}

/** Nothing is there that could be shown instead. */
function hasError({ error, isMissing, entries }: OpenThread): boolean {
    return isMissing || (error !== null && entries.length === 0);
}

/**
 * Whether to show <ThreadError /> instead of what was said. Looks again when the server is back, or the
 * user is.
 */
export function useThreadError(): boolean {
    const thread = useOpenThread();
    const { error, reload } = thread;
    const isReached = useStore(connection) === "online";
    const isKnown = !useStore(isRefused);
    const before = useRef({ isReached, isKnown });
    useEffect(() => {
        const isBack =
            (isReached && !before.current.isReached) || (isKnown && !before.current.isKnown);
        before.current = { isReached, isKnown };
        if (isBack && error !== null) reload();
    }, [isReached, isKnown, error, reload]);
    return hasError(thread);
}

export function ThreadError() {
    const thread = useOpenThread();
    const { error, reload } = thread;
    if (!hasError(thread)) return null;
    const { icon, title, text, canRetry } = wordsOf(error);
    return (
        <ErrorState icon={icon} title={title} text={text}>
            {canRetry && (
                <Button icon="retry" onClick={reload}>
                    Try again
                </Button>
            )}
            <Button kind="primary" icon="plus" onClick={() => goToThread(null)}>
                New conversation
            </Button>
        </ErrorState>
    );
}
