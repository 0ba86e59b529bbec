// The composer. It keeps its text in its own state, so that typing never waits for a stream and
// renders nothing else.
import {
    useEffect,
    useId,
    useLayoutEffect,
    useRef,
    useState,
    type KeyboardEvent,
    type ReactNode,
} from "react";
import { addressOf } from "@/agents/address";
import { useMentions } from "@/agents/mentions";
import { getAssistants } from "@/api/assistants";
import { useStore } from "@/api/store";
import { useReply } from "@/interrupts/reply";
import { useAccess } from "@/threads/access";
import { IconButton } from "@/ui/Button";
import { touch, useMatches } from "@/ui/media";
import { useAttached } from "./attach";
import styles from "./Composer.module.css";
import { joinTexts, readDraft, useDraft } from "./draft";
import { fill } from "./fill";
import type { Content } from "./agentChat";
import { Queued, useQueued } from "./Queued";
import { useOpenThread } from "./openThread";

export function contentOf(text: string, images: { address: string }[]): Content {
    if (images.length === 0) return text;
    const pictures = images.map(({ address }) => ({
        type: "image_url" as const,
        image_url: { url: address },
    }));
    return text.trim() ? [{ type: "text", text }, ...pictures] : pictures;
}

/** Grows with its text. Browsers with field-sizing need no measuring. */
export function useHeight(text: string) {
    const area = useRef<HTMLTextAreaElement>(null);
    useLayoutEffect(() => {
        const { current } = area;
        if (!current || CSS.supports("field-sizing", "content")) return;
        current.style.height = "auto";
        current.style.height = `${current.scrollHeight}px`;
    }, [text]);
    return area;
}

type Attachments = ReturnType<typeof useAttached>;

export function Previews({ images, remove }: Pick<Attachments, "images" | "remove">) {
    if (images.length === 0) return null;
    return (
        <ul className={styles.previews} aria-label="Images to send">
            {images.map(({ id, address, name }) => (
                <li key={id} className={styles.preview}>
                    <img src={address} alt={name} />
                    <IconButton
                        icon="close"
                        label={`Remove ${name}`}
                        className={styles.remove}
                        onClick={() => remove(id)}
                    />
                </li>
            ))}
        </ul>
    );
}

export function Attach({ add, isDisabled }: Pick<Attachments, "add"> & { isDisabled: boolean }) {
    const input = useRef<HTMLInputElement>(null);
    return (
        <>
            <input
                ref={input}
                type="file"
                accept="image/*"
                multiple
                hidden
                aria-label="Images"
                onChange={(event) => {
                    void add([...(event.target.files ?? [])]);
                    event.target.value = "";
                }}
            />
            <IconButton
                icon="image"
                label="Attach images"
                tip="left"
                disabled={isDisabled}
                onClick={() => input.current?.click()}
            />
        </>
    );
}

export function Composer({ picker }: { picker: ReactNode }) {
    const { threadId, exists, activeId, chats, isWorking, send, selectAgent } = useOpenThread();
    const { canWrite, canSend, notice } = useAccess();
    const draftOf = exists ? threadId : null;
    const [text, setText] = useState(() => readDraft(draftOf));
    const attached = useAttached();
    const area = useHeight(text);
    const mentions = useMentions({ text, setText, textarea: area });
    const reply = useReply();
    const filling = useStore(fill);
    const hint = useId();
    // An on-screen keyboard has no Shift+Enter.
    const hasLines = useMatches(touch);
    const isAnswering = reply?.isAnswering ?? false;
    const isFull = text.trim() !== "" || (attached.images.length > 0 && !isAnswering);
    const mayGo = canSend && canWrite && activeId !== null && isFull;

    const queued = useQueued(draftOf);
    useDraft(draftOf, text);
    useEffect(() => {
        if (!filling) return;
        fill.set(null);
        const { text, images, isEarlier = false } = filling;
        setText((before) => (isEarlier ? joinTexts(text, before) : text));
        attached.put(images, isEarlier);
        area.current?.focus();
    }, [filling, attached.put, area]);

    const go = () => {
        if (!mayGo) return;
        const to = addressOf(text, getAssistants());
        const content = contentOf(to.text, attached.images);
        const isEmpty = to.text.trim() === "" && attached.images.length === 0;
        setText("");
        area.current?.focus();
        if (isAnswering && !to.assistantId) return void reply?.respond(text); // images are attached
        attached.put([]);
        if (to.assistantId && isEmpty) selectAgent(to.assistantId);
        else if (isWorking || queued.list.length > 0)
            queued.add(content, to.assistantId ?? activeId ?? undefined);
        else void send(content, to.assistantId ?? undefined);
    };
    const stop = () => {
        for (const chat of chats) if (chat.phase === "working") void chat.stop();
        area.current?.focus();
    };
    const onKeyDown = (event: KeyboardEvent) => {
        if (event.nativeEvent.isComposing || event.keyCode === 229 || mentions.onKeyDown(event))
            return;
        if (event.key !== "Enter" || event.shiftKey || event.altKey) return;
        if (hasLines && !event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        go();
    };

    return (
        <form
            className={styles.composer}
            aria-label="Write a message"
            data-over={attached.isOver || undefined}
            onDragOver={attached.onDragOver}
            onDragLeave={attached.onDragLeave}
            onDrop={attached.onDrop}
            onSubmit={(event) => {
                event.preventDefault();
                go();
            }}
        >
            {reply?.notice}
            <Queued {...queued} />
            <div className={styles.box}>
                {mentions.popup}
                <Previews images={attached.images} remove={attached.remove} />
                <textarea
                    ref={area}
                    className={styles.text}
                    rows={1}
                    dir="auto"
                    aria-label="Message"
                    {...mentions.props}
                    role={undefined}
                    aria-expanded={undefined}
                    value={text}
                    placeholder={
                        reply?.placeholder || (canWrite ? "Write a message, or @name" : "")
                    }
                    disabled={!canWrite}
                    aria-describedby={hint}
                    enterKeyHint={hasLines ? "enter" : "send"}
                    onChange={(event) => setText(event.target.value)}
                    onKeyDown={onKeyDown}
                    onSelect={mentions.onSelect}
                    onPaste={attached.onPaste}
                />
                <div className={styles.bar}>
                    <Attach add={attached.add} isDisabled={!canWrite} />
                    {picker}
                    <span className={styles.gap} />
                    {isWorking && isFull && (
                        <IconButton
                            icon="send"
                            label="Queue this message"
                            tip="right"
                            type="submit"
                            disabled={!mayGo}
                        />
                    )}
                    {isWorking ? (
                        <IconButton
                            icon="stop"
                            label="Stop"
                            kind="primary"
                            tip="right"
                            disabled={!canSend}
                            onClick={stop}
                        />
                    ) : (
                        <IconButton
                            icon="send"
                            label="Send"
                            kind="primary"
                            tip="right"
                            type="submit"
                            disabled={!mayGo}
                        />
                    )}
                </div>
            </div>
            <p
                id={hint}
                className={notice || attached.problem ? styles.notice : "visually-hidden"}
                role={attached.problem ? "alert" : undefined}
            >
                {attached.problem ??
                    notice ??
                    (hasLines
                        ? "Enter begins a new line."
                        : "Enter sends, Shift+Enter begins a new line.")}
            </p>
        </form>
    );
}
