// Formats dates, times and sizes. Pure.

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export type Group = "Today" | "Yesterday" | "Earlier";

function dayOf(time: Date): number {
    return new Date(time.getFullYear(), time.getMonth(), time.getDate()).getTime();
}

/** Calendar days between both; a day may have 23 or 25 hours. */
function daysBetween(then: Date, now: Date): number {
    return Math.round((dayOf(now) - dayOf(then)) / DAY);
}

export function groupOf(time: string, now: Date): Group {
    const days = daysBetween(new Date(time), now);
    if (days <= 0) return "Today";
    return days === 1 ? "Yesterday" : "Earlier";
}

/** "now", "5 min", "14:05", "Tue", "3 May", "3 May 2024". */
export function shortDate(time: string, now: Date, locale?: string): string {
    const then = new Date(time);
    const ago = now.getTime() - then.getTime();
    if (ago < MINUTE) return "now";
    if (ago < HOUR) return `${Math.floor(ago / MINUTE)} min`;
    const days = daysBetween(then, now);
    if (days <= 1) return then.toLocaleTimeString(locale, { hour: "2-digit", minute: "2-digit" });
    if (days < 7) return then.toLocaleDateString(locale, { weekday: "short" });
    const year = then.getFullYear() === now.getFullYear() ? undefined : "numeric";
    return then.toLocaleDateString(locale, { day: "numeric", month: "short", year });
}

export function fullDate(time: string, locale?: string): string {
    return new Date(time).toLocaleString(locale, { dateStyle: "medium", timeStyle: "short" });
}

/** "in 3 minutes", "in 5 hours", "in 30 days". */
export function until(time: string, now: Date): string {
    const left = Math.max(0, new Date(time).getTime() - now.getTime());
    const format = (count: number, unit: string) => `in ${count} ${unit}${count === 1 ? "" : "s"}`;
    if (left < MINUTE) return "in less than a minute";
    if (left < 2 * HOUR) return format(Math.round(left / MINUTE), "minute");
    if (left < 2 * DAY) return format(Math.round(left / HOUR), "hour");
    return format(Math.round(left / DAY), "day");
}

const UNITS = ["bytes", "KB", "MB", "GB", "TB"];

export function sizeOf(bytes: number): string {
    if (bytes === 1) return "1 byte";
    let size = bytes;
    let unit = 0;
    while (size >= 1000 && unit < UNITS.length - 1) {
        size /= 1000;
        unit++;
    }
    return `${unit === 0 || size >= 100 ? Math.round(size) : Number(size.toFixed(1))} ${UNITS[unit]}`;
}
