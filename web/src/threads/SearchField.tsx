import { useEffect, useState } from "react";
import { Search } from "@/ui/Search";
import { searchList } from "./list";

const PAUSE_MS = 200;

/** Looks for conversations by their titles, on the server, when nothing was typed for a moment. */
export function SearchField() {
    const [text, setText] = useState("");
    useEffect(() => {
        const timer = setTimeout(() => searchList(text.trim()), text ? PAUSE_MS : 0);
        return () => clearTimeout(timer);
    }, [text]);
    return <Search label="Search conversations" text={text} onText={setText} />;
}
