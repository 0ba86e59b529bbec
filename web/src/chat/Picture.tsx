// An image in a message, which opens enlarged.
import { useState } from "react";
import { Dialog } from "@/ui/Dialog";
import { isOwnImage, safeLink } from "./links";
import styles from "./Picture.module.css";

export function Picture({ address, name }: { address: string; name: string }) {
    const [isOpen, setOpen] = useState(false);
    if (!isOwnImage(address)) {
        const link = safeLink(address);
        if (!link) return <span className={styles.missing}>{name} cannot be displayed</span>;
        return (
            <a href={link} target="_blank" rel="noopener noreferrer">
                {name}
            </a>
        );
    }
    return (
        <>
            <button
                type="button"
                className={styles.picture}
                aria-label={`${name}: enlarge`}
                onClick={() => setOpen(true)}
            >
                <img src={address} alt={name} />
            </button>
            {isOpen && (
                <Dialog title={name} isWide onClose={() => setOpen(false)}>
                    <img className={styles.large} src={address} alt={name} />
                </Dialog>
            )}
        </>
    );
}
