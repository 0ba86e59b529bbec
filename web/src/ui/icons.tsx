// The page's icons: strokes on a 24 by 24 field, in the colour of the text.

const paths = {
    agents: "M12 8a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM5 22v-3a4 4 0 0 1 4-4h6a4 4 0 0 1 4 4v3M9 11h6",
    at: "M16 12a4 4 0 1 1-8 0 4 4 0 0 1 8 0ZM16 8v5.500a2.500 2.500 0 0 0 5 0V12a9 9 0 1 0-3.500 7.100",
    back: "m15 5-7 7 7 7",
    check: "m5 13 4 4L19 7",
    close: "M6 6l12 12M18 6 6 18",
    copy: "M9 9h11v11H9zM5 15H4V4h11v1",
    clock: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18ZM12 7v5l3 2",
    down: "m6 9 6 6 6-6",
    download: "M12 4v11M7 11l5 5 5-5M5 20h14",
    edit: "M4 20h4L19 9l-4-4L4 16zM13.5 6.5l4 4",
    forward: "m9 5 7 7-7 7",
    graph: "M5 6h5v4H5zM14 14h5v4h-5zM7.5 10v6H14M10 8h6.500v6",
    image: "M4 5h16v14H4zM4 16l5-5 4 4 2-2 5 5M15.500 9.500h.01",
    inspect:
        "M8 4c-2 0-3 1-3 3v2c0 1.500-1 3-2 3 1 0 2 1.500 2 3v2c0 2 1 3 3 3M16 4c2 0 3 1 3 3v2c0 1.500 1 3 2 3-1 0-2 1.500-2 3v2c0 2-1 3-3 3",
    key: "M8 19a4.500 4.500 0 1 0 0-9 4.500 4.500 0 0 0 0 9ZM11.200 11.300 19 3.500M16 6.500l3 3",
    link: "M10 14a4 4 0 0 0 6 .4l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6-.4l-3 3a4 4 0 0 0 6 6l1-1",
    menu: "M4 7h16M4 12h16M4 17h16",
    more: "M4.500 12a.7.7 0 1 0 1.400 0 .7.7 0 1 0-1.400 0M11.300 12a.7.7 0 1 0 1.400 0 .7.7 0 1 0-1.400 0M18.100 12a.7.7 0 1 0 1.400 0 .7.7 0 1 0-1.400 0",
    out: "M10 4H5v16h5M14 8l4 4-4 4M18 12H9",
    people: "M9 11a3.500 3.500 0 1 0 0-7 3.500 3.500 0 0 0 0 7ZM2 20v-1a5 5 0 0 1 5-5h4a5 5 0 0 1 5 5v1M16 4a3.500 3.500 0 0 1 0 7M18 14a4 4 0 0 1 4 4v2",
    plus: "M12 5v14M5 12h14",
    reply: "M9 14 4 9l5-5M4 9h9a7 7 0 0 1 7 7v4",
    retry: "M20 11a8 8 0 1 0-2 6M20 4v7h-7",
    search: "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14ZM20 20l-4-4",
    send: "M12 20V5M5 12l7-7 7 7",
    stop: "M7 7h10v10H7z",
    settings:
        "M12 15a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM12 2v4M12 18v4M2 12h4M18 12h4M5 5l2.800 2.800M16.200 16.200 19 19M19 5l-2.800 2.800M7.800 16.200 5 19",
    sun: "M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8ZM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.500 1.500M17.500 17.500 19 19M19 5l-1.500 1.500M6.500 17.500 5 19",
    thumbDown:
        "M7 13V4H4v9zM7 13l4 8a2.500 2.500 0 0 0 2.500-3L13 15h5a2 2 0 0 0 2-2.400l-1.200-6.500A2.500 2.500 0 0 0 16.300 4H7",
    thumbUp:
        "M7 11v9H4v-9zM7 11l4-8a2.500 2.500 0 0 1 2.500 3L13 9h5a2 2 0 0 1 2 2.400l-1.200 6.500A2.500 2.500 0 0 1 16.300 20H7",
    tool: "M14 7a4 4 0 0 1 5-3l-2.500 3 1.500 2 3.500-1a4.500 4.500 0 0 1-6 5L9 20a2 2 0 0 1-3-3l6-6.500A4 4 0 0 1 14 7Z",
    trash: "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M10 11v5M14 11v5",
    tree: "M6 8a2 2 0 1 0 0-4 2 2 0 0 0 0 4ZM6 20a2 2 0 1 0 0-4 2 2 0 0 0 0 4ZM18 10a2 2 0 1 0 0-4 2 2 0 0 0 0 4ZM6 8v8M18 10c0 4-6 3-11 6",
    warning: "M12 4 2.500 20h19zM12 10v4M12 17h.01",
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
    return (
        <svg
            width={size}
            height={size}
            viewBox="0 0 24 24"
            fill="none"
            stroke="currentColor"
            strokeWidth="1.8"
            strokeLinecap="round"
            strokeLinejoin="round"
            aria-hidden="true"
            focusable="false"
        >
            <path d={paths[name]} />
        </svg>
    );
}
