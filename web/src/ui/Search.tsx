// A search field above a list.
import { IconButton } from "./Button";
import { Icon } from "./icons";
import styles from "./Search.module.css";

interface SearchProps {
    /** The accessible name. */
    label: string;
    text: string;
    onText(text: string): void;
    /** The page has one landmark for search. */
    isLandmark?: boolean;
}

export function Search({ label, text, onText, isLandmark = true }: SearchProps) {
    return (
        <div className={styles.field} role={isLandmark ? "search" : undefined}>
            <Icon name="search" size={16} />
            <input
                type="text"
                inputMode="search"
                aria-label={label}
                placeholder="Search"
                autoComplete="off"
                spellCheck={false}
                value={text}
                onChange={(event) => onText(event.target.value)}
                onKeyDown={(event) => {
                    if (event.key !== "Escape" || !text) return;
                    // the first Escape clears the field, the second closes its container
                    event.stopPropagation();
                    onText("");
                }}
            />
            {text && (
                <IconButton
                    icon="close"
                    label="Clear the search"
                    tip="right"
                    onClick={() => onText("")}
                />
            )}
        </div>
    );
}
