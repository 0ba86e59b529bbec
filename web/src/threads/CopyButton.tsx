import { useEffect, useState } from "react";
import { IconButton } from "@/ui/Button";
import { toast } from "@/ui/toast";
import { copyText } from "./clipboard";

const DONE_MS = 1500;

/** Copies a text to the clipboard and confirms it. */
export function CopyButton({ text, label }: { text: string | (() => string); label: string }) {
    const [isDone, setDone] = useState(false);
    useEffect(() => {
        if (!isDone) return;
        const timer = setTimeout(() => setDone(false), DONE_MS);
        return () => clearTimeout(timer);
    }, [isDone]);
    const copy = async () => {
        try {
            await copyText(typeof text === "string" ? text : text());
            setDone(true);
        } catch {
            toast("The browser denied access to the clipboard.", { kind: "error" });
        }
    };
    return (
        <>
            <IconButton
                icon={isDone ? "check" : "copy"}
                label={label}
                tip="right"
                onClick={() => void copy()}
            />
            <span className="visually-hidden" role="status">
                {isDone ? "Copied" : ""}
            </span>
        </>
    );
}
