// Attached images: selected, pasted or dropped.
import {
    useCallback,
    useEffect,
    useRef,
    useState,
    type ClipboardEvent,
    type DragEvent,
} from "react";
import { reasonOf } from "@/api/client";
import { MOST_IMAGES, readImage } from "./images";

export interface Attached {
    id: number;
    address: string;
    name: string;
}

let count = 0;

const imagesOf = (data: DataTransfer | null) =>
    [...(data?.files ?? [])].filter((file) => file.type.startsWith("image/"));

/** A file dropped beside the composer must not replace the page. */
function useNoDropsElsewhere() {
    useEffect(() => {
        const refuse = (event: globalThis.DragEvent) => {
            if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
        };
        window.addEventListener("dragover", refuse);
        window.addEventListener("drop", refuse);
        return () => {
            window.removeEventListener("dragover", refuse);
            window.removeEventListener("drop", refuse);
        };
    }, []);
}

export function useAttached() {
    const [images, setImages] = useState<Attached[]>([]);
    const [problem, setProblem] = useState<string | null>(null);
    const [isOver, setOver] = useState(false);
    const held = useRef(0);
    held.current = images.length;
    useNoDropsElsewhere();

    const add = useCallback(async (files: File[]) => {
        setProblem(null);
        for (const file of files) {
            if (held.current >= MOST_IMAGES) {
                setProblem(`A message can have at most ${MOST_IMAGES} images.`);
                return;
            }
            try {
                const address = await readImage(file);
                const image = { id: ++count, address, name: file.name || "Image" };
                held.current++;
                setImages((before) => [...before, image].slice(0, MOST_IMAGES));
            } catch (error) {
                setProblem(reasonOf(error));
            }
        }
    }, []);
    /** Replaces the attached images, or goes before them. */
    const put = useCallback((addresses: string[], keepsOthers = false) => {
        const list = addresses.map((address) => ({ id: ++count, address, name: "Image" }));
        setImages((before) => (keepsOthers ? [...list, ...before].slice(0, MOST_IMAGES) : list));
        setProblem(null);
    }, []);
    const remove = useCallback(
        (id: number) => setImages((before) => before.filter((image) => image.id !== id)),
        [],
    );

    return {
        images,
        problem,
        isOver,
        add,
        put,
        remove,
        onPaste: (event: ClipboardEvent) => {
            const files = imagesOf(event.clipboardData);
            if (files.length === 0) return;
            event.preventDefault();
            void add(files);
        },
        onDragOver: (event: DragEvent) => {
            if (!event.dataTransfer.types.includes("Files")) return;
            event.preventDefault();
            setOver(true);
        },
        onDragLeave: () => setOver(false),
        onDrop: (event: DragEvent) => {
            setOver(false);
            if (event.dataTransfer.files.length === 0) return;
            event.preventDefault();
            void add([...event.dataTransfer.files]);
        },
    };
}
