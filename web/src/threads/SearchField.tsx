import { useEffect, useState } from "react";
import { Search } from "@/ui/Search";
import { searchList } from "./list";

const PAUSE_MS = 200;

/** Searches titles and messages on the server when typing pauses. */
export function SearchField() {
    const [text, setText] = useState("");
    useEffect(() => {
        const timer = setTimeout(() => searchList(text.trim()), text ? PAUSE_MS : 0);
        return () => clearTimeout(timer);
    }, [text]);
    return <Search label="Search conversations" text={text} onText={setText} />;
}
