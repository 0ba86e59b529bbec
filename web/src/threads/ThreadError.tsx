// A conversation that could not be loaded: the reason, and links from here.
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
        const text = "It was deleted, has expired, or is not shared with you.";
        return { icon: "search", title: "Conversation not found", text, canRetry: false };
    }
    if (status === 403) {
        const text = "Ask its owner to share it with you.";
        return {
            icon: "people",
            title: "You cannot read this conversation",
            text,
            canRetry: true,
        };
    }
    if (status === null) {
        const text = "It loads when the server responds.";
        return { icon: "warning", title: "The server can't be reached", text, canRetry: true };
    }
    return {
        icon: "warning",
        title: "The conversation could not be loaded",
        text: reasonOf(error),
        canRetry: true,
    };
}

/** No messages are loaded that could be shown instead. */
function hasError({ error, isMissing, entries }: OpenThread): boolean {
    return isMissing || (error !== null && entries.length === 0);
}

/**
 * Reports whether to show <ThreadError /> instead of the messages. Reloads when the server is back,
 * or the user signs in again.
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
